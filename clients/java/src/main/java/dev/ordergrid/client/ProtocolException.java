package dev.ordergrid.client;

/**
 * A peer broke the protocol. The connection it came over was closed; orders in flight on it are sent again on a new
 * one.
 */
public final class ProtocolException extends GridException {
    private static final long serialVersionUID = 1;
    private final String address;

    ProtocolException(String address, String what, Throwable cause) {
        super("protocol violation by " + address + ": " + what + (cause == null ? "" : ": " + cause.getMessage()), cause, false);
        this.address = address;
    }

    /** The peer, {@code host:port}. */
    public String address() {
        return address;
    }
}
