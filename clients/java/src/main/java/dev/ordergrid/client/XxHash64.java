package dev.ordergrid.client;

import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.nio.ByteOrder;

/**
 * xxHash64 with seed 0, after the specification of the algorithm (doc/xxhash_spec.md of xxHash). It routes orders to
 * partitions and chains log entries.
 */
final class XxHash64 {
    private static final long P1 = 0x9E3779B185EBCA87L;
    private static final long P2 = 0xC2B2AE3D27D4EB4FL;
    private static final long P3 = 0x165667B19E3779F9L;
    private static final long P4 = 0x85EBCA77C2B2AE63L;
    private static final long P5 = 0x27D4EB2F165667C5L;
    private static final VarHandle LONG = MethodHandles.byteArrayViewVarHandle(long[].class, ByteOrder.LITTLE_ENDIAN);
    private static final VarHandle INT = MethodHandles.byteArrayViewVarHandle(int[].class, ByteOrder.LITTLE_ENDIAN);

    private XxHash64() {}

    /** Hash of {@code len} bytes of {@code b} from {@code off} on. */
    static long hash(byte[] b, int off, int len) {
        int at = off;
        int end = off + len;
        long h;
        if (len >= 32) {
            long v1 = P1 + P2;
            long v2 = P2;
            long v3 = 0;
            long v4 = -P1;
            for (; at <= end - 32; at += 32) {
                v1 = round(v1, (long) LONG.get(b, at));
                v2 = round(v2, (long) LONG.get(b, at + 8));
                v3 = round(v3, (long) LONG.get(b, at + 16));
                v4 = round(v4, (long) LONG.get(b, at + 24));
            }
            h = Long.rotateLeft(v1, 1) + Long.rotateLeft(v2, 7) + Long.rotateLeft(v3, 12) + Long.rotateLeft(v4, 18);
            h = merge(merge(merge(merge(h, v1), v2), v3), v4);
        } else {
            h = P5;
        }
        h += len;
        for (; at <= end - 8; at += 8) {
            h = Long.rotateLeft(h ^ round(0, (long) LONG.get(b, at)), 27) * P1 + P4;
        }
        if (at <= end - 4) {
            h = Long.rotateLeft(h ^ ((int) INT.get(b, at) & 0xFFFFFFFFL) * P1, 23) * P2 + P3;
            at += 4;
        }
        for (; at < end; at++) {
            h = Long.rotateLeft(h ^ (b[at] & 0xFF) * P5, 11) * P1;
        }
        h = (h ^ h >>> 33) * P2;
        h = (h ^ h >>> 29) * P3;
        return h ^ h >>> 32;
    }

    private static long round(long acc, long lane) {
        return Long.rotateLeft(acc + lane * P2, 31) * P1;
    }

    private static long merge(long h, long v) {
        return (h ^ round(0, v)) * P1 + P4;
    }
}
