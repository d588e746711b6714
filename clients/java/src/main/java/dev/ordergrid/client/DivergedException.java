package dev.ordergrid.client;

/**
 * What a follower holds is another history than the log: the loss of data was accepted since, or it is another grid's.
 */
public final class DivergedException extends GridException {
    private static final long serialVersionUID = 1;
    private final Position held;
    private final long hash;

    DivergedException(int partition, Position held, long hash, String text) {
        super("follow p" + partition + ": " + text + "; set aside what was read behind the entries both have", null, false);
        this.held = held;
        this.hash = hash;
    }

    /** What the follower held. */
    public Position held() {
        return held;
    }

    /** Hash of the log's entry of that number; 0: it has none. */
    public long hash() {
        return hash;
    }
}
