package dev.ordergrid.client;

import java.time.Duration;

/**
 * Sends orders to one partition: one connection to the partition's primary, one replicated session of the grid. It
 * reconnects by itself and sends what is unanswered again under the same numbers, in order, so that an order is applied
 * once whatever happens between. Safe for use by many threads.
 *
 * <p>A thread that is the only user of a session writes and reads the socket itself. Give each latency-critical thread
 * a session of its own.
 */
public final class Session implements AutoCloseable {
    /** This many bytes are worth a system call. */
    private static final int ENQUEUE_LIMIT = 64 << 10;

    private final Link link;

    Session(Link link) {
        this.link = link;
    }

    Link link() {
        return link;
    }

    /** Partition the session sends to. */
    public int partition() {
        return link.partition;
    }

    /**
     * Sends one FIX message (35=D, F or G) and waits until it is committed on every in-sync copy, at most
     * {@link Config#requestTimeout}. With the window full it waits for room. The array is not kept.
     * An order that is refused with {@link RejectCode#VERSION_AWAITED} is sent again for up to a second.
     *
     * @throws RejectedException       the grid refused the order
     * @throws UnknownOutcomeException it was sent and not answered in time
     * @throws NotSentException        it never left the process. {@link Fate#of} sums these up
     * @throws IllegalStateException   called in a completion of this session
     */
    public Receipt submit(byte[] fix) {
        return submit(fix, null, link.client.config.requestNs());
    }

    /** {@link #submit(byte[])} with a limit of its own; noticed within about 20 ms. */
    public Receipt submit(byte[] fix, Duration timeout) {
        return submit(fix, null, timeout.toNanos());
    }

    /** Sends a change of a region and waits, as submit does with an order. */
    Receipt change(RegionChange change, long timeoutNs) {
        return submit(null, change, timeoutNs);
    }

    private Receipt submit(byte[] fix, RegionChange change, long timeoutNs) {
        long now = Clock.now();
        long deadline = now + timeoutNs;
        link.mu.lock();
        try {
            if (change == null) {
                checkSize(fix.length);
            }
            checkOpen();
            link.callbacks.checkMayWait("submit");
            if (Thread.currentThread().isInterrupted()) {
                throw new NotSentException(link.partition, 0, new InterruptedWaitException());
            }
            waitForRoom(now, deadline);
            Window.Pending o = link.win.take();
            o.payload = fix;
            o.off = 0;
            o.len = change == null ? fix.length : 0;
            o.change = change;
            o.submitted = now;
            o.deadline = deadline;
            link.send(o);
            link.push();
            while (!o.done) {
                link.await(o.waiter, Math.min(o.deadline, link.awaited.until()), false);
                if (!o.done && Thread.currentThread().isInterrupted() && !link.awaited.stop(o, new InterruptedWaitException())) {
                    link.giveUp(o.clientSeq, new InterruptedWaitException());
                }
            }
            link.leave(o.waiter);
            Receipt r = o.receipt;
            GridException e = o.error;
            link.win.release(o);
            if (e != null) {
                throw e;
            }
            return r;
        } finally {
            link.mu.unlock();
        }
    }

    private void checkSize(int len) {
        if (len == 0) {
            throw new RejectedException(link.partition, RejectCode.BAD_FIX.wire, 0, 0, 0, "not sent: the message is empty", "");
        }
        if (len > Wire.MAX_PAYLOAD) {
            throw new RejectedException(link.partition, RejectCode.TOO_LARGE.wire, 0, Wire.MAX_PAYLOAD, 0,
                    "not sent: the message has " + len + " bytes, allowed: " + Wire.MAX_PAYLOAD, "");
        }
    }

    private void checkOpen() {
        if (link.closed) {
            throw new NotSentException(link.partition, 0, new ClosedException("the session"));
        }
    }

    private void waitForRoom(long now, long deadline) {
        if (!link.full()) {
            return;
        }
        Waiter w = new Waiter();
        w.wantsRoom = true;
        while (link.full() && !link.closed && Clock.now() < deadline && !Thread.currentThread().isInterrupted()) {
            link.recovery.connect();
            link.await(w, deadline, false);
        }
        w.wantsRoom = false;
        link.leave(w);
        if (link.closed) {
            throw new NotSentException(link.partition, Clock.now() - now, new ClosedException("the session"));
        }
        if (link.full()) {
            Throwable why = link.broken != null ? link.broken : new TimedOutException(deadline - now, link.trouble.last);
            throw new NotSentException(link.partition, Clock.now() - now, Thread.currentThread().isInterrupted() ? new InterruptedWaitException() : why);
        }
    }

