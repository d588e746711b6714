package dev.ordergrid.client;

/** No committed order has the id asked for. */
public final class OrderNotFoundException extends GridException {
    private static final long serialVersionUID = 1;

    OrderNotFoundException(String what) {
        super(what + " is not found: no committed order has it", null, false);
    }
}
