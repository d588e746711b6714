package dev.ordergrid.client;

import java.time.Duration;

/**
 * An order, or a change of a region, was sent and its answer never came. It may or may not have been accepted. The
 * session does not send it again; what was sent before may still be accepted. {@link GridClient#getByClOrdId}, or
 * {@link Region#get}, answers once a primary serves again.
 */
public final class UnknownOutcomeException extends GridException {
    private static final long serialVersionUID = 1;
    private final int partition;
    private final long clientSeq;
    private final Duration waited;

    UnknownOutcomeException(int partition, long clientSeq, long waitedNs, Throwable cause, boolean region) {
        super("p" + partition + ": outcome unknown after " + Clock.text(waitedNs) + ": " + (region ? "change " : "order ") + clientSeq
                + " of the session was sent and its fate was not answered (" + text(cause) + "); it may or may not have been accepted, "
                + (region ? "read the key before changing it again" : "ask getByClOrdId before submitting it again"), cause, false);
        this.partition = partition;
        this.clientSeq = clientSeq;
        this.waited = Duration.ofNanos(waitedNs);
    }

    /** Partition the order was sent to. */
    public int partition() {
        return partition;
    }

    /** Number of the order in its session. */
    public long clientSeq() {
        return clientSeq;
    }

    /** Time since it was submitted. */
    public Duration waited() {
        return waited;
    }
}
