package dev.ordergrid.client;

import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.time.Instant;
import java.util.Arrays;

/**
 * One entry of a partition's committed log. It may be kept; the entries of one answer of a node share their memory, up
 * to 64 KiB.
 */
public final class LogEntry {
    /** What an entry is. */
    public enum Kind {
        /** Begins an epoch. */
        NOOP,
        /** An order, cancel or replace. */
        ORDER,
        /** A session was opened. */
        SESSION,
        /** What a sink holds. */
        CURSOR,
        /** Entries before may be freed. */
        TRUNCATE,
        /** What a named sink holds. */
        READER,
        /** Numbers of FIX sessions. */
        FIX,
        /** An order, cancel or replace of a partition that matches: 64 bytes of instruction, then the message. */
        EXECUTE,
        /** What the exchange does to a book. */
        MARKET,
        /** What is pending in the books goes on. */
        CONTINUE,
        /** A change of limits. */
        GUARD,
        /** A step of a change of the functions that every copy calls. */
        FUNCTIONS,
        /** A change of a region. */
        REGION,
        /** Of whose reports a FIX session gets copies. */
        DROP_COPY;

        /** By number, from 1. */
        private static final Kind[] ALL = {
            NOOP, ORDER, SESSION, CURSOR, TRUNCATE, READER, FIX, EXECUTE, MARKET, CONTINUE, GUARD, FUNCTIONS, null, REGION, DROP_COPY
        };

        /** The number of the kind in an entry. */
        public int number() {
            return ordinal() + (ordinal() < REGION.ordinal() ? 1 : 2);
        }
    }

    private static final VarHandle LONG = MethodHandles.byteArrayViewVarHandle(long[].class, ByteOrder.LITTLE_ENDIAN);
    private static final VarHandle INT = MethodHandles.byteArrayViewVarHandle(int[].class, ByteOrder.LITTLE_ENDIAN);
    private static final VarHandle SHORT = MethodHandles.byteArrayViewVarHandle(short[].class, ByteOrder.LITTLE_ENDIAN);
    private static final int INSTRUCTION = 64;
    private static final int MAX_SIZE = Wire.ENTRY_HEADER + Wire.MAX_PAYLOAD;

    private final byte[] b;
    private final int at;
    private final int size;

    private LogEntry(byte[] b, int at, int size) {
        this.b = b;
        this.at = at;
        this.size = size;
    }

    /** Decodes the entry at {@code at} and checks that everything it refers to lies inside. */
    static LogEntry decode(byte[] b, int at) throws FrameException {
        int room = b.length - at;
        if (room < Wire.ENTRY_HEADER) {
            throw bad("bytes", room, "64 or more");
        }
        int size = (int) INT.get(b, at);
        if (size < Wire.ENTRY_HEADER || size > MAX_SIZE || size > room) {
            throw bad("size", size & 0xFFFFFFFFL, "64..65536 and no more than the bytes there");
        }
        LogEntry e = new LogEntry(b, at, size);
        e.check();
        return e;
    }

    /** Decodes the entry at {@code at} of several padded ones; {@link #padded} is where the next begins. */
    static LogEntry next(byte[] b, int at) throws FrameException {
        LogEntry e = decode(b, at);
        if (e.padded() > b.length - at) {
            throw bad("padding", b.length - at, "entries padded to 8 bytes");
        }
        for (int i = e.size; i < e.padded(); i++) {
            if (b[at + i] != 0) {
                throw bad("padding", b[at + i], "zero bytes");
            }
        }
        return e;
    }

    int padded() {
        return size + 7 & ~7;
    }

    private void check() throws FrameException {
        int kind = b[at + 4] & 0xFF;
        int payload = size - Wire.ENTRY_HEADER;
        if (kind < 1 || kind > Kind.ALL.length || Kind.ALL[kind - 1] == null) {
            throw bad("kind", kind, "1 noop, 2 order, 3 session, 4 cursor, 5 truncate, 6 reader, 7 fix, 8 execute, 9 market, 10 continue, 11 guard, 12 functions, 14 region, 15 drop-copy");
        }
        int want = switch (kind()) {
            case NOOP, SESSION -> 16;
            case CURSOR, TRUNCATE -> 8;
            case CONTINUE -> 0;
            default -> payload;
        };
        if (payload != want) {
            throw bad("size", size, Wire.ENTRY_HEADER + want + " for a " + kind().name().toLowerCase(java.util.Locale.ROOT) + " entry");
        }
        if (kind() == Kind.READER && !readerName(at + Wire.ENTRY_HEADER + 8, at + size)) {
            throw bad("size", size, "72 and a name of 1 to 32 lowercase letters, digits and hyphens for a reader entry");
        }
        if (seq() == 0) {
            throw bad("seq", 0, "1 or more");
        }
        if (b[at + 55] != 0 && ((b[at + 55] & 1) == 0 || kind() != Kind.ORDER && kind() != Kind.EXECUTE)) {
            throw bad("flags", b[at + 55] & 0xFF, "0, and an odd number for an order");
        }
        if ((int) INT.get(b, at + 60) != 0) {
            throw bad("reserved", (int) INT.get(b, at + 60) & 0xFFFFFFFFL, "0");
        }
        if (kind() == Kind.FIX) {
            checkFix(at + Wire.ENTRY_HEADER, at + size);
        }
        if (kind() == Kind.EXECUTE && payload <= INSTRUCTION) {
            throw bad("size", size, "more than 128 for an execute entry");
        }
        boolean order = kind() == Kind.ORDER || kind() == Kind.EXECUTE;
        if (order && (off(6) == 0 || b[at + 48] == 0)) {
            throw bad("clOrdIDOff", off(6), "1 or more: an order has a ClOrdID");
        }
        if (!order && (b[at + 5] | off(6) | (int) INT.get(b, at + 48) | off(52) | b[at + 54] | (int) INT.get(b, at + 56)) != 0) {
            throw bad("clOrdIDOff", off(6), "0: only an order has fields");
        }
        inside("clOrdIDOff", off(6), b[at + 48] & 0xFF, payload);
        inside("symbolOff", off(50), b[at + 49] & 0xFF, payload);
        inside("accountOff", off(52), b[at + 54] & 0xFF, payload);
        inside("qtyOff", off(56), off(56) == 0 ? 0 : 1, payload);
        inside("priceOff", off(58), off(58) == 0 ? 0 : 1, payload);
    }

