package dev.ordergrid.client;

/** A connection failed because of TLS: only one end speaks it, or one does not accept the other's certificate. */
public final class TlsException extends GridException {
    private static final long serialVersionUID = 1;

    TlsException(String address, String what, Throwable cause) {
        super(address + ": " + what, cause, false);
    }
}
