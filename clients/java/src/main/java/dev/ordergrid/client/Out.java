package dev.ordergrid.client;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;

/** A growing direct buffer that frames of a client are appended to. */
final class Out {
    ByteBuffer b;

    Out(int size) {
        b = allocate(size);
    }

    private static ByteBuffer allocate(int size) {
        return ByteBuffer.allocateDirect(size).order(ByteOrder.LITTLE_ENDIAN);
    }

    int size() {
        return b.position();
    }

    private void begin(int type, int partition, int size) {
        if (b.remaining() < size) {
            ByteBuffer grown = allocate(Math.max(2 * b.capacity(), b.position() + size));
            b.flip();
            grown.put(b);
            b = grown;
        }
        b.putInt(size).put((byte) type).put((byte) 0).putShort((short) partition);
    }

    private void str(byte[] s) {
        int n = Math.min(s.length, Wire.MAX_STRING);
        b.put((byte) n).put(s, 0, n);
    }

    void hello(byte[] grid, byte[] member) {
        int size = Wire.HEADER + 20 + 1 + grid.length + 1 + member.length + 1;
        begin(Wire.HELLO, 0, size);
        b.putInt(Wire.MAGIC).putShort((short) Wire.VERSION).putShort((short) Wire.VERSION);
        b.putInt(Wire.ROLE_CLIENT).putLong(0);
        str(grid);
        str(member);
        str(new byte[0]);
    }

    void authenticate(long reqId, byte[] token) {
        begin(Wire.AUTHENTICATE, 0, Wire.HEADER + 12 + token.length);
        b.putLong(reqId).putInt(token.length).put(token);
    }

    /** A TableRequest or Ping. */
    void request(int type, long reqId) {
        request(type, 0, reqId);
    }

    /** A request of a partition that has nothing but its id: a RegionList. */
    void request(int type, int partition, long reqId) {
        begin(type, partition, Wire.HEADER + 8);
        b.putLong(reqId);
    }

    /** A change of a region under a number of the session; received is the last number of those that all have answers. */
    void regionApply(int partition, long epoch, int slot, int generation, long clientSeq, long received, RegionChange c) {
        begin(Wire.REGION_APPLY, partition, Wire.HEADER + 64 + c.region.length + c.key.length + c.value.length);
        b.putLong(epoch).putInt(slot).putInt(generation).putLong(clientSeq).putLong(received);
        b.put(c.op).put(c.condition).put((byte) c.region.length).put((byte) 0).putInt(c.offset).putLong(c.version).putLong(c.lifeNs);
        b.putInt(c.key.length).putInt(c.value.length).put(c.region).put(c.key).put(c.value);
    }

    void regionGet(int partition, long reqId, int mode, byte[] region, byte[] key) {
        begin(Wire.REGION_GET, partition, Wire.HEADER + 16 + region.length + key.length);
        b.putLong(reqId).put((byte) mode).put((byte) region.length).putShort((short) 0).putInt(key.length).put(region).put(key);
    }

    void regionScan(int partition, long reqId, int mode, boolean behind, int maxBytes, byte[] region, byte[] from, byte[] prefix) {
        begin(Wire.REGION_SCAN, partition, Wire.HEADER + 24 + region.length + from.length + prefix.length);
        b.putLong(reqId).put((byte) mode).put((byte) region.length).put((byte) (behind ? 1 : 0)).put((byte) 0);
        b.putInt(maxBytes).putInt(from.length).putInt(prefix.length).put(region).put(from).put(prefix);
    }

    void openSession(int partition, long reqId, long idHi, long idLo, long epoch, long attempt) {
        begin(Wire.OPEN_SESSION, partition, Wire.HEADER + 40);
        b.putLong(reqId).putLong(idHi).putLong(idLo).putLong(epoch).putLong(attempt);
    }

    void submit(int partition, long epoch, int slot, int generation, long clientSeq, byte[] fix, int off, int len) {
        begin(Wire.SUBMIT, partition, Wire.SUBMIT_FIXED + len);
        b.putLong(epoch).putInt(slot).putInt(generation).putLong(clientSeq).put(fix, off, len);
    }

    void get(int partition, long reqId, int by, int mode, long seq, byte[] key) {
        begin(Wire.GET, partition, Wire.HEADER + 24 + key.length);
        b.putLong(reqId).putLong(seq).put((byte) by).put((byte) mode).putShort((short) key.length).putInt(0).put(key);
    }

    void readLog(int partition, long reqId, long fromSeq, int maxBytes) {
        begin(Wire.READ_LOG, partition, Wire.HEADER + 24);
        b.putLong(reqId).putLong(fromSeq).putInt(maxBytes).putInt(0);
    }

    void follow(int partition, long reqId, long fromSeq, long fromHash, int lineage, int window, byte[] account) {
        begin(Wire.FOLLOW, partition, Wire.HEADER + 36 + 1 + 1 + account.length);
        b.putLong(reqId).putLong(fromSeq).putLong(fromHash).putInt(lineage).putInt(window);
        b.putInt(account.length == 0 ? 0 : 1);
        str(new byte[0]);
        str(account);
    }

    void followCredit(int partition, long reqId, long through, int window) {
        begin(Wire.FOLLOW_CREDIT, partition, Wire.HEADER + 24);
        b.putLong(reqId).putLong(through).putInt(window).putInt(0);
    }
}
