package dev.ordergrid.client;

/**
 * A place in a partition's log: an entry, and what tells its history from others.
 *
 * @param seq     of the entry; 0: before the first
 * @param hash    of the entry; 0: not known, so another history is not noticed
 * @param lineage of the log that it was read from; 0: not known
 */
public record Position(long seq, long hash, int lineage) {
    /** Before the first entry of a log. */
    public static final Position START = new Position(0, 0, 0);
}
