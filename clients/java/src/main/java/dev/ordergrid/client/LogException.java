package dev.ordergrid.client;

/** A replica's log is invalid: a gap, a broken chain of hashes, or an entry that cannot be decoded. */
public final class LogException extends GridException {
    private static final long serialVersionUID = 1;
    private final long seq;

    LogException(int partition, String address, long seq, String what) {
        super("log of p" + partition + " at " + address + ": entry " + seq + ": " + what, null, false);
        this.seq = seq;
    }

    /** The entry at fault. */
    public long seq() {
        return seq;
    }
}
