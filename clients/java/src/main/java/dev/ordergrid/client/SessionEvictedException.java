package dev.ordergrid.client;

/**
 * The cause of an {@link UnknownOutcomeException}: the grid has forgotten the session, so a retry could not be
 * recognised and was not made.
 */
public final class SessionEvictedException extends GridException {
    private static final long serialVersionUID = 1;

    SessionEvictedException() {
        super("the session was evicted by the grid: it was idle while other clients needed its place", null, false);
    }
}
