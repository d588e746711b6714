package dev.ordergrid.client;

/** What is known about an order after a submit method returned or threw. */
public enum Fate {
    /** Committed on as many copies as the receipt names. */
    ACCEPTED,
    /** Not accepted, and this submission never will be: it can be submitted again. */
    REFUSED,
    /** It may or may not have been accepted: read it by its ClOrdID before submitting it again. */
    UNKNOWN;

    /**
     * What {@code error} means for the order, as thrown by a submit method or passed to a {@link Completion}.
     *
     * @param error null for an order that has a receipt
     */
    public static Fate of(Throwable error) {
        if (error == null) {
            return ACCEPTED;
        }
        return error instanceof GridException e ? e.fate() : UNKNOWN;
    }
}
