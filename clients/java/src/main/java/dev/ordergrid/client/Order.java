package dev.ordergrid.client;

import java.time.Instant;

/** A committed order as it stands in the log. */
public final class Order {
    private final int partition;
    private final LogEntry entry;
    private final long commitSeq;
    private final String from;

    Order(int partition, LogEntry entry, long commitSeq, String from) {
        this.partition = partition;
        this.entry = entry;
        this.commitSeq = commitSeq;
        this.from = from;
    }

    /** The grid order id. */
    public OrderId id() {
        return new OrderId(partition, entry.seq());
    }

    /** The id with epoch and hash, as {@link Receipt#name}. */
    public OrderName name() {
        return new OrderName(id(), entry.epoch(), entry.hash());
    }

    /** Epoch in which it was ordered. */
    public long epoch() {
        return entry.epoch();
    }

    /** When the primary received it. */
    public Instant received() {
        return entry.received();
    }

    /** FIX tag 11. */
    public String clOrdId() {
        return entry.clOrdId();
    }

    /** FIX tag 55. */
    public String symbol() {
        return entry.symbol();
    }

    /** FIX tag 1, empty if the message has none. */
    public String account() {
        return entry.account();
    }

    /** FIX tag 54, 0 if the message has none. */
    public char side() {
        return entry.side();
    }

    /** The message verbatim. */
    public byte[] fix() {
        return entry.payload();
    }

    /** The log entry. */
    public LogEntry entry() {
        return entry;
    }

    /** Committed prefix of the replica that answered. */
    public long commitSeq() {
        return commitSeq;
    }

    /** Address of that replica. */
    public String from() {
        return from;
    }

    @Override
    public String toString() {
        return name() + " " + clOrdId();
    }
}
