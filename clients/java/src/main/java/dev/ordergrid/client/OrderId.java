package dev.ordergrid.client;

/**
 * The grid's id of an order, as text {@code p1/17}. Sequence numbers repeat after an accepted loss of data; an
 * {@link OrderName} does not.
 *
 * @param partition number of the partition, 0 to 1,023
 * @param seq       place in the partition's log, 1 or more
 */
public record OrderId(int partition, long seq) {
    /**
     * Reads {@code p1/17}.
     *
     * @throws IllegalArgumentException if it is no order id; the message names the value and what is allowed
     */
    public static OrderId parse(String text) {
        int slash = text.indexOf('/');
        if (text.startsWith("p") && number(text, 1, slash) && number(text, slash + 1, text.length())) {
            try {
                int partition = Integer.parseUnsignedInt(text, 1, slash, 10);
                long seq = Long.parseUnsignedLong(text, slash + 1, text.length(), 10);
                if (partition >= 0 && partition < Wire.MAX_PARTITIONS && seq != 0) {
                    return new OrderId(partition, seq);
                }
            } catch (NumberFormatException e) {
                // the message below says what is allowed
            }
        }
        throw new IllegalArgumentException("order id is \"" + shortened(text) + "\", allowed: p<partition>/<seq>, for example p1/17");
    }

    /** Reports whether text[from, to) is a decimal number as the grid writes it: digits, no leading zero but 0 itself. */
    private static boolean number(String text, int from, int to) {
        if (to <= from || text.charAt(from) == '0' && to > from + 1) {
            return false;
        }
        return text.substring(from, to).chars().allMatch(c -> c >= '0' && c <= '9');
    }

    static String shortened(String text) {
        return text.length() > 80 ? text.substring(0, 80) + "..." : text;
    }

    @Override
    public String toString() {
        return "p" + partition + "/" + Long.toUnsignedString(seq);
    }
}
