package dev.ordergrid.client;

/**
 * Gets the outcome of an asynchronous order, once, in the order of the answers, on a thread of the session. It must not
 * block, and may submit again with {@link Session#enqueue} or {@link Session#submitAsync}.
 */
@FunctionalInterface
public interface Completion {
    /**
     * Called with the outcome.
     *
     * @param receipt null if the order was not accepted, or that is not known
     * @param error   null if there is a receipt; {@link Fate#of} says what it means for the order
     */
    void done(Receipt receipt, GridException error);
}
