package dev.ordergrid.client;

import java.time.Duration;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.SynchronousQueue;
import java.util.concurrent.ThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.Predicate;

/**
 * Routes orders and reads to the partitions of one grid. Safe for use by many threads. Threads of the client are daemon
 * threads.
 */
public final class GridClient implements AutoCloseable {
    private static final AtomicInteger NUMBER = new AtomicInteger();
    private static final int OUTAGES = 64;

    final Config config;
    final Callers callers = new Callers(this);
    final Directory directory = new Directory(this);
    final Gates gates = new Gates();
    final Sweeper sweeper = new Sweeper(this);
    final Reads reads = new Reads(this);
    private final ThreadPoolExecutor threads;
    private final ConcurrentHashMap<Integer, Session> shared = new ConcurrentHashMap<>();
    private final ConcurrentHashMap<Integer, Session> changes = new ConcurrentHashMap<>(); // of regions
    private final Set<Session> sessions = new HashSet<>(); // guarded by itself
    private final Stats past = new Stats(); // of sessions that were closed; guarded by sessions
    private final ArrayDeque<Outage> outages = new ArrayDeque<>(); // guarded by itself
    private volatile boolean closed;

    private GridClient(Config config) {
        this.config = config;
        String name = "ordergrid-client-" + NUMBER.incrementAndGet() + "-";
        AtomicInteger n = new AtomicInteger();
        threads = new ThreadPoolExecutor(0, Integer.MAX_VALUE, 5, TimeUnit.SECONDS, new SynchronousQueue<>(), r -> {
            Thread t = new Thread(r, name + n.incrementAndGet());
            t.setDaemon(true);
            return t;
        });
    }

    /**
     * Learns from the first endpoint that answers how many partitions the grid has, which never changes, and where they
     * are. The client keeps the table current by itself.
     *
     * @throws UnavailableException no endpoint knows of any within {@link Config#connectTimeout}
     */
    public static GridClient connect(Config config) {
        config.check();
        checkTls(config);
        GridClient c = new GridClient(config);
        Attempt a = Attempt.within(config.connectNs());
        Backoff back = new Backoff();
        Throwable error = null;
        while (!a.over() && !Thread.currentThread().isInterrupted()) {
            c.directory.await(() -> false, Math.min(a.until, Clock.now() + back.pause(config.retryMaxNs())));
            Throwable now = c.directory.learnGrid(a);
            if (now == null) {
                c.fork(c.directory::keep);
                return c;
            }
            if (error == null || GridException.find(now, TimedOutException.class) == null) {
                error = now; // that of the attempt before says more than a deadline
            }
            if (GridException.permanent(now) || GridException.find(now, TlsException.class) != null) {
                break; // it will not have changed within connectTimeout
            }
        }
        c.close();
        throw new UnavailableException("connect to " + config.endpoints(), error);
    }

    /** Files that cannot be read are reported at once, and the first handshake finds its classes loaded. */
    private static void checkTls(Config config) {
        if (config.tls() == null) {
            return;
        }
        HostPort hp = HostPort.parse(config.endpoints().get(0));
        try {
            config.tls().engine(hp.host(), hp.port());
        } catch (java.io.IOException | java.security.GeneralSecurityException e) {
            throw new TlsException("Config.tls", e.toString(), e);
        }
    }

    /** The routing table as the client knows it now: all partitions by number, also those no node has reported yet. */
    public List<PartitionInfo> table() {
        return List.of(directory.table().parts);
    }

    /**
     * Asks the grid where its partitions are now.
     *
     * @throws UnavailableException some partition is reported by no node; the table still has the answers for others
     */
    public void refresh() {
        Throwable e = directory.refreshAll(Attempt.within(config.requestNs()));
        if (e != null) {
            throw e instanceof GridException g ? g : new UnavailableException("refresh", e);
        }
    }

    /**
     * The partition that a FIX message belongs to: the hash of its ClOrdID (tag 11), of its Symbol (tag 55) where
     * the grid matches, modulo the number of the grid's partitions, and so the same one for all of the grid's life.
     * The message is not validated; the node does that.
     */
    public int route(byte[] fix) {
        boolean bySymbol = directory.table().bySymbol;
        long at = bySymbol ? value(fix, '5', '5') : clOrdId(fix);
        if (at == 0) {
            throw new RejectedException(0, RejectCode.BAD_FIX.wire, bySymbol ? 55 : 11, 0, 0,
                    "not sent: the message has no " + (bySymbol ? "Symbol" : "ClOrdID") + " to route by", "");
        }
        return routeHash(XxHash64.hash(fix, (int) (at >> 32), (int) at));
    }

