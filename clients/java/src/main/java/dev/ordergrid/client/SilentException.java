package dev.ordergrid.client;

/** Ends a connection that is silent although an answer is owed. */
final class SilentException extends GridException {
    private static final long serialVersionUID = 1;

    SilentException(String address, long owedNs, String then) {
        super(address + " owed an answer for " + Clock.text(owedNs) + ", " + then, null, false);
    }
}
