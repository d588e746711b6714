package dev.ordergrid.client;

/** No node answered a read or a connect in time. The message has the last failures. */
public final class UnavailableException extends GridException {
    private static final long serialVersionUID = 1;

    UnavailableException(String what, Throwable last) {
        super(what + ": unavailable" + (last == null ? "" : ": " + text(last)), last, false);
    }
}
