package dev.ordergrid.client;

/**
 * An order's id with what distinguishes it from any other order that ever gets the id, as text
 * {@code p1/17@3-1c9f0e2a77b3d401}.
 *
 * @param id    the order id
 * @param epoch in which it was ordered; 0: not known
 * @param hash  of its log entry; 0: not known
 */
public record OrderName(OrderId id, long epoch, long hash) {
    /**
     * Reads {@code p1/17}, {@code p1/17@3} or {@code p1/17@3-1c9f0e2a77b3d401}.
     *
     * @throws IllegalArgumentException if it is none of these
     */
    public static OrderName parse(String text) {
        int at = text.indexOf('@');
        if (at < 0) {
            return new OrderName(OrderId.parse(text), 0, 0);
        }
        OrderId id = OrderId.parse(text.substring(0, at));
        String rest = text.substring(at + 1);
        int dash = rest.indexOf('-');
        try {
            long epoch = Long.parseUnsignedLong(dash < 0 ? rest : rest.substring(0, dash));
            long hash = 0;
            if (dash >= 0) {
                hash = rest.length() - dash == 17 ? Long.parseUnsignedLong(rest.substring(dash + 1), 16) : 0;
            }
            if (epoch != 0 && (dash < 0 || hash != 0)) {
                return new OrderName(id, epoch, hash);
            }
        } catch (NumberFormatException e) {
            // the message below says what is allowed
        }
        throw new IllegalArgumentException("order name is \"" + OrderId.shortened(text)
                + "\", allowed: p<partition>/<seq>@<epoch> or p<partition>/<seq>@<epoch>-<16 hex digits>, as in the receipt");
    }

    boolean is(long foundEpoch, long foundHash) {
        return hash != 0 ? hash == foundHash : epoch == 0 || epoch == foundEpoch;
    }

    @Override
    public String toString() {
        if (hash != 0) {
            return id + "@" + Long.toUnsignedString(epoch) + "-" + String.format("%016x", hash);
        }
        return epoch != 0 ? id + "@" + Long.toUnsignedString(epoch) : id.toString();
    }
}
