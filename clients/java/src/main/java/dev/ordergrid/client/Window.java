package dev.ordergrid.client;

import java.util.ArrayDeque;
import java.util.Arrays;

/** The client sequence numbers without an answer, head..next-1. They are contiguous: the grid refuses a gap. */
final class Window {
    /** One submission from submit to its answer. */
    static final class Pending {
        final Waiter waiter = new Waiter();
        byte[] payload; // the caller's bytes (submit) or own (submitAsync)
        int off;
        int len;
        RegionChange change; // in place of payload: a change of a region
        private byte[] own = new byte[0]; // kept for reuse
        long clientSeq;
        long submitted;
        long deadline;
        long again; // until when it is sent again, see Awaited; 0: it was not refused so
        Completion callback; // submitAsync only
        Receipt receipt;
        GridException error;
        boolean done;

        void copy(byte[] b, int from, int n) {
            if (own.length < n) {
                own = new byte[Math.max(n, 512)];
            }
            System.arraycopy(b, from, own, 0, n);
            payload = own;
            off = 0;
            len = n;
        }
    }

    /** The place of one number. */
    static final class Cell {
        Pending ord; // null once answered or given up
        boolean sent; // it was handed to a connection
        boolean resent; // … to more than one
        boolean settled; // it has an answer. It may still stand between two that have none
        long submitted;

        /**
         * The node applied nothing. Copies on earlier connections do not count: it had checked whether one was
         * applied, and takes none since this connection opened the session. So the order counts as not sent.
         */
        void refused() {
            sent = false;
            resent = false;
        }
    }

    private final Cell[] cells; // a power of two
    long head = 1; // lowest number without an answer
    long next = 1; // the next one to give
    long limit; // most numbers in flight
    private final ArrayDeque<Pending> free = new ArrayDeque<>();

    Window(int limit) {
        cells = new Cell[Integer.highestOneBit(Math.max(limit, 2) - 1) << 1];
        Arrays.setAll(cells, i -> new Cell());
        this.limit = limit;
    }

    Cell at(long seq) {
        return cells[(int) seq & cells.length - 1];
    }

    long inFlight() {
        return next - head;
    }

    /** Gives the next number to o. */
    void add(Pending o) {
        o.clientSeq = next;
        Cell c = at(next);
        c.ord = o;
        c.sent = false;
        c.resent = false;
        c.settled = false;
        c.submitted = o.submitted;
        next++;
    }

    /** Reports whether seq has no answer yet, or stands between two that have none. */
    boolean holds(long seq) {
        return seq >= head && seq < next;
    }

    /** Reports whether the node owes an answer to the order of this number. */
    boolean awaits(long seq) {
        if (!holds(seq)) {
            return false;
        }
        Cell c = at(seq);
        return c.sent && !c.settled;
    }

    Pending take() {
        Pending o = free.pollLast();
        return o == null ? new Pending() : o;
    }

    void release(Pending o) {
        o.payload = null;
        o.change = null;
        o.callback = null;
        o.receipt = null;
        o.error = null;
        o.done = false;
        o.again = 0;
        free.addLast(o);
    }
}
