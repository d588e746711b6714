package dev.ordergrid.client;

import java.security.SecureRandom;

/**
 * The state of a {@link Session}: one replicated session of the grid and the connection it is open on. Everything is
 * guarded by {@code mu}. {@link Answers} handles what comes, {@link Recovery} what is lost, {@link Callbacks} what
 * asynchronous callers wait for.
 */
final class Link extends Pump {
    static final int MAX_WINDOW = 1 << 16;
    private static final SecureRandom RANDOM = new SecureRandom();

    final GridClient client;
    final int partition;
    final boolean regions; // it is for changes of regions
    long idHi;
    long idLo;
    final Window win;
    final Empties empties = new Empties();
    final Stats stats = new Stats();
    final Trouble trouble = new Trouble();
    final Answers answers = new Answers(this);
    final Recovery recovery = new Recovery(this);
    final Suspicion suspicion = new Suspicion(this);
    final Callbacks callbacks = new Callbacks(this);
    final Awaited awaited = new Awaited(this);

    int slot;
    int generation;
    long expected; // what a node last reported as missing, 0 for nothing
    long epoch;
    long attempt; // of opening the session; rises with every connection
    boolean opened; // slot and generation are valid
    boolean evicting; // the grid forgot the session; answers still come in
    boolean closed;
    long lastAck; // highest acknowledged clientSeq
    long lastSeq; // and the place in the log it got
    long lastOk; // time of the last answer
    private long lastSweep;
    String member = ""; // member id of the node connected to
    Throwable broken; // permanent: no node will ever accept this session

    Link(GridClient client, int partition, boolean regions) {
        this.client = client;
        this.partition = partition;
        this.regions = regions;
        win = new Window(client.config.maxInFlight());
        newId();
    }

    void newId() {
        do {
            idHi = RANDOM.nextLong();
            idLo = RANDOM.nextLong();
        } while ((idHi | idLo) == 0);
    }

    /** Gives o its number and, with a connection, its place in the write buffer. Else it goes after the reconnect. */
    void send(Window.Pending o) {
        stats.submitted++;
        if (awaited.takes(o)) {
            return;
        }
        win.add(o);
        Conn c = conn;
        if (c != null && !evicting) {
            encode(c, o.clientSeq);
            return;
        }
        if (opened) {
            trouble.note(this, o.submitted, o.submitted, null);
        }
        recovery.connect();
    }

    /**
     * Appends the Submit frame of one number. One whose order was given up, or that was refused, is sent without
     * payload: the node cannot accept that, so the number is used up and nothing else happens, unless the order had
     * been applied before; then the stored reply comes back.
     */
    void encode(Conn c, long seq) {
        Window.Cell cell = win.at(seq);
        if (cell.settled) {
            encodeEmpty(c, seq);
            return;
        }
        if (cell.sent) {
            cell.resent = true;
            stats.resent++;
        }
        cell.sent = true;
        Window.Pending o = cell.ord;
        if (o == null) {
            c.out.submit(partition, epoch, slot, generation, seq, NOTHING, 0, 0);
        } else if (o.change != null) {
            c.out.regionApply(partition, epoch, slot, generation, seq, Math.min(win.head, seq) - 1, o.change);
        } else {
            c.out.submit(partition, epoch, slot, generation, seq, o.payload, o.off, o.len);
        }
    }

    private static final byte[] NOTHING = new byte[0];

    /** Uses up a number that no caller waits for. */
    void encodeEmpty(Conn c, long seq) {
        empties.sent(seq);
        c.out.submit(partition, epoch, slot, generation, seq, NOTHING, 0, 0);
    }

    void push() {
        Conn c = conn;
        if (c != null) {
            flush(c, false);
        }
    }

    /** Gives an order its outcome. The caller updates the cell. */
    void finish(Window.Pending o, Receipt r, GridException e) {
        awaited.finished(o, e);
        if (o.callback != null) {
            callbacks.add(o.callback, r, e);
            win.release(o);
            return;
        }
        o.receipt = r;
        o.error = e;
        o.done = true;
        o.waiter.signal();
    }

    /** Marks a number as answered and moves the head over answered ones. */
    void settle(long seq) {
        Window.Cell cell = win.at(seq);
        cell.sent = true;
        cell.resent = true;
        cell.settled = true;
        while (win.head < win.next && win.at(win.head).settled) {
            win.head++;
        }
        room();
    }

