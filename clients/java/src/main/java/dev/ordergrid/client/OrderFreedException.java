package dev.ordergrid.client;

/** The order is not held any more, or may be one of those that are not: every sink of the grid holds them. */
public final class OrderFreedException extends GridException {
    private static final long serialVersionUID = 1;
    private final int partition;
    private final long freed;

    OrderFreedException(int partition, String what, long freed) {
        super("p" + partition + ": " + what + " is not held: entries up to " + freed + " of p" + partition
                + " are freed, every sink of the grid holds them", null, false);
        this.partition = partition;
        this.freed = freed;
    }

    /** The partition that freed entries. */
    public int partition() {
        return partition;
    }

    /** Last sequence number that is freed. */
    public long freed() {
        return freed;
    }
}
