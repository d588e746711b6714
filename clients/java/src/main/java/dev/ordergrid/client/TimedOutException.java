package dev.ordergrid.client;

/** A deadline passed. It carries the last failure, because that is what an operator has to fix. */
final class TimedOutException extends GridException {
    private static final long serialVersionUID = 1;

    TimedOutException(long limitNs, Throwable last) {
        super("deadline of " + Clock.text(limitNs) + " passed" + (last == null ? "" : "; last failure: " + text(last)), last, false);
    }
}
