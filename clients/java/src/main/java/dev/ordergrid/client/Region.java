package dev.ordergrid.client;

import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.time.Instant;
import java.util.Arrays;
import java.util.Optional;
import java.util.function.Predicate;

/**
 * A named map of keys to values in the partitions of a grid; {@link GridClient#region} makes it. Safe for use by many
 * threads. A key is in the partition of its hash, as a ClOrdID is. Changes of one partition share a session: each is
 * applied once, whatever fails in between. Key and value have at most 65,440 bytes together, a key 1 or more.
 *
 * <p>Changes throw what {@link Session#submit(byte[])} does; {@link Fate#of} says what is known of the change.
 */
public final class Region {
    /** How long a value lives. */
    public static final class Life {
        /** As the region has it. */
        public static final Life DEFAULT = new Life(0);
        /** For ever. */
        public static final Life FOREVER = new Life(-1);
        private final long ns;

        private Life(long ns) {
            this.ns = ns;
        }

        /** For a time from when it is put, a nanosecond or more. */
        public static Life of(Duration d) {
            long ns = d.toNanos();
            if (ns < 1) {
                throw new IllegalArgumentException("life is " + d + ", allowed: a nanosecond or more");
            }
            return new Life(ns);
        }
    }

    private static final byte[] NONE = {};
    private final GridClient client;
    private final String name;
    private final byte[] bytes; // of the name

    Region(GridClient client, String name) {
        this.client = client;
        this.name = name;
        bytes = name.getBytes(StandardCharsets.UTF_8);
        if (bytes.length == 0 || bytes.length > Wire.MAX_REGION_NAME) {
            throw new IllegalArgumentException("region name has " + bytes.length + " bytes, allowed: 1.." + Wire.MAX_REGION_NAME);
        }
    }

    /** The region's name. */
    public String name() {
        return name;
    }

    /** Sets a value that lives as long as the region's default is. The receipt's seq is its version. */
    public Receipt put(byte[] key, byte[] value) {
        return put(key, value, Life.DEFAULT);
    }

    /** {@link #put(byte[], byte[])} with a life of its own. */
    public Receipt put(byte[] key, byte[] value, Life life) {
        return keyed(putting(key, value, life));
    }

    /**
     * Sets a value if the present one has this version, 0: if there is none.
     *
     * @throws ConditionFailedException it has another one; nothing was changed
     */
    public Receipt putIf(byte[] key, byte[] value, long version) {
        return putIf(key, value, version, Life.DEFAULT);
    }

    /** {@link #putIf(byte[], byte[], long)} with a life of its own. */
    public Receipt putIf(byte[] key, byte[] value, long version, Life life) {
        RegionChange c = putting(key, value, life);
        c.condition = version == 0 ? RegionChange.IF_ABSENT : RegionChange.IF_VERSION;
        c.version = version;
        return keyed(c);
    }

    private RegionChange putting(byte[] key, byte[] value, Life life) {
        RegionChange c = new RegionChange(RegionChange.PUT, bytes, key, value);
        c.lifeNs = life.ns;
        return c;
    }

    /**
     * Writes bytes over the value's from offset on, which may be its end; the value keeps its expiry.
     *
     * @throws ConditionFailedException there is no value
     */
    public Receipt patch(byte[] key, int offset, byte[] value) {
        if (offset < 0 || offset > Wire.MAX_REGION_PAIR) {
            throw new IllegalArgumentException("offset is " + offset + ", allowed: 0.." + Wire.MAX_REGION_PAIR);
        }
        RegionChange c = new RegionChange(RegionChange.PATCH, bytes, key, value);
        c.offset = offset;
        return keyed(c);
    }

    /** Removes a key. Reports whether it had a value. */
    public boolean remove(byte[] key) {
        try {
            keyed(new RegionChange(RegionChange.REMOVE, bytes, key));
            return true;
        } catch (ConditionFailedException e) {
            return false;
        }
    }

    /**
     * What a take removed.
     *
     * @param value   which no other taker gets
     * @param receipt of the change
     */
    public record Taken(byte[] value, Receipt receipt) {}

    /**
     * Removes a key and returns its value, once: no other taker gets it, and a retry after a failover gets the same.
     * Empty: it has none.
     */
    public Optional<Taken> take(byte[] key) {
        RegionChange c = new RegionChange(RegionChange.TAKE, bytes, key);
        try {
            Receipt r = keyed(c);
            return Optional.of(new Taken(c.taken, r));
        } catch (ConditionFailedException e) {
            return Optional.empty();
        }
    }

    /** Removes all keys: at once in each partition, in one after the other. */
    public void clear() {
        for (int p = 0; p < client.directory.table().parts.length; p++) {
            clearPartition(p);
        }
    }

    /** Removes the keys that are in a partition, at once. */
    public void clearPartition(int partition) {
        client.checkPartition(partition);
        apply(partition, RegionChange.clear(bytes));
    }

    private Receipt keyed(RegionChange c) {
        check(c.key, c.value.length);
        return apply(client.routeKey(c.key), c);
    }

