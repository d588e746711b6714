package dev.ordergrid.client;

import java.nio.ByteBuffer;
import java.time.Duration;
import java.util.Arrays;
import java.util.Optional;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicLong;

/**
 * Load for a test that kills primaries: {@code RegionLoad ENDPOINTS}. Threads count counters up, each step on the condition
 * that no other was made, and take tokens that others take too, until standard input ends. Then each counter has to be as
 * far as its thread counted, and each token taken once or still there.
 */
final class RegionLoad {
    private static final int COUNTERS = 4;
    private static final int TAKERS = 4;
    private static final int TOKENS = 4000;
    private static final AtomicBoolean stop = new AtomicBoolean();

    private RegionLoad() {}

    private interface Work {
        void run() throws Exception;
    }

    public static void main(String[] args) throws Exception {
        Config cfg = Config.of(args[0].split(",")).grid("dev").requestTimeout(Duration.ofSeconds(60));
        try (GridClient c = GridClient.connect(cfg)) {
            Region counters = c.region("positions");
            Region tokens = c.region("tokens");
            for (int i = 0; i < TOKENS; i++) {
                tokens.put(token(i), token(i));
            }
            long[] counts = new long[COUNTERS];
            ConcurrentHashMap<Integer, byte[]> taken = new ConcurrentHashMap<>();
            AtomicLong twice = new AtomicLong();
            Thread[] threads = new Thread[COUNTERS + TAKERS];
            for (int i = 0; i < threads.length; i++) {
                int n = i;
                threads[i] = thread(n < COUNTERS ? () -> count(counters, n, counts) : () -> take(tokens, n, taken, twice));
            }
            System.out.println("running");
            while (System.in.read() >= 0) { } // until it is closed
            stop.set(true);
            for (Thread t : threads) {
                t.join();
            }
            judge(counters, tokens, counts, taken);
            Tests.equal(twice.get(), 0L, "tokens that were taken twice");
            Stats st = c.stats();
            System.out.println(Arrays.stream(counts).sum() + " counts, " + taken.size() + " tokens taken; " + st);
            Tests.check(st.violations() == 0, "violations of the protocol");
            Tests.check(st.unknown() + st.notSent() == 0, "changes without an outcome");
        }
    }

    /** Ends the load at once when its work fails: a test that waits for progress must not wait for its time. */
    private static Thread thread(Work w) {
        Thread t = new Thread(() -> {
            try {
                w.run();
            } catch (Exception | Error e) {
                e.printStackTrace();
                System.exit(1);
            }
        });
        t.start();
        return t;
    }

    private static byte[] token(int i) {
        return ("token " + i).getBytes();
    }

    private static byte[] key(int counter) {
        return ("counter " + counter).getBytes();
    }

    private static byte[] number(long n) {
        return ByteBuffer.allocate(8).putLong(n).array();
    }

    private static void count(Region r, int i, long[] counts) throws InterruptedException {
        long version = r.putIf(key(i), number(0), 0).seq();
        while (!stop.get()) {
            version = r.putIf(key(i), number(counts[i] + 1), version).seq();
            counts[i]++;
            Thread.sleep(1);
        }
    }

    private static void take(Region r, int start, ConcurrentHashMap<Integer, byte[]> taken, AtomicLong twice) throws InterruptedException {
        for (int n = 0; n < TOKENS && !stop.get(); n++) {
            int i = n / 2 * 2 + (n + start) % 2;
            Optional<Region.Taken> t = r.take(token(i));
            if (t.isPresent() && taken.put(i, t.get().value()) != null) {
                twice.incrementAndGet();
            }
            Thread.sleep(4);
        }
    }

    private static void judge(Region counters, Region tokens, long[] counts, ConcurrentHashMap<Integer, byte[]> taken) {
        for (int i = 0; i < counts.length; i++) {
            Tests.equal(ByteBuffer.wrap(counters.get(key(i)).orElseThrow().value()).getLong(), counts[i], "counter " + i);
            Tests.check(counts[i] > 0, "nothing was counted");
        }
        for (int i = 0; i < TOKENS; i++) {
            byte[] has = tokens.get(token(i)).map(Region.Entry::value).orElse(null);
            byte[] had = taken.get(i);
            Tests.check((has == null) != (had == null), "token " + i + (has == null ? " is lost" : " was taken and is there"));
            Tests.check(Arrays.equals(has == null ? had : has, token(i)), "value of token " + i);
        }
    }
}