    /** Offset (upper half) and length of the value of tag 11, found without parsing the rest; 0: there is none. */
    static long clOrdId(byte[] fix) {
        return value(fix, '1', '1');
    }

    /** The same for a tag of two digits. */
    private static long value(byte[] fix, char tens, char ones) {
        int n = fix.length;
        for (int i = 0; i + 4 <= n; i++) {
            if (fix[i] == 1 && fix[i + 1] == tens && fix[i + 2] == ones && fix[i + 3] == '=') {
                int end = i + 4;
                while (end < n && fix[end] != 1) {
                    end++;
                }
                return end < n && end > i + 4 ? (long) (i + 4) << 32 | end - i - 4 : 0;
            }
        }
        return 0;
    }

    /** The partition an order with this ClOrdID belongs to. */
    public int routeClOrdId(String clOrdId) {
        return routeKey(clOrdId.getBytes(java.nio.charset.StandardCharsets.ISO_8859_1));
    }

    int routeKey(byte[] key) {
        return routeHash(XxHash64.hash(key, 0, key.length));
    }

    private int routeHash(long hash) {
        return (int) Long.remainderUnsigned(hash, directory.table().parts.length);
    }

    /**
     * Sends one FIX message (35=D, F or G) to the partition that its ClOrdID belongs to and waits until it is
     * committed, over a session that all callers share. See {@link Session#submit(byte[])}.
     */
    public Receipt submit(byte[] fix) {
        return sharedSession(route(fix)).submit(fix);
    }

    /** {@link #submit(byte[])} with a limit of its own. */
    public Receipt submit(byte[] fix, Duration timeout) {
        return sharedSession(route(fix)).submit(fix, timeout);
    }

    /** {@link Session#submitAsync} on the shared session of the partition that the order belongs to. */
    public void submitAsync(byte[] fix, Completion done) {
        sharedSession(route(fix)).submitAsync(fix, done);
    }

    /**
     * The session of a partition that all callers of {@link #submit(byte[])} share. It connects at its first use, and is
     * closed with the client.
     */
    public Session sharedSession(int partition) {
        Session s = shared.get(partition);
        return s != null ? s : shared.computeIfAbsent(partition, p -> newSession(p, false));
    }

    /** The session that all changes of regions in a partition share. */
    Session changes(int partition) {
        return changes.computeIfAbsent(partition, p -> newSession(p, true));
    }

    /** Opens a session of its own on a partition, connected and ready, within {@link Config#connectTimeout}. */
    public Session session(int partition) {
        long until = Clock.now() + config.connectNs();
        Session s = newSession(partition, false);
        try {
            s.open(until);
            return s;
        } catch (RuntimeException e) {
            s.close();
            throw e;
        }
    }

    private Session newSession(int partition, boolean regions) {
        checkPartition(partition);
        Session s = new Session(new Link(this, partition, regions));
        synchronized (sessions) {
            if (closed) {
                throw new NotSentException(partition, 0, new ClosedException("the client"));
            }
            sessions.add(s);
        }
        return s;
    }

    void checkPartition(int p) {
        int n = directory.table().parts.length;
        if (p < 0 || p >= n) {
            throw new IllegalArgumentException("partition is " + p + ", allowed: 0.." + (n - 1) + ", the grid's " + n + " partitions");
        }
    }

    /** {@link #get(OrderId, ReadMode)} of mode CONFIRMED. */
    public Order get(OrderId id) {
        return reads.get(new OrderName(id, 0, 0), ReadMode.CONFIRMED);
    }

    /**
     * Reads the order at a place in a partition's log. Failed attempts are repeated until {@link Config#requestTimeout}
     * ends.
     *
     * @throws OrderNotFoundException no order is committed there
     * @throws OrderFreedException    it was, and is now downstream
     * @throws UnavailableException   no node answered in time
     */
    public Order get(OrderId id, ReadMode mode) {
        return reads.get(new OrderName(id, 0, 0), mode);
    }

