package dev.ordergrid.client;

/** A node's reason for closing the connection. */
public final class GoawayException extends GridException {
    private static final long serialVersionUID = 1;
    static final int VERSION = 2;
    static final int GRID = 3;
    static final int DRAINING = 4;
    static final int ROLE = 6;
    static final int TLS = 7;
    static final int UNAUTHENTICATED = 8;
    static final int NOT_PERMITTED = 9;
    private final String address;
    private final int code;

    GoawayException(String address, int code, String text) {
        super(address + " closed the connection (goaway " + code + "): " + text + hint(code), null, false);
        this.address = address;
        this.code = code;
    }

    private static String hint(int code) {
        return switch (code) {
            case VERSION -> "; use a client and a node of neighbouring releases";
            case GRID -> "; correct Config.grid or Config.endpoints";
            case UNAUTHENTICATED -> "; see Config.tls and Config.token";
            case NOT_PERMITTED -> "; ask for a rule in spec.security.authorization.rules of the OrderGrid";
            default -> "";
        };
    }

    /** The node, {@code host:port}. */
    public String address() {
        return address;
    }

    /** The code of docs/protocol.md. */
    public int code() {
        return code;
    }

    boolean permanent() {
        return code == VERSION || code == GRID || code == ROLE || code == UNAUTHENTICATED || code == NOT_PERMITTED;
    }
}
