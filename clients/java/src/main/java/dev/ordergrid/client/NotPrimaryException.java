package dev.ordergrid.client;

/** Carries the hint of a NotPrimary frame to what tries again. */
final class NotPrimaryException extends GridException {
    private static final long serialVersionUID = 1;
    final long epoch;
    final String hint;

    NotPrimaryException(int partition, String address, long epoch, String hint) {
        super("p" + partition + ": " + address + " is not the primary at epoch " + epoch + (hint.isEmpty() ? " and knows none" : ", " + hint + " is"), null, false);
        this.epoch = epoch;
        this.hint = hint;
    }
}