    /** Orders that have no answer, or wait to be sent again. */
    long unanswered() {
        return win.inFlight() + awaited.size();
    }

    /** Reports whether the session has as many orders as it may. */
    boolean full() {
        return unanswered() >= win.limit;
    }

    /** Wakes the callers that wait for room in the window. */
    void room() {
        long n = win.limit - unanswered();
        for (Waiter w = first; w != null && n > 0; w = w.next) {
            if (w.wantsRoom) {
                w.signal();
                n--;
            }
        }
    }

    /**
     * Ends waiting for an answer. The number stays in the window until the grid has answered it; it is never sent with
     * its payload again.
     */
    void giveUp(long seq, Throwable cause) {
        Window.Cell cell = win.at(seq);
        Window.Pending o = cell.ord;
        cell.ord = null;
        long waited = Clock.now() - o.submitted;
        if (cell.sent) {
            stats.unknown++;
            finish(o, null, new UnknownOutcomeException(partition, seq, waited, cause, regions));
        } else {
            stats.notSent++;
            finish(o, null, new NotSentException(partition, waited, cause));
        }
        // Numbers at the end that no node has seen can be used again.
        while (win.next > win.head) {
            Window.Cell end = win.at(win.next - 1);
            if (end.ord != null || end.sent) {
                break;
            }
            win.next--;
        }
        room();
    }

    /** Notes an answer of a serving primary; the batch it came in says when. */
    void good() {
        lastOk = now;
        if (trouble.any()) {
            Outage o = trouble.end(this);
            if (o != null) {
                client.ended(this, o);
            }
        }
    }

    /** Reports whether a caller waits for a connection. */
    boolean wanted() {
        if (first != null || awaited.size() > 0) {
            return true;
        }
        for (long seq = win.head; seq < win.next; seq++) {
            if (win.at(seq).ord != null) {
                return true;
            }
        }
        return false;
    }

    /** Gives up the orders whose time is over. */
    void sweep(long at) {
        lastSweep = at;
        for (long seq = win.head; seq < win.next; seq++) {
            Window.Pending o = win.at(seq).ord;
            if (o != null && o.deadline <= at) {
                giveUp(seq, new TimedOutException(o.deadline - o.submitted, trouble.last));
            }
        }
        awaited.sweep(at);
    }

    void giveUpAll(Throwable cause) {
        for (long seq = win.head; seq < win.next; seq++) {
            if (win.at(seq).ord != null) {
                giveUp(seq, cause);
            }
        }
        awaited.end(cause);
    }

    /** Ends the session: orders without an answer are not sent, or of unknown outcome. */
    void close() {
        mu.lock();
        try {
            if (closed) {
                return;
            }
            closed = true;
            ClosedException cause = new ClosedException("the session");
            if (conn != null) {
                fail(conn, cause);
            }
            giveUpAll(cause);
            wakeAll();
            recovery.stop();
            callbacks.wake();
            callbacks.run(Clock.now());
        } finally {
            mu.unlock();
        }
    }

    @Override
    void onFrame(Conn c, int n) throws FrameException {
        answers.onFrame(c, n);
    }

    @Override
    GridException violation(Conn c, String what, Throwable cause) {
        stats.violations++;
        ProtocolException e = new ProtocolException(c.addr, "p" + partition + ": " + what, cause);
        client.log(System.Logger.Level.ERROR, e.getMessage());
        return e;
    }

    @Override
    void onBroken(Conn c, Throwable cause) {
        if (closed) {
            return;
        }
        long waiting = 0;
        for (long seq = win.head; seq < win.next; seq++) {
            Window.Cell cell = win.at(seq);
            if (cell.ord != null) {
                waiting = Math.max(cell.submitted, lastOk);
                break;
            }
        }
        if (trouble.since != 0) {
            trouble.triedAt = Clock.now(); // again, and no good answer in between
        }
        trouble.note(this, Clock.now(), waiting, cause);
        client.log(System.Logger.Level.INFO, "p" + partition + ": connection to " + c.addr + " lost, " + win.inFlight() + " orders unanswered: " + cause.getMessage());
        if (wanted()) {
            recovery.start(Recovery.Hint.of(cause), c.addr);
        }
    }

    @Override
    void onPause(Conn c, long at) {
        if (at - lastSweep >= Clock.TICK / 2) {
            sweep(at);
            if (conn == c) {
                suspicion.look(c, at);
            }
        }
        if (conn == c) {
            awaited.send(c, at);
        }
        callbacks.run(at);
    }
}
