package dev.ordergrid.client;

import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;

/** Decodes the frames of regions that a node sends, as {@link In} does the others. */
final class RegionFrames {
    private RegionFrames() {}

    /** What a RegionApplied has behind the fields of an Ack: the value that a take removed. */
    static byte[] applied(ByteBuffer b, int at, int len) throws FrameException {
        In.open(b, at, len, Wire.REGION_APPLIED, Wire.ACK_SIZE + 8, false);
        int n = len - Wire.ACK_SIZE - 8;
        if (n > 0 && (b.get(at + 37) & Wire.REGION_HAS_VALUE) == 0) {
            throw new FrameException(Wire.REGION_APPLIED, "value", n, "none but of a take");
        }
        return tail(b, at + Wire.ACK_SIZE + 8, n, b.getLong(at + Wire.ACK_SIZE), Wire.REGION_APPLIED, "valueLen");
    }

    record Got(long reqId, long epoch, long commitSeq, long version, long expireNs, byte[] value) {}

    static Got got(ByteBuffer b, int at, int len) throws FrameException {
        int fixed = Wire.HEADER + 48;
        In.open(b, at, len, Wire.REGION_GOT, fixed, false);
        long version = b.getLong(at + 32);
        if (version == 0 && len > fixed) {
            throw new FrameException(Wire.REGION_GOT, "value", len - fixed, "none without a version");
        }
        byte[] value = tail(b, at + fixed, len - fixed, b.getLong(at + 48), Wire.REGION_GOT, "valueLen");
        return new Got(b.getLong(at + 8), b.getLong(at + 16), b.getLong(at + 24), version, b.getLong(at + 40), value);
    }

    record Row(long version, long expireNs, byte[] key, byte[] value) {}

    record Page(long reqId, long epoch, long commitSeq, byte[] next, byte[] rows, List<Row> list) {}

    static Page page(ByteBuffer b, int at, int len) throws FrameException {
        int fixed = Wire.HEADER + 32;
        In.open(b, at, len, Wire.REGION_PAGE, fixed, false);
        long next = b.getInt(at + 32) & 0xFFFFFFFFL;
        long rows = b.getInt(at + 36) & 0xFFFFFFFFL;
        if (next + rows != len - fixed) {
            throw new FrameException(Wire.REGION_PAGE, "nextLen", next, "with the rows the bytes that follow");
        }
        int first = at + fixed + (int) next;
        return new Page(b.getLong(at + 8), b.getLong(at + 16), b.getLong(at + 24), In.bytes(b, at + fixed, (int) next),
                In.bytes(b, first, (int) rows), rows(b, first, at + len));
    }

    private static List<Row> rows(ByteBuffer b, int from, int end) throws FrameException {
        List<Row> out = new ArrayList<>();
        for (int at = from; at < end; ) {
            if (end - at < 24) {
                throw new FrameException(Wire.REGION_PAGE, "rows", end - at, "24 bytes, a key and a value each");
            }
            long key = b.getInt(at + 16) & 0xFFFFFFFFL;
            long value = b.getInt(at + 20) & 0xFFFFFFFFL;
            if (key + value > end - at - 24) {
                throw new FrameException(Wire.REGION_PAGE, "keyLen", key, "with the value no more than the bytes that follow");
            }
            int k = at + 24;
            int v = k + (int) key;
            out.add(new Row(b.getLong(at), b.getLong(at + 8), In.bytes(b, k, (int) key), In.bytes(b, v, (int) value)));
            at = v + (int) value;
        }
        return out;
    }

    record Info(long entries, long bytes, long maxBytes, long lifeNs, String name) {}

    record Listed(long reqId, long used, long limit, byte[] rows, List<Info> list) {}

    static Listed listed(ByteBuffer b, int at, int len) throws FrameException {
        int fixed = Wire.HEADER + 32;
        In.open(b, at, len, Wire.REGION_LISTED, fixed, false);
        byte[] rows = tail(b, at + fixed, len - fixed, b.getLong(at + 32), Wire.REGION_LISTED, "rowsLen");
        List<Info> list = new ArrayList<>();
        for (int i = at + fixed; i < at + len; ) {
            int rest = at + len - i;
            if (rest < 33 || rest < 33 + (b.get(i + 32) & 0xFF)) {
                throw new FrameException(Wire.REGION_LISTED, "rows", rest, "33 bytes and a name each");
            }
            int n = b.get(i + 32) & 0xFF;
            list.add(new Info(b.getLong(i), b.getLong(i + 8), b.getLong(i + 16), b.getLong(i + 24),
                    new String(In.bytes(b, i + 33, n), StandardCharsets.UTF_8)));
            i += 33 + n;
        }
        return new Listed(b.getLong(at + 8), b.getLong(at + 16), b.getLong(at + 24), rows, list);
    }

    private static byte[] tail(ByteBuffer b, int at, int n, long said, int type, String field) throws FrameException {
        if (said != n) {
            throw new FrameException(type, field, said, "the bytes that follow");
        }
        return In.bytes(b, at, n);
    }
}