    private void check(byte[] key, int value) {
        if (key.length == 0 || key.length + value > Wire.MAX_REGION_PAIR) {
            throw new IllegalArgumentException("region " + name + ": key has " + key.length + " bytes, value " + value
                    + ", allowed: a key of 1 or more, together at most " + Wire.MAX_REGION_PAIR);
        }
    }

    /** Sends a change until it is applied or refused. A refusal for load is sent again: nothing was applied then. */
    private Receipt apply(int partition, RegionChange c) {
        Session s = client.changes(partition);
        long until = Clock.now() + client.config.requestNs();
        Backoff back = new Backoff();
        while (true) {
            client.directory.await(() -> false, Math.min(until, Clock.now() + back.pause(client.config.retryMaxNs())));
            try {
                return s.change(c, until - Clock.now());
            } catch (RejectedException e) {
                if (e.code() == RejectCode.CONDITION_FAILED) {
                    throw new ConditionFailedException(e);
                }
                if (e.code() != RejectCode.OVERLOADED || Clock.now() >= until) {
                    throw e;
                }
            }
        }
    }

    /**
     * A value of a region.
     *
     * @param key       its key
     * @param value     its bytes
     * @param version   the log entry that wrote it; rises with every change of the key, never 0
     * @param expires   empty: never
     * @param partition of the key
     * @param commitSeq committed prefix of the replica that answered
     */
    public record Entry(byte[] key, byte[] value, long version, Optional<Instant> expires, int partition, long commitSeq) {}

    /** {@link #get(byte[], ReadMode)} of mode CONFIRMED. */
    public Optional<Entry> get(byte[] key) {
        return get(key, ReadMode.CONFIRMED);
    }

    /**
     * Reads the value of a key; empty: it has none. Failed attempts are repeated until {@link Config#requestTimeout} ends.
     *
     * @throws UnavailableException no node answered in time
     */
    public Optional<Entry> get(byte[] key, ReadMode mode) {
        check(key, 0);
        int p = client.routeKey(key);
        Reads.Answer<RegionFrames.Got> answer = client.reads.retry(p, mode == ReadMode.BACKUP, (a, addr) -> client.callers.call(addr, a,
                (out, id) -> out.regionGet(p, id, mode.wire, bytes, key), RegionFrames::got));
        RegionFrames.Got m = answer.m();
        if (m.version() == 0) {
            return Optional.empty();
        }
        return Optional.of(new Entry(key.clone(), m.value(), m.version(), time(m.expireNs()), p, m.commitSeq()));
    }

    /**
     * Calls fn for the entries whose keys begin with prefix, partition by partition, in each in the order of their bytes,
     * until it returns false. Pages are read one after the other and go on behind the last key, at any node: a key that is
     * there all the time is seen once, one that changes meanwhile as before or as after.
     */
    public void scan(byte[] prefix, ReadMode mode, Predicate<Entry> fn) {
        check(new byte[1], prefix.length);
        for (int p = 0; p < client.directory.table().parts.length; p++) {
            if (!scan(p, prefix.clone(), mode, fn)) {
                return;
            }
        }
    }

    private boolean scan(int p, byte[] prefix, ReadMode mode, Predicate<Entry> fn) {
        byte[] from = NONE;
        for (boolean behind = false; ; behind = true) {
            byte[] start = from;
            boolean strictly = behind;
            Reads.Answer<RegionFrames.Page> answer = client.reads.retry(p, mode == ReadMode.BACKUP, (a, addr) -> client.callers.call(addr, a,
                    (out, id) -> out.regionScan(p, id, mode.wire, strictly, 0, bytes, start, prefix), (f, at, n) -> {
                        RegionFrames.Page page = RegionFrames.page(f, at, n);
                        checkPage(page, start, strictly, prefix);
                        return page;
                    }));
            RegionFrames.Page m = answer.m();
            for (RegionFrames.Row r : m.list()) {
                if (!fn.test(new Entry(r.key(), r.value(), r.version(), time(r.expireNs()), p, m.commitSeq()))) {
                    return false;
                }
            }
            if (m.next().length == 0) {
                return true;
            }
            from = m.next();
        }
    }

    private static void checkPage(RegionFrames.Page m, byte[] start, boolean strictly, byte[] prefix) throws FrameException {
        byte[] last = start;
        boolean behind = strictly;
        for (RegionFrames.Row r : m.list()) {
            int c = Arrays.compareUnsigned(r.key(), last);
            boolean begins = r.key().length >= prefix.length && Arrays.equals(r.key(), 0, prefix.length, prefix, 0, prefix.length);
            if (c < 0 || c == 0 && behind || !begins) {
                throw new FrameException("RegionPage has a key that is not behind the one before, or lacks the prefix");
            }
            last = r.key();
            behind = true;
        }
        if (m.next().length > 0 && Arrays.compareUnsigned(m.next(), start) <= 0) {
            throw new FrameException("RegionPage.next is not behind the key that the page begins at");
        }
    }

    private static Optional<Instant> time(long ns) {
        return ns == 0 ? Optional.empty() : Optional.of(Instant.ofEpochSecond(Math.floorDiv(ns, 1_000_000_000L), Math.floorMod(ns, 1_000_000_000L)));
    }
}
