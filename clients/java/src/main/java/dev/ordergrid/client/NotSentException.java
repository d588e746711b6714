package dev.ordergrid.client;

import java.time.Duration;

/** An order never left the process, and never will. It can be submitted again. */
public final class NotSentException extends GridException {
    private static final long serialVersionUID = 1;
    private final int partition;
    private final Duration waited;

    NotSentException(int partition, long waitedNs, Throwable cause) {
        super("p" + partition + ": not sent after " + Clock.text(waitedNs) + " (" + text(cause)
                + "); it was not accepted and can be submitted again", cause, false);
        this.partition = partition;
        this.waited = Duration.ofNanos(waitedNs);
    }

    /** Partition the order belongs to. */
    public int partition() {
        return partition;
    }

    /** Time since it was submitted. */
    public Duration waited() {
        return waited;
    }

    @Override
    public Fate fate() {
        return Fate.REFUSED;
    }
}