    /**
     * Sends one order and returns; done runs once with the outcome. The bytes are copied. An order that is refused with
     * {@link RejectCode#VERSION_AWAITED} is sent again for up to a second. An exception from this method itself means
     * that done will not run: {@link WindowFullException}, {@link NotSentException}, {@link RejectedException}.
     */
    public void submitAsync(byte[] fix, Completion done) {
        enqueue(fix, 0, fix.length, done, true);
    }

    /**
     * {@link #submitAsync} that leaves the order in the session's buffer until submitAsync, submit, {@link #push} or an
     * answer to an earlier order sends it: many orders then cost one system call.
     */
    public void enqueue(byte[] fix, Completion done) {
        enqueue(fix, 0, fix.length, done, false);
    }

    /** {@link #enqueue(byte[], Completion)} of a part of an array. */
    public void enqueue(byte[] fix, int off, int len, Completion done) {
        java.util.Objects.checkFromIndexSize(off, len, fix.length);
        enqueue(fix, off, len, done, false);
    }

    private void enqueue(byte[] fix, int off, int len, Completion done, boolean push) {
        java.util.Objects.requireNonNull(done, "done is null, allowed: a Completion; use submit to wait for the outcome");
        link.mu.lock();
        try {
            checkSize(len);
            checkOpen();
            if (link.full()) {
                link.recovery.connect(); // the answers that make room have to come over a connection
                link.stats.windowFull++;
                throw new WindowFullException(link.partition, link.win.limit);
            }
            // From within a callback the time is that of the answers it belongs to: reading the clock for each order
            // would cost as much as encoding it.
            long now = link.callbacks.calling ? link.now : Clock.now();
            Window.Pending o = link.win.take();
            o.copy(fix, off, len);
            o.callback = done;
            o.submitted = now;
            o.deadline = now + link.client.config.requestNs();
            link.callbacks.async++;
            link.send(o);
            Conn c = link.conn;
            if (push || c != null && c.out.size() >= ENQUEUE_LIMIT) {
                link.push();
            }
            link.callbacks.wake();
        } finally {
            link.mu.unlock();
        }
    }

    /** Writes what {@link #enqueue} left. */
    public void push() {
        link.mu.lock();
        try {
            link.push();
        } finally {
            link.mu.unlock();
        }
    }

    /**
     * Makes f run after the completions of each batch of answers, on their thread: the place to write out what they
     * collected. What f enqueues leaves in one write. null ends it.
     */
    public void onBatch(Runnable f) {
        link.mu.lock();
        link.callbacks.onBatch = f;
        link.mu.unlock();
    }

    /** Orders that have no answer yet. */
    public int inFlight() {
        link.mu.lock();
        try {
            return (int) link.unanswered();
        } finally {
            link.mu.unlock();
        }
    }

    /**
     * Waits until no order is unanswered and all completions have returned. Not to be called from a completion.
     *
     * @return false if that took longer than timeout
     */
    public boolean drain(Duration timeout) {
        long until = Clock.now() + timeout.toNanos();
        Waiter w = new Waiter();
        link.mu.lock();
        try {
            link.callbacks.checkMayWait("drain");
            link.push();
            while ((link.unanswered() > 0 || !link.callbacks.none()) && !link.closed) {
                if (Clock.now() >= until || Thread.currentThread().isInterrupted()) {
                    return false;
                }
                link.recovery.connect();
                link.await(w, Math.min(until, Clock.now() + Clock.TICK / 4), false);
            }
            return true;
        } finally {
            link.leave(w);
            link.mu.unlock();
        }
    }

    /** Waits for the connection. */
    void open(long until) {
        Waiter w = new Waiter();
        link.mu.lock();
        try {
            link.list(w);
            link.recovery.connect();
            while (link.conn == null && link.broken == null && !link.closed && Clock.now() < until && !Thread.currentThread().isInterrupted()) {
                link.await(w, until, false);
            }
            if (link.closed) {
                throw new ClosedException("the session");
            }
            if (link.conn == null) {
                throw new UnavailableException("open a session of p" + link.partition, link.broken != null ? link.broken : link.trouble.last);
            }
        } finally {
            link.leave(w);
            link.mu.unlock();
        }
    }

    /** Counters so far. */
    public Stats stats() {
        link.mu.lock();
        try {
            return link.stats.copy();
        } finally {
            link.mu.unlock();
        }
    }

    /**
     * Ends the session. Orders without an answer end with {@link UnknownOutcomeException} or {@link NotSentException},
     * both with cause {@link ClosedException}; those that wait to be sent again, with their refusal.
     */
    @Override
    public void close() {
        link.close();
        link.client.forget(this);
    }
}
