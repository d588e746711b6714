package dev.ordergrid.client;

/** The waiting thread was interrupted; its interrupt status is set. */
final class InterruptedWaitException extends GridException {
    private static final long serialVersionUID = 1;

    InterruptedWaitException() {
        super("the thread was interrupted", null, false);
    }
}