    /**
     * The same for the order that a receipt was given for, and no other that may have its id since an accepted loss of
     * data.
     *
     * @throws OtherOrderException another order has the id
     */
    public Order get(OrderName name, ReadMode mode) {
        return reads.get(name, mode);
    }

    /** {@link #getByClOrdId(String, ReadMode)} of mode CONFIRMED. */
    public Order getByClOrdId(String clOrdId) {
        return reads.getByClOrdId(clOrdId, ReadMode.CONFIRMED);
    }

    /**
     * Reads the order with this ClOrdID: from the partition it belongs to, and if that has none from all others.
     *
     * @throws OrderNotFoundException none has it
     * @throws OrderFreedException    none is held, and it may have been: a partition has freed entries
     * @throws UnavailableException   no node answered in time
     */
    public Order getByClOrdId(String clOrdId, ReadMode mode) {
        return reads.getByClOrdId(clOrdId, mode);
    }

    /**
     * Calls fn for every committed entry of a partition from seq from on, up to the committed prefix at the end of the
     * read. Entries are checked: numbers are dense, and each one's prevHash is the hash of the one before. It takes the
     * permission Admin.
     *
     * @param from 1 or more
     * @param fn   gets each entry; false ends the read
     * @throws RejectedException of code SNAPSHOT_REQUIRED: entry from is freed; its detail is the last one that is
     * @throws LogException      the log is invalid
     */
    public LogEnd readLog(int partition, long from, Predicate<LogEntry> fn) {
        return reads.readLog(partition, "", from, fn);
    }

    /** {@link #readLog(int, long, Predicate)} of the replica at an address, as {@link #table} has it. */
    public LogEnd readLog(int partition, String replica, long from, Predicate<LogEntry> fn) {
        return reads.readLog(partition, replica, from, fn);
    }

    /** Follows the committed log of a partition as it grows; it connects at the first next. */
    public Follower follow(FollowOptions options) {
        checkPartition(options.partition());
        return new Follower(this, options);
    }

    /** A region: a named map of keys to values. Whether the grid has it is known when it is used. */
    public Region region(String name) {
        return new Region(this, name);
    }

    /** The regions of the grid with their entries and bytes, as the primaries have them now. */
    public List<RegionInfo> regions() {
        return RegionInfo.of(this);
    }

    /** Counters of all sessions, closed ones included. */
    public Stats stats() {
        Stats sum;
        List<Session> now;
        synchronized (sessions) {
            sum = past.copy();
            now = new ArrayList<>(sessions);
        }
        now.forEach(s -> sum.add(s.stats()));
        return sum;
    }

    /** The last 64 outages of all sessions, in the order in which they ended. */
    public List<Outage> outages() {
        synchronized (outages) {
            return List.copyOf(outages);
        }
    }

    /** Ends all sessions; see {@link Session#close} for orders without an answer. */
    @Override
    public void close() {
        List<Session> now;
        synchronized (sessions) {
            closed = true;
            now = new ArrayList<>(sessions);
        }
        now.forEach(Session::close);
        callers.close();
        directory.wake();
        threads.shutdown();
    }

    boolean closed() {
        return closed;
    }

    void forget(Session s) {
        Stats of = s.stats();
        synchronized (sessions) {
            if (sessions.remove(s)) {
                past.add(of);
            }
        }
        shared.remove(s.partition(), s);
        changes.remove(s.partition(), s);
    }

    /** Runs f on a thread of the client; false: the client is closed. */
    boolean fork(Runnable f) {
        try {
            threads.execute(f);
            return true;
        } catch (RejectedExecutionException e) {
            return false;
        }
    }

    /** An outage of a session has ended. Locks of the session are held. */
    void ended(Link s, Outage o) {
        synchronized (outages) {
            if (outages.size() == OUTAGES) {
                outages.removeFirst();
            }
            outages.addLast(o);
        }
        if (config.onOutage() != null) {
            fork(() -> config.onOutage().accept(o));
        }
    }

    void log(System.Logger.Level level, String text) {
        if (config.logger() != null) {
            config.logger().log(level, text);
        }
    }

    /**
     * Bounds one attempt to connect: a node that is cut off silently must not use up the time in which another takes
     * over.
     */
    long attemptNs(long spent) {
        return Math.min(Math.max(Math.max(spent, config.suspectAfterNs()), 250 * Clock.MS), config.connectNs());
    }
}
