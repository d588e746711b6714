package dev.ordergrid.client;

/** A change of a region was not made: the key has no value, or one of another version than the change requires. */
public final class ConditionFailedException extends GridException {
    private static final long serialVersionUID = 1;
    private final int partition;
    private final long version;

    ConditionFailedException(RejectedException refusal) {
        super("p" + refusal.partition() + (refusal.detail() == 0 ? ": the key has no value, as the change requires"
                : ": the value has version " + refusal.detail() + ", not what the change requires"), refusal, false);
        partition = refusal.partition();
        version = refusal.detail();
    }

    /** Partition of the key. */
    public int partition() {
        return partition;
    }

    /** Version of the value that is there, 0 for none. */
    public long version() {
        return version;
    }

    @Override
    public Fate fate() {
        return Fate.REFUSED;
    }
}
