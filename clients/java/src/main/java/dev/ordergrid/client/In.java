package dev.ordergrid.client;

import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;

/**
 * Decodes the frames that a node sends to a client. Every method takes a whole frame at {@code at} of {@code b}
 * ({@code len} bytes, as {@link #split} found it), reads nothing outside it, and allocates at most a small multiple of
 * its size.
 */
final class In {
    private In() {}

    /** Length of the first whole frame of {@code b[at, end)}; 0: more bytes are needed. */
    static int split(ByteBuffer b, int at, int end) throws FrameException {
        if (end - at < 4) {
            return 0;
        }
        int n = b.getInt(at);
        if (n < Wire.HEADER || n > Wire.MAX_FRAME) {
            throw new FrameException("length", n & 0xFFFFFFFFL, "8..1048576 bytes");
        }
        return end - at < n ? 0 : n;
    }

    static int type(ByteBuffer b, int at) {
        return b.get(at + 4) & 0xFF;
    }

    static int partition(ByteBuffer b, int at) {
        return b.getShort(at + 6) & 0xFFFF;
    }

    static void open(ByteBuffer b, int at, int len, int type, int fixed, boolean exact) throws FrameException {
        if (type(b, at) != type) {
            throw new FrameException(type, "type", type(b, at), Wire.name(type));
        }
        if (b.getInt(at) != len) {
            throw new FrameException(type, "length", b.getInt(at) & 0xFFFFFFFFL, "the frame's own size, at most 1048576");
        }
        if (len < fixed || exact && len != fixed) {
            throw new FrameException(type, "length", len, (exact ? "exactly " : "at least ") + fixed + " bytes");
        }
    }

    record Welcome(int version, int features, long maxFrame, long window, String grid, String member) {}

    static Welcome welcome(ByteBuffer b, int at, int len) throws FrameException {
        open(b, at, len, Wire.WELCOME, Wire.HEADER + 12, false);
        Tail t = new Tail(b, at + 20, at + len, Wire.WELCOME);
        String grid = t.str("grid");
        String member = t.str("member");
        t.done();
        return new Welcome(b.getShort(at + 8) & 0xFFFF, b.getShort(at + 10) & 0xFFFF, b.getInt(at + 12) & 0xFFFFFFFFL, b.getInt(at + 16) & 0xFFFFFFFFL, grid, member);
    }

    record Goaway(int code, String text) {}

    static Goaway goaway(ByteBuffer b, int at, int len) throws FrameException {
        open(b, at, len, Wire.GOAWAY, Wire.HEADER + 4, false);
        return new Goaway(b.getShort(at + 8) & 0xFFFF, text(b, at + 12, at + len, b.getShort(at + 10) & 0xFFFF, Wire.GOAWAY));
    }

    record Authenticated(long reqId, int permissions, long forSeconds, String user) {}

    static Authenticated authenticated(ByteBuffer b, int at, int len) throws FrameException {
        open(b, at, len, Wire.AUTHENTICATED, Wire.HEADER + 16, false);
        Tail t = new Tail(b, at + 24, at + len, Wire.AUTHENTICATED);
        String user = t.str("user");
        t.done();
        return new Authenticated(b.getLong(at + 8), b.getShort(at + 16) & 0xFFFF, b.getInt(at + 20) & 0xFFFFFFFFL, user);
    }

    /** A request id alone: Pong. */
    static long request(ByteBuffer b, int at, int len, int type) throws FrameException {
        open(b, at, len, type, Wire.HEADER + 8, true);
        return b.getLong(at + 8);
    }

    record Table(long reqId, int partitions, List<PartitionInfo> parts, boolean bySymbol) {}

    static Table table(ByteBuffer b, int at, int len) throws FrameException {
        open(b, at, len, Wire.TABLE, Wire.HEADER + 12, false);
        int partitions = b.getShort(at + 16) & 0xFFFF;
        if (partitions == 0 || partitions > Wire.MAX_PARTITIONS) {
            throw new FrameException(Wire.TABLE, "partitions", partitions, "1..1024");
        }
        int n = b.getShort(at + 18) & 0xFFFF;
        if (n * 17 > len - 20) {
            throw new FrameException(Wire.TABLE, "nParts", n, "no more than fit the frame");
        }
        List<PartitionInfo> parts = new ArrayList<>(n);
        Tail t = new Tail(b, at + 20, at + len, Wire.TABLE);
        for (int i = 0; i < n; i++) {
            PartitionInfo p = part(t);
            if (p.partition() >= partitions) {
                throw new FrameException(Wire.TABLE, "partition", p.partition(), "below partitions");
            }
            parts.add(p);
        }
        t.done();
        return new Table(b.getLong(at + 8), partitions, parts, (b.get(at + 5) & Wire.FLAG_BY_SYMBOL) != 0);
    }

