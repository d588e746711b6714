package dev.ordergrid.client;

/** Why a node refused a request: the reject codes of docs/protocol.md. */
public enum RejectCode {
    /** A code of a later release. {@link RejectedException#number} has it. */
    OTHER(0, "it says nothing of copies sent before; update the client"),
    /** Not a valid order; tag and text have the place and the reason. */
    BAD_FIX(1, "correct the message; the same bytes are refused again"),
    /** Another order of the partition has this ClOrdID; detail is its seq. */
    DUPLICATE_CLORDID(2, "use a new ClOrdID, or read the order that has it with getByClOrdId"),
    /** The memory limit is reached; detail: bytes used, limit: bytes allowed. */
    CAPACITY(3, "submit again once entries are freed, or raise the grid's memory"),
    /** A queue is full; detail: entries or reads waiting. */
    OVERLOADED(4, "submit again, slower"),
    /** The session was evicted, or is of another lineage. */
    SESSION_UNKNOWN(5, ""),
    /** Too old: whether it was applied is no longer known. */
    SESSION_WINDOW(6, "read it by its ClOrdID"),
    /** Numbers in between were not seen; detail: the number expected. */
    SEQUENCE_GAP(7, ""),
    /** The node is stopping. */
    DRAINING(8, ""),
    /** Fewer copies than spec.minInSync; detail: members in sync. */
    INSUFFICIENT_IN_SYNC(9, "submit again once a backup has joined, or lower minInSync"),
    /** The order is too long; detail: limit in bytes. */
    TOO_LARGE(10, "send fewer bytes"),
    /** Not known to this version, or not served here. */
    UNSUPPORTED(11, "use a client and a node of neighbouring releases"),
    /** The session is not open on this connection. */
    SESSION_MOVED(12, ""),
    /** Entries are freed up to detail. */
    SNAPSHOT_REQUIRED(13, "read from the entry after them; the sinks have the freed ones"),
    /** The node cannot read its file sink. */
    SINK_UNREADABLE(14, ""),
    /** The client lacks the permission that the text names. */
    NOT_PERMITTED(15, "ask for a rule in spec.security.authorization.rules of the OrderGrid"),
    /** The grid's configuration has no outside reader of that name. */
    READER_UNKNOWN(17, "use one of the names listed"),
    /** What the reader holds is not in the log. */
    DIVERGED(18, ""),
    /** The reader holds an entry that is not committed here yet. */
    READER_AHEAD(19, "ask again later"),
    /** A function of the grid refuses the order; detail: OrdRejReason (103), the text is the function's. */
    FUNCTION_REFUSED(23, ""),
    /** A limit of the grid refuses the order. */
    LIMIT_REFUSED(24, ""),
    /** The partition has no region of that name. */
    REGION_UNKNOWN(26, "name one of the grid's regions; regions() lists them"),
    /** The value is not the one that the change requires, or there is none; detail: its version, 0 for none. */
    CONDITION_FAILED(27, ""),
    /** A copy of the partition does not know the FIX version of the order: nodes are being replaced. */
    VERSION_AWAITED(32, "submit again when all nodes of the grid are updated; nothing was stored");

    final int wire;
    final String hint;

    RejectCode(int wire, String hint) {
        this.wire = wire;
        this.hint = hint;
    }

    private static final RejectCode[] BY_NUMBER = new RejectCode[33];

    static {
        for (RejectCode c : values()) {
            BY_NUMBER[c.wire] = c;
        }
    }

    static RejectCode of(int number) {
        RejectCode c = number < BY_NUMBER.length ? BY_NUMBER[number] : null;
        return c == null ? OTHER : c;
    }

    /**
     * Reports whether a refusal with this code means that no copy of the order was applied, however many were sent:
     * the node gives it after it has looked at the session. Any other code refuses only the copy it answers.
     */
    boolean decides() {
        return switch (this) {
            case BAD_FIX, DUPLICATE_CLORDID, CAPACITY, OVERLOADED, INSUFFICIENT_IN_SYNC, TOO_LARGE, FUNCTION_REFUSED, LIMIT_REFUSED,
                    REGION_UNKNOWN, CONDITION_FAILED, VERSION_AWAITED -> true;
            default -> false;
        };
    }

    /** Reports whether a refused read can succeed later. */
    boolean passing() {
        return this == DRAINING || this == OVERLOADED || this == INSUFFICIENT_IN_SYNC || this == READER_AHEAD;
    }
}
