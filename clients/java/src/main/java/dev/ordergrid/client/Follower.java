package dev.ordergrid.client;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;

/**
 * Follows the committed log of a partition as it grows. It gets each entry once, in order, over as many connections and
 * replicas as that takes. For one thread at a time; close may be called by any.
 */
public final class Follower implements AutoCloseable {
    /** How long a replica may be silent before it is asked whether it is there. */
    private static final long SILENCE = 1000 * Clock.MS;

    private final GridClient client;
    private final FollowOptions o;
    private Position after;
    private boolean atEnd;
    private Conn conn;
    private long reqId;
    private long window; // as granted
    private long taken; // bytes not credited
    private long heardAt;
    private long pingedAt;
    private long epoch; // of the table when it connected
    private final Backoff back = new Backoff();
    private volatile boolean closed;
    private final java.util.concurrent.locks.ReentrantLock using = new java.util.concurrent.locks.ReentrantLock();

    Follower(GridClient client, FollowOptions o) {
        this.client = client;
        this.o = o;
        after = o.after();
        atEnd = o.atEnd();
    }

    /** The last entry that was examined for the batches of next. */
    public Position after() {
        return after;
    }

    /** Ends the follower; next returns with a {@link ClosedException}. */
    @Override
    public void close() {
        closed = true;
        if (using.tryLock()) { // else next sees it within a tick
            try {
                disconnect();
            } finally {
                using.unlock();
            }
        }
    }

    /**
     * The next batch, which may be without entries; null if there was none within timeout. It connects as often as it
     * has to.
     *
     * @throws SnapshotRequiredException entries that are wanted are freed
     * @throws DivergedException         what the follower holds is another history
     * @throws LogException              the log is invalid
     * @throws RejectedException         the request is refused for good
     */
    public FollowBatch next(Duration timeout) {
        using.lock();
        try {
            return next(Clock.now() + timeout.toNanos());
        } finally {
            using.unlock();
        }
    }

    private FollowBatch next(long until) {
        while (true) {
            if (closed || client.closed()) {
                disconnect();
                throw new ClosedException(closed ? "the follower" : "the client");
            }
            if (Clock.now() >= until || Thread.currentThread().isInterrupted()) {
                return null;
            }
            try {
                if (conn == null) {
                    client.directory.await(() -> closed, Math.min(until, Clock.now() + back.pause(client.config.retryMaxNs())));
                    connect();
                }
                FollowBatch b = read();
                if (b != null) {
                    back.reset();
                    return b;
                }
            } catch (IOException | RuntimeException e) {
                disconnect();
                if (e instanceof RuntimeException r && last(r)) {
                    throw r;
                }
                client.log(System.Logger.Level.INFO, "p" + o.partition() + ": follower goes on elsewhere behind entry " + after.seq() + ": " + e.getMessage());
                client.directory.refresh(o.partition(), "", Attempt.within(client.attemptNs(0)));
            }
        }
    }

    /** Reports whether following again cannot help. */
    private static boolean last(RuntimeException e) {
        return GridException.permanent(e) || e instanceof SnapshotRequiredException || e instanceof DivergedException || e instanceof LogException
                || e instanceof RejectedException r && !r.code().passing() || !(e instanceof GridException);
    }

    private void disconnect() {
        if (conn != null) {
            conn.close();
            conn = null;
        }
    }

    /** Asks a replica for the log behind what the follower holds. */
    private void connect() throws IOException {
        String addr = o.replica().isEmpty() ? client.reads.replica(o.partition(), true, Math.max(back.attempts, 1)) : o.replica();
        epoch = client.directory.partition(o.partition()).epoch();
        if (addr.isEmpty()) {
            throw new UnavailableException("p" + o.partition() + " has no copy in sync at epoch " + epoch, null);
        }
        long id = ++reqId;
        byte[] account = o.account().getBytes(StandardCharsets.ISO_8859_1);
        Attempt a = Attempt.within(client.attemptNs(1000 * Clock.MS));
        conn = Handshake.dial(client.config, addr, a, out -> out.follow(o.partition(), id, atEnd ? 0 : after.seq() + 1,
                atEnd ? 0 : after.hash(), after.lineage(), o.window(), account)).conn();
        taken = 0;
        window = o.window();
        heardAt = Clock.now();
        pingedAt = 0;
    }

    /** The next batch; null: nothing came within a tick. */
    private FollowBatch read() throws IOException {
        Conn c = conn;
        while (true) {
            try {
                int n = c.frame();
                if (n > 0) {
                    FollowBatch b = handle(c, n);
                    c.r += n;
                    if (b != null) {
                        return b;
                    }
                    continue;
                }
            } catch (FrameException e) {
                throw new ProtocolException(c.addr, "undecodable bytes", e);
            }
            if (taken >= window / 4) {
                taken = 0;
                c.out.followCredit(o.partition(), reqId, after.seq(), o.window());
                c.send(Attempt.within(client.attemptNs(1000 * Clock.MS)));
            }
            if (c.read(Clock.now() + Clock.TICK, true) > 0) {
                heardAt = Clock.now();
                pingedAt = 0;
            } else {
                silent(c);
                return null;
            }
        }
    }

