package dev.ordergrid.client;

/** The client, session or follower was closed. */
public final class ClosedException extends GridException {
    private static final long serialVersionUID = 1;

    ClosedException(String what) {
        super(what + " is closed; open a new one", null, false);
    }

    @Override
    public Fate fate() {
        return Fate.REFUSED;
    }
}
