package dev.ordergrid.client;

import java.io.IOException;
import java.util.ArrayList;
import java.util.List;

/**
 * Connects a session: finds the primary, opens the session there, and sends what is unanswered again under its numbers,
 * oldest first.
 */
final class Recovery {
    /**
     * Bounds the empty frames that close a gap of refused orders. A new primary knows what was applied, not what was
     * refused: after more consecutive refusals than its window it would treat the next number as a gap.
     */
    private static final long MAX_FILL = 1 << 16;

    private final Link s;
    private boolean recovering;
    private volatile boolean stopped;
    private long followed; // highest epoch that was followed without a pause

    Recovery(Link s) {
        this.s = s;
    }

    /** The primary's address as reported by a node, empty for none, and its epoch. */
    record Hint(String address, long epoch) {
        static final Hint NONE = new Hint("", 0);

        /** One that names the node that gave it counts as well: that node was replaced and is the primary again. */
        static Hint of(Throwable e) {
            NotPrimaryException not = GridException.find(e, NotPrimaryException.class);
            if (not != null) {
                return new Hint(not.hint, not.epoch);
            }
            RejectedException reject = GridException.find(e, RejectedException.class);
            if (reject != null && reject.code() == RejectCode.SESSION_MOVED) {
                return new Hint(reject.from, 0);
            }
            return NONE;
        }
    }

    private record Opened(Conn conn, String member, In.SessionOpened m) {}

    boolean recovering() {
        return recovering;
    }

    /** Makes sure that an attempt is running. With mu held. */
    void connect() {
        start(Hint.NONE, "");
    }

    void start(Hint h, String failed) {
        if (recovering || s.closed || s.conn != null) {
            return;
        }
        Trouble t = s.trouble;
        if (t.since != 0 && Clock.now() - Math.max(t.since, t.triedAt) > 4 * s.client.config.retryMaxNs()) {
            t.back.reset(); // first attempt since: the old backoff must not slow it
        }
        recovering = true;
        s.broken = null;
        s.client.fork(() -> recover(h, failed));
        s.client.sweeper.add(s);
    }

    void stop() {
        stopped = true;
        s.client.directory.wake();
    }

    private void recover(Hint from, String lost) {
        Hint h = from;
        String failed = lost;
        long began = Clock.now();
        for (boolean first = true; ; first = false) {
            h = nextTurn(h);
            if (stopped) {
                return;
            }
            String addr = "";
            Opened o = null;
            Throwable error = null;
            try {
                addr = primary(h.address, failed, first);
                o = open(addr, Clock.now() - began);
            } catch (IOException | RuntimeException e) {
                error = e;
            }
            s.mu.lock();
            try {
                if (o != null) {
                    install(o);
                    return;
                }
                noteFailure(error);
                h = Hint.of(error);
                if (h.address.equals(addr)) {
                    h = Hint.NONE;
                }
                failed = addr;
                if (s.closed || !s.wanted() || GridException.permanent(error)) {
                    end(error);
                    return;
                }
            } finally {
                s.mu.unlock();
            }
        }
    }

    private void noteFailure(Throwable error) {
        s.trouble.note(s, Clock.now(), 0, error);
        s.trouble.triedAt = Clock.now();
        if (GridException.find(error, NotPrimaryException.class) != null) {
            s.stats.redirects++;
        }
        RejectedException reject = GridException.find(error, RejectedException.class);
        if (reject != null && reject.code() == RejectCode.SESSION_MOVED) {
            s.attempt = Math.max(s.attempt, reject.detail());
        }
    }

    /**
     * Waits until the next attempt is due. A later epoch is followed without a pause, whether a node gave it as a hint
     * or the table has it by now; each epoch once.
     */
    private Hint nextTurn(Hint given) {
        Hint h = given;
        long pause;
        long known;
        s.mu.lock();
        try {
            pause = s.trouble.back.pause(s.client.config.retryMaxNs());
            known = Math.max(s.epoch, followed);
            if (h.epoch > known && !h.address.isEmpty()) {
                followed = h.epoch;
                return h;
            }
        } finally {
            s.mu.unlock();
        }
        if (h.epoch != 0 && h.epoch < known) {
            h = Hint.NONE; // of a node that is behind
        }
        Directory d = s.client.directory;
        d.await(() -> stopped || news(known) != null, Clock.now() + pause);
        Hint later = news(known);
        h = later == null ? h : later;
        s.mu.lock();
        try {
            followed = Math.max(followed, h.epoch);
        } finally {
            s.mu.unlock();
        }
        return h;
    }

