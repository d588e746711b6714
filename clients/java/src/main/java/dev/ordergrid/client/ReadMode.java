package dev.ordergrid.client;

/** How fresh a read has to be. */
public enum ReadMode {
    /** Linearizable without relying on clocks: the primary answers after its copies have confirmed that it still is. */
    CONFIRMED(1),
    /** Answered at once while the primary's lease is alive. */
    LEASED(2),
    /** Answered by a backup from what it knows committed, and may be stale; {@link Order#commitSeq} says how far it was. */
    BACKUP(3);

    final int wire;

    ReadMode(int wire) {
        this.wire = wire;
    }
}
