package dev.ordergrid.client;

/** As many orders are unanswered as the session may have. Nothing was sent: submit again after an answer. */
public final class WindowFullException extends GridException {
    private static final long serialVersionUID = 1;

    WindowFullException(int partition, long limit) {
        super("p" + partition + ": window full: " + limit + " orders are unanswered, allowed: " + limit
                + "; submit again after an answer, or use submit, which waits", null, false);
    }

    @Override
    public Fate fate() {
        return Fate.REFUSED;
    }
}
