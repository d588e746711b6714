package dev.ordergrid.client;

/**
 * An accepted order's place in the log and its safety.
 *
 * @param partition of the order, 0 to 1,023
 * @param seq       place in the partition's log; dense over all kinds of entries
 * @param epoch     configuration it was ordered in
 * @param hash      of the order's log entry, which covers all entries before it; 0: the entry is freed
 * @param lineage   of the partition when the receipt was given. When the partition's is higher, the loss of data has
 *                  been accepted since: the order may be gone
 * @param copies    processes that hold it in memory, the primary included
 * @param duplicate the grid had applied this very submission before (the first answer was lost) and gave the stored
 *                  reply again
 */
public record Receipt(int partition, long seq, long epoch, long hash, long lineage, int copies, boolean duplicate) {
    /** The grid order id. */
    public OrderId id() {
        return new OrderId(partition, seq);
    }

    /** The id with everything that distinguishes the order from others. */
    public OrderName name() {
        return new OrderName(id(), epoch, hash);
    }

    @Override
    public String toString() {
        return name() + (lineage != 0 ? " lineage " + lineage : "") + " copies " + copies + (duplicate ? " (duplicate)" : "");
    }
}