    private Hint news(long known) {
        PartitionInfo p = s.client.directory.partition(s.partition);
        return p.epoch() > known && !p.primaryAddress().isEmpty() ? new Hint(p.primaryAddress(), p.epoch()) : null;
    }

    /** Leaves the session without a connection. After a permanent error all waiting orders fail. */
    private void end(Throwable error) {
        recovering = false;
        if (GridException.permanent(error)) {
            s.broken = error;
            s.giveUpAll(error);
            s.callbacks.run(Clock.now());
        }
        s.wakeAll();
    }

    /** The hint, or the table's primary, asked for anew if the old one has just failed. */
    private String primary(String hint, String failed, boolean first) throws IOException {
        if (!hint.isEmpty()) {
            return hint;
        }
        Directory d = s.client.directory;
        Throwable error = null;
        if (!failed.isEmpty() || !first || d.partition(s.partition).primaryAddress().isEmpty()) {
            error = d.refresh(s.partition, failed, Attempt.within(s.client.attemptNs(0)));
        }
        PartitionInfo p = d.partition(s.partition);
        if (!p.primaryAddress().isEmpty() && GridException.find(error, ProtocolException.class) == null) { // else it may be another grid's by now
            return p.primaryAddress();
        }
        throw new UnavailableException("p" + s.partition + " has no primary at epoch " + p.epoch(), error);
    }

    /** Opens the session at addr: from its answer on, no copy of an order on an older connection can be applied. */
    private Opened open(String addr, long spent) throws IOException {
        Attempt a = Attempt.within(s.client.attemptNs(spent));
        long epoch;
        long attempt;
        long hi;
        long lo;
        s.mu.lock();
        try {
            attempt = ++s.attempt;
            epoch = Math.max(s.epoch, s.client.directory.partition(s.partition).epoch());
            hi = s.idHi;
            lo = s.idLo;
        } finally {
            s.mu.unlock();
        }
        s.client.fork(() -> lookElsewhere(a, addr));
        s.client.gates.enter(addr, a);
        try {
            Handshake.Node node = Handshake.dial(s.client.config, addr, a, out -> out.openSession(s.partition, 1, hi, lo, epoch, attempt));
            try {
                Conn c = node.conn();
                int n = c.receive(a);
                In.SessionOpened m = opened(c, n);
                c.r += n;
                return new Opened(c, node.member(), m);
            } catch (FrameException e) {
                node.conn().close();
                throw new ProtocolException(addr, "answer to OpenSession", e);
            } catch (IOException | RuntimeException e) {
                node.conn().close();
                throw e;
            }
        } finally {
            s.client.gates.leave(addr);
            a.cancel(); // ends lookElsewhere
        }
    }

    private In.SessionOpened opened(Conn c, int n) throws FrameException {
        int type = In.type(c.in, c.r);
        switch (type) {
            case Wire.SESSION_OPENED -> {
                In.SessionOpened m = In.sessionOpened(c.in, c.r, n);
                if (m.reqId() != 1 || m.window() == 0 || m.lastClientSeq() < 0 || m.lastClientSeq() > Long.MAX_VALUE >> 1) {
                    throw new ProtocolException(c.addr, "SessionOpened has reqID " + m.reqId() + ", window " + m.window() + " and lastClientSeq "
                            + Long.toUnsignedString(m.lastClientSeq()) + ", allowed: 1, 1 or more, and less than 2^62", null);
                }
                return m;
            }
            case Wire.NOT_PRIMARY -> {
                In.NotPrimary m = In.notPrimary(c.in, c.r, n);
                throw new NotPrimaryException(s.partition, c.addr, m.epoch(), m.address());
            }
            case Wire.REJECT -> throw new RejectedException(s.partition, In.reject(c.in, c.r, n), c.addr);
            default -> throw new ProtocolException(c.addr, "answer to OpenSession is a " + Wire.name(type)
                    + ", allowed: SessionOpened, NotPrimary, Reject, Goaway", null);
        }
    }

