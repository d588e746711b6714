package dev.ordergrid.client;

/** The id asked for with an {@link OrderName} is that of another order now. */
public final class OtherOrderException extends GridException {
    private static final long serialVersionUID = 1;

    OtherOrderException(OrderName wanted, OrderName found, long lineage) {
        super("order " + wanted + " is not held: another order, " + found + ", has the id. The partition is of lineage " + lineage
                + ": the loss of data was accepted since, the grid was made again under its name, or its record went back in time. "
                + "Look for the order's ClOrdID, and for its line in the files of a sink that were set aside", null, false);
    }
}