    /** The form of the records of FIX sessions, as far as a reader needs it. */
    private void checkFix(int from, int to) throws FrameException {
        if (from == to) {
            throw bad("size", size, "64 and one record or more for a fix entry");
        }
        for (long last = -1; from < to; ) {
            if (to - from < 24) {
                throw bad("record", to - from, "24 bytes and the body");
            }
            long slot = (int) INT.get(b, from) & 0xFFFFFFFFL;
            int body = (b[from + 18] & 0xFF) | (b[from + 19] & 0xFF) << 8;
            int end = from + 24 + (body + 7 & ~7);
            if (body > 4096 || end > to) {
                throw bad("bodySize", body, "0..4096, and no more than the bytes there");
            }
            if (slot <= last) {
                throw bad("slot", slot, "rising slots");
            }
            last = slot;
            from = end;
        }
    }

    private boolean readerName(int from, int to) {
        if (to - from < 1 || to - from > 32) {
            return false;
        }
        for (int i = from; i < to; i++) {
            if ((b[i] < 'a' || b[i] > 'z') && (b[i] < '0' || b[i] > '9') && b[i] != '-') {
                return false;
            }
        }
        return true;
    }

    private static void inside(String field, int off, int len, int payload) throws FrameException {
        if (off + len > payload) {
            throw bad(field, off, "an offset inside the payload");
        }
    }

    private static FrameException bad(String field, long value, String allowed) {
        return new FrameException("entry: " + field + " is " + Long.toUnsignedString(value) + ", allowed: " + allowed);
    }

    private int off(int i) {
        return (short) SHORT.get(b, at + i) & 0xFFFF;
    }

    private String text(int off, int len) {
        return new String(b, at + Wire.ENTRY_HEADER + off, len, StandardCharsets.ISO_8859_1);
    }

    /** What the entry is. */
    public Kind kind() {
        return Kind.ALL[b[at + 4] - 1];
    }

    /** Place in the log, from 1, dense over all kinds. */
    public long seq() {
        return (long) LONG.get(b, at + 8);
    }

    /** Hash of the entry before. */
    public long prevHash() {
        return (long) LONG.get(b, at + 16);
    }

    /** Hash of this entry, that of its receipt. */
    public long hash() {
        return XxHash64.hash(b, at, size);
    }

    /** Epoch in which it was ordered. */
    public long epoch() {
        return (int) INT.get(b, at + 24) & 0xFFFFFFFFL;
    }

    /** Of an order, its number in its session; of a session, its generation. */
    public long clientSeq() {
        return (long) LONG.get(b, at + 32);
    }

    /** When the primary received it. */
    public Instant received() {
        long ns = (long) LONG.get(b, at + 40);
        return Instant.ofEpochSecond(Math.floorDiv(ns, 1_000_000_000L), Math.floorMod(ns, 1_000_000_000L));
    }

    /** Of an order, FIX tag 11; else empty. */
    public String clOrdId() {
        return text(off(6), b[at + 48] & 0xFF);
    }

    /** Of an order, FIX tag 55; else empty. */
    public String symbol() {
        return text(off(50), b[at + 49] & 0xFF);
    }

    /** Of an order, FIX tag 1, if it has one; else empty. */
    public String account() {
        return text(off(52), b[at + 54] & 0xFF);
    }

    /** Of an order, FIX tag 54, 0 if it has none. */
    public char side() {
        return (char) (b[at + 5] & 0xFF);
    }

    /** A copy of the payload: of an order, the FIX message verbatim. */
    public byte[] payload() {
        return Arrays.copyOfRange(b, at + Wire.ENTRY_HEADER, at + size);
    }

    /** A copy of header and payload, as every replica stores them. */
    public byte[] bytes() {
        return Arrays.copyOfRange(b, at, at + size);
    }

    @Override
    public String toString() {
        return kind() + " " + seq() + (kind() == Kind.ORDER ? " " + clOrdId() : "");
    }
}