    /** For a replica from which nothing comes: is it there, and is it still one of the partition? */
    private void silent(Conn c) throws IOException {
        long now = Clock.now();
        long patience = Math.max(client.config.suspectAfterNs(), SILENCE);
        if (pingedAt != 0 && now - pingedAt > patience) {
            throw new SilentException(c.addr, now - heardAt, "another replica is followed");
        }
        if (pingedAt == 0 && now - heardAt > patience) {
            pingedAt = now;
            c.out.request(Wire.PING, reqId);
            c.send(Attempt.within(client.attemptNs(1000 * Clock.MS)));
            PartitionInfo p = client.directory.partition(o.partition());
            if (o.replica().isEmpty() && p.epoch() > epoch) {
                epoch = p.epoch();
                if (p.members().stream().noneMatch(m -> m.inSync() && m.address().equals(c.addr))) {
                    throw new UnavailableException(c.addr + ": no copy of p" + o.partition() + " in sync any more at epoch " + epoch, null);
                }
            }
        }
    }

    /** Takes a frame in; null: it is no batch. */
    private FollowBatch handle(Conn c, int n) throws FrameException {
        int type = In.type(c.in, c.r);
        switch (type) {
            case Wire.FOLLOW_ENTRIES -> {
                taken += n;
                return take(c.addr, In.followEntries(c.in, c.r, n));
            }
            case Wire.FOLLOW_END -> throw ended(c.addr, In.followEnd(c.in, c.r, n));
            case Wire.PONG -> {
                return null;
            }
            case Wire.REJECT, Wire.NOT_PRIMARY -> {
                Callers.refusal(c.addr, java.nio.ByteBuffer.wrap(In.bytes(c.in, c.r, n)).order(java.nio.ByteOrder.LITTLE_ENDIAN));
                return null;
            }
            case Wire.GOAWAY -> {
                c.checkGoaway(n);
                return null;
            }
            default -> throw new ProtocolException(c.addr, "frame type " + Wire.name(type) + " was not asked for", null);
        }
    }

    /** Checks a part of the log and makes a batch of it. */
    private FollowBatch take(String addr, In.FollowEntries m) {
        if (atEnd) {
            atEnd = false;
            after = new Position(m.from() - 1, 0, 0);
        }
        if (m.from() != after.seq() + 1) {
            throw fault(addr, m.from(), "it begins a part of the stream, allowed: entry " + (after.seq() + 1));
        }
        if (m.window() > 0) {
            window = m.window();
        }
        boolean all = o.account().isEmpty();
        List<LogEntry> entries = new ArrayList<>();
        long hash = after.hash();
        boolean known = hash != 0 || after.seq() == 0;
        long seq = after.seq();
        for (int at = 0; at < m.entries().length; ) {
            LogEntry e;
            try {
                e = LogEntry.next(m.entries(), at);
            } catch (FrameException x) {
                throw fault(addr, seq + 1, x.getMessage());
            }
            if (e.seq() <= seq || e.seq() > m.through() || all && e.seq() != seq + 1) {
                throw fault(addr, e.seq(), "it follows entry " + seq + " in a part that ends with " + m.through());
            }
            if (all && known && e.prevHash() != hash) {
                throw fault(addr, e.seq(), String.format("prevHash is %016x, allowed: the hash of the entry before, %016x", e.prevHash(), hash));
            }
            hash = e.hash();
            known = true;
            seq = e.seq();
            entries.add(e);
            at += e.padded();
        }
        if (all && seq != m.through()) {
            throw fault(addr, seq + 1, "it is missing in a part that ends with " + m.through());
        }
        if (known && seq == m.through() && hash != m.throughHash() && (!entries.isEmpty() || m.through() == after.seq())) {
            throw fault(addr, seq, String.format("its hash is %016x, the replica has %016x", hash, m.throughHash()));
        }
        long from = m.from();
        after = new Position(m.through(), m.throughHash(), m.lineage());
        return new FollowBatch(o.partition(), from, after, m.commitSeq(), addr, entries);
    }

    private LogException fault(String addr, long seq, String what) {
        return new LogException(o.partition(), addr, seq, what);
    }

    /** What the end of a stream means. */
    private GridException ended(String addr, In.FollowEnd m) {
        return switch (m.reason()) {
            case Wire.END_SNAPSHOT_REQUIRED -> new SnapshotRequiredException(o.partition(), new Position(m.seq() - 1, m.hash(), 0), m.text());
            case Wire.END_DIVERGED -> new DivergedException(o.partition(), after, m.hash(), m.text());
            case Wire.END_NOT_PERMITTED -> new RejectedException(o.partition(), RejectCode.NOT_PERMITTED.wire, 0, 0, 0, m.text(), addr);
            default -> new UnavailableException(addr + " ended the stream (reason " + m.reason() + "): " + m.text(), null);
        };
    }
}