    /** Ends a hanging attempt (the node is gone, and its address with it) as soon as the grid names another primary. */
    private void lookElsewhere(Attempt a, String addr) {
        Backoff back = new Backoff().started(10 * Clock.MS);
        Directory d = s.client.directory;
        while (!a.over()) {
            d.await(a::over, Math.min(a.until, Clock.now() + back.pause(s.client.config.retryMaxNs())));
            if (a.over() || d.refresh(s.partition, addr, a) != null) {
                continue;
            }
            PartitionInfo p = d.partition(s.partition);
            long known;
            s.mu.lock();
            try {
                known = Math.max(s.epoch, followed);
            } finally {
                s.mu.unlock();
            }
            if (p.epoch() > known && !p.primaryAddress().isEmpty() && !p.primaryAddress().equals(addr)) {
                a.cancel();
            }
        }
    }

    private void install(Opened o) {
        recovering = false;
        Conn c = o.conn;
        In.SessionOpened m = o.m;
        if (s.closed) {
            c.close(); // closed while it was being made
            return;
        }
        boolean forgotten = s.opened && (m.slot() != s.slot || m.generation() != s.generation || m.lastClientSeq() < s.lastAck);
        if (forgotten) {
            s.stats.evictions++;
            s.client.log(System.Logger.Level.INFO, "p" + s.partition + ": the session was evicted by the grid, " + s.win.inFlight() + " orders unanswered");
        }
        s.empties.clear();
        long from = s.win.head;
        if (s.opened && !forgotten) {
            from = firstNumber(m);
            if (s.win.head - from > MAX_FILL) {
                startOver(c);
                return;
            }
        }
        s.expected = 0;
        if (forgotten || !s.opened) {
            renumber(m.lastClientSeq());
            from = s.win.head;
        }
        s.slot = m.slot();
        s.generation = m.generation();
        s.epoch = m.epoch();
        s.opened = true;
        s.evicting = false;
        s.client.directory.sawEpoch(s.partition, m.epoch());
        s.win.limit = Math.min(s.client.config.maxInFlight(), m.window());
        if (s.trouble.since == 0) {
            s.trouble.clear(); // no failure was pending: the attempt just made must not slow a later one
        }
        s.member = o.member;
        s.stats.connects++;
        s.conn = c;
        s.lastOk = Clock.now();
        for (long seq = from; seq < s.win.head; seq++) {
            s.encodeEmpty(c, seq);
        }
        for (long seq = s.win.head; seq < s.win.next; seq++) {
            s.encode(c, seq);
        }
        s.client.log(System.Logger.Level.INFO, "p" + s.partition + ": session open at " + c.addr + ", epoch " + m.epoch() + ", " + s.win.inFlight() + " orders sent again");
        s.flush(c, false);
        s.wakeAll();
        s.callbacks.wake();
        s.callbacks.run(Clock.now()); // of orders that renumber gave up
    }

    /** The number to begin with: the oldest without an answer, or less if the node would treat that as a gap. */
    private long firstNumber(In.SessionOpened m) {
        long from = Math.min(s.win.head, m.lastClientSeq() + m.window());
        return s.expected > 0 ? Math.min(from, s.expected) : from;
    }

    /** For a session with an even longer gap: a fresh id begins at 1. */
    private void startOver(Conn c) {
        s.client.log(System.Logger.Level.INFO, "p" + s.partition + ": the session starts over under a new id");
        c.close(); // not used for anything yet
        s.newId();
        s.opened = false;
        start(new Hint(c.addr, 0), "");
    }

    /**
     * Moves the session to fresh numbers above last. What was sent under the old ones cannot be recognised by the grid
     * any more: its outcome is unknown. What was not sent, or was refused for the lost session, moves on.
     */
    private void renumber(long last) {
        List<Window.Pending> keep = new ArrayList<>();
        for (long seq = s.win.head; seq < s.win.next; seq++) {
            Window.Cell cell = s.win.at(seq);
            if (cell.ord == null) {
                continue;
            }
            if (cell.sent) {
                s.giveUp(seq, new SessionEvictedException());
                continue;
            }
            keep.add(cell.ord);
            cell.ord = null;
        }
        s.win.head = last + 1;
        s.win.next = last + 1;
        s.lastAck = last;
        s.lastSeq = 0;
        for (Window.Pending o : keep) {
            s.win.add(o);
        }
        s.room();
    }
}
