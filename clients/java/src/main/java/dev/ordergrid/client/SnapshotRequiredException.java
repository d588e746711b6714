package dev.ordergrid.client;

/** Entries that a follower wants are freed. What they were is downstream. */
public final class SnapshotRequiredException extends GridException {
    private static final long serialVersionUID = 1;
    private final Position after;

    SnapshotRequiredException(int partition, Position after, String text) {
        super("follow p" + partition + ": " + text + "; follow from entry " + after.seq() + " on, the sinks have those before", null, false);
        this.after = after;
    }

    /** Where the log begins: follow from here. */
    public Position after() {
        return after;
    }
}