    private static PartitionInfo part(Tail t) throws FrameException {
        int at = t.fixed("parts", 17, "17 bytes and the members");
        ByteBuffer b = t.b;
        int primary = b.get(at + 14) & 0xFF;
        int n = b.get(at + 15) & 0xFF;
        int inSync = b.get(at + 16) & 0xFF;
        if (n > Wire.MAX_TABLE_MEMBERS) {
            throw new FrameException(Wire.TABLE, "nMembers", n, "0..8");
        }
        if (inSync > n) {
            throw new FrameException(Wire.TABLE, "nInSync", inSync, "at most nMembers");
        }
        if (primary != Wire.NO_PRIMARY && primary >= n) {
            throw new FrameException(Wire.TABLE, "primary", primary, "an index below nMembers, or 255");
        }
        List<Member> members = new ArrayList<>(n);
        for (int i = 0; i < n; i++) {
            String address = t.str("address");
            members.add(new Member(t.str("member"), address, i < inSync));
        }
        return new PartitionInfo(b.getShort(at) & 0xFFFF, b.getLong(at + 2), b.getInt(at + 10) & 0xFFFFFFFFL,
                primary == Wire.NO_PRIMARY ? null : members.get(primary), List.copyOf(members));
    }

    record SessionOpened(long reqId, int slot, int generation, long window, long lastClientSeq, long epoch) {}

    static SessionOpened sessionOpened(ByteBuffer b, int at, int len) throws FrameException {
        open(b, at, len, Wire.SESSION_OPENED, Wire.HEADER + 40, true);
        return new SessionOpened(b.getLong(at + 8), b.getInt(at + 16), b.getInt(at + 20), b.getInt(at + 24) & 0xFFFFFFFFL,
                b.getLong(at + 32), b.getLong(at + 40));
    }

    record Ack(long clientSeq, long seq, long epoch, int slot, int copies, int flags, long hash, long lineage) {}

    /** For tests: the hot path reads the fields of an Ack in place. */
    static Ack ack(ByteBuffer b, int at, int len) throws FrameException {
        open(b, at, len, Wire.ACK, Wire.ACK_SIZE, true);
        return new Ack(b.getLong(at + 8), b.getLong(at + 16), b.getLong(at + 24), b.getInt(at + 32), b.get(at + 36) & 0xFF,
                b.get(at + 37) & 0xFF, b.getLong(at + 40), b.getInt(at + 48) & 0xFFFFFFFFL);
    }

    record Reject(long requestId, long detail, int slot, long tag, int code, int forType, long limit, String text) {}

    static Reject reject(ByteBuffer b, int at, int len) throws FrameException {
        open(b, at, len, Wire.REJECT, Wire.HEADER + 40, false);
        String text = text(b, at + 48, at + len, b.getShort(at + 36) & 0xFFFF, Wire.REJECT);
        return new Reject(b.getLong(at + 8), b.getLong(at + 16), b.getInt(at + 24), b.getInt(at + 28) & 0xFFFFFFFFL,
                b.getShort(at + 32) & 0xFFFF, b.get(at + 34) & 0xFF, b.getLong(at + 40), text);
    }

    record NotPrimary(long requestId, long epoch, int slot, int forType, String address, String member) {}

    static NotPrimary notPrimary(ByteBuffer b, int at, int len) throws FrameException {
        open(b, at, len, Wire.NOT_PRIMARY, Wire.HEADER + 24, false);
        Tail t = new Tail(b, at + 32, at + len, Wire.NOT_PRIMARY);
        String address = t.str("address");
        String member = t.str("member");
        t.done();
        return new NotPrimary(b.getLong(at + 8), b.getLong(at + 16), b.getInt(at + 24), b.get(at + 28) & 0xFF, address, member);
    }

    record GetReply(long reqId, long epoch, long commitSeq, int status, byte[] entry, long freed) {}

    static GetReply getReply(ByteBuffer b, int at, int len) throws FrameException {
        open(b, at, len, Wire.GET_REPLY, Wire.HEADER + 32, false);
        int status = b.get(at + 32) & 0xFF;
        int tail = len - 40;
        if (status > Wire.FREED) {
            throw new FrameException(Wire.GET_REPLY, "status", status, "0 found, 1 not found, 2 freed");
        }
        long freed = 0;
        if (status == Wire.FREED) {
            if (tail != 8) {
                throw new FrameException(Wire.GET_REPLY, "freed", tail, "8 bytes");
            }
            freed = b.getLong(at + 40);
            tail = 0;
        } else if (status == Wire.FOUND != tail > 0) {
            throw new FrameException(Wire.GET_REPLY, "entry", tail, "an entry when found, none otherwise");
        }
        return new GetReply(b.getLong(at + 8), b.getLong(at + 16), b.getLong(at + 24), status, bytes(b, at + 40, tail), freed);
    }

