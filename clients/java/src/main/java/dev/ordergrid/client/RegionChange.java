package dev.ordergrid.client;

/** A change of a region on its way: the message without its numbers, and what a take removed. */
final class RegionChange {
    static final byte PUT = 4;
    static final byte PATCH = 5;
    static final byte REMOVE = 6;
    static final byte TAKE = 7;
    static final byte CLEAR = 8;
    static final byte IF_ABSENT = 1;
    static final byte IF_VERSION = 2;
    private static final byte[] NOTHING = {};

    final byte op;
    final byte[] region;
    final byte[] key;
    final byte[] value;
    byte condition; // 0: none
    int offset; // of a patch
    long version;
    long lifeNs; // of a put; 0: as the region has it, -1: for ever
    byte[] taken; // of the answer

    /** Keeps copies: the change may be sent again. */
    RegionChange(byte op, byte[] region, byte[] key, byte[] value) {
        this.op = op;
        this.region = region;
        this.key = key.clone();
        this.value = value.clone();
    }

    RegionChange(byte op, byte[] region, byte[] key) {
        this(op, region, key, NOTHING);
    }

    static RegionChange clear(byte[] region) {
        return new RegionChange(CLEAR, region, NOTHING);
    }
}
