package dev.ordergrid.client;

/**
 * A refusal. Thrown by a submit method it means that the order was not accepted and took no sequence number; as the
 * cause of an {@link UnknownOutcomeException}, that a copy was refused by a node that had not checked whether an
 * earlier one was accepted.
 */
public final class RejectedException extends GridException {
    private static final long serialVersionUID = 1;
    private final int partition;
    private final int number;
    private final long tag;
    private final long detail;
    private final long limit;
    private final String text;
    final String from;

    RejectedException(int partition, int number, long tag, long detail, long limit, String text, String from) {
        super(describe(partition, number, tag, text), null, false);
        this.partition = partition;
        this.number = number;
        this.tag = tag;
        this.detail = detail;
        this.limit = limit;
        this.text = text;
        this.from = from;
    }

    RejectedException(int partition, In.Reject r, String from) {
        this(partition, r.code(), r.tag(), r.detail(), r.limit(), r.text(), from);
    }

    private static String describe(int partition, int number, long tag, String text) {
        RejectCode code = RejectCode.of(number);
        return "p" + partition + ": refused (" + (code == RejectCode.OTHER ? "code " + number : code.name()) + ")"
                + (tag == 0 ? "" : ", tag " + tag) + (text.isEmpty() ? "" : ": " + text) + (code.hint.isEmpty() ? "" : "; " + code.hint);
    }

    /** Partition that refused. */
    public int partition() {
        return partition;
    }

    /** The reason. */
    public RejectCode code() {
        return RejectCode.of(number);
    }

    /** The reason as the number of docs/protocol.md. */
    public int number() {
        return number;
    }

    /** FIX tag at fault, 0 for none. */
    public long tag() {
        return tag;
    }

    /** Its meaning depends on the code. */
    public long detail() {
        return detail;
    }

    /** What is allowed, in the unit of detail; 0 if the code has no limit. */
    public long limit() {
        return limit;
    }

    /** The node's words: field, value and what is allowed. */
    public String text() {
        return text;
    }

    @Override
    public Fate fate() {
        return Fate.REFUSED;
    }
}