    record LogChunk(long reqId, long epoch, long commitSeq, long lastSeq, long lastHash, long firstSeq, byte[] entries) {}

    static LogChunk logChunk(ByteBuffer b, int at, int len) throws FrameException {
        open(b, at, len, Wire.LOG_CHUNK, Wire.HEADER + 48, false);
        return new LogChunk(b.getLong(at + 8), b.getLong(at + 16), b.getLong(at + 24), b.getLong(at + 32), b.getLong(at + 40),
                b.getLong(at + 48), entries(b, at + 56, len - 56, Wire.LOG_CHUNK));
    }

    record FollowEntries(long reqId, long from, long through, long commitSeq, long throughHash, int lineage, long window, byte[] entries) {}

    static FollowEntries followEntries(ByteBuffer b, int at, int len) throws FrameException {
        open(b, at, len, Wire.FOLLOW_ENTRIES, Wire.HEADER + 48, false);
        long from = b.getLong(at + 16);
        long through = b.getLong(at + 24);
        long commit = b.getLong(at + 32);
        if (from == 0) {
            throw new FrameException(Wire.FOLLOW_ENTRIES, "from", 0, "1 or more");
        }
        if (Long.compareUnsigned(through, from - 1) < 0 || Long.compareUnsigned(through, commit) > 0) {
            throw new FrameException(Wire.FOLLOW_ENTRIES, "through", through, "from-1 or more, at most commitSeq");
        }
        if (Long.compareUnsigned(through, from) < 0 && len > 56) {
            throw new FrameException(Wire.FOLLOW_ENTRIES, "entries", len - 56, "none where none was examined");
        }
        return new FollowEntries(b.getLong(at + 8), from, through, commit, b.getLong(at + 40), b.getInt(at + 48),
                b.getInt(at + 52) & 0xFFFFFFFFL, entries(b, at + 56, len - 56, Wire.FOLLOW_ENTRIES));
    }

    record FollowEnd(long reqId, long seq, long hash, int reason, String text) {}

    static FollowEnd followEnd(ByteBuffer b, int at, int len) throws FrameException {
        open(b, at, len, Wire.FOLLOW_END, Wire.HEADER + 28, false);
        return new FollowEnd(b.getLong(at + 8), b.getLong(at + 16), b.getLong(at + 24), b.getShort(at + 32) & 0xFFFF,
                text(b, at + 36, at + len, b.getShort(at + 34) & 0xFFFF, Wire.FOLLOW_END));
    }

    private static byte[] entries(ByteBuffer b, int at, int n, int type) throws FrameException {
        if (n % 8 != 0) {
            throw new FrameException(type, "entries", n, "a multiple of 8 bytes");
        }
        return bytes(b, at, n);
    }

    static byte[] bytes(ByteBuffer b, int at, int n) {
        byte[] out = new byte[n];
        b.get(at, out);
        return out;
    }

    private static String text(ByteBuffer b, int at, int end, int n, int type) throws FrameException {
        if (n != end - at || n > Wire.MAX_TEXT) {
            throw new FrameException(type, "textLen", n, "the bytes that follow, at most 1024");
        }
        return printable(bytes(b, at, n));
    }

    /** UTF-8 that a peer sent, made safe for logs and terminals. */
    static String printable(byte[] b) {
        StringBuilder out = new StringBuilder(new String(b, StandardCharsets.UTF_8));
        for (int i = 0; i < out.length(); i++) {
            int type = Character.getType(out.charAt(i));
            if (type == Character.CONTROL || type == Character.FORMAT || type == Character.LINE_SEPARATOR || type == Character.PARAGRAPH_SEPARATOR) {
                out.setCharAt(i, '?');
            }
        }
        return out.toString();
    }

    /** The variable part of a frame. */
    private static final class Tail {
        final ByteBuffer b;
        private final int end;
        private final int type;
        private int at;

        Tail(ByteBuffer b, int at, int end, int type) {
            this.b = b;
            this.at = at;
            this.end = end;
            this.type = type;
        }

        int fixed(String field, int n, String allowed) throws FrameException {
            if (end - at < n) {
                throw new FrameException(type, field, end - at, allowed);
            }
            at += n;
            return at - n;
        }

        String str(String field) throws FrameException {
            if (at == end) {
                throw new FrameException(type, field + "Len", 0, "one length byte");
            }
            int n = b.get(at) & 0xFF;
            if (end - at - 1 < n) {
                throw new FrameException(type, field + "Len", n, "no more than the bytes that follow");
            }
            at += 1 + n;
            return new String(bytes(b, at - n, n), StandardCharsets.UTF_8);
        }

        void done() throws FrameException {
            if (at != end) {
                throw new FrameException(type, "tail", end - at, "no bytes after the last field");
            }
        }
    }
}
