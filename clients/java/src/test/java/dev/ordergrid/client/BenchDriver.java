package dev.ordergrid.client;

import java.util.Arrays;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicReference;

/**
 * The load of clients/bench: {@code BenchDriver ENDPOINTS CLIENTS WINDOW WARMUP_MS DURATION_MS SIZE PREFIX}. Window 0 is
 * synchronous. One line of JSON: orders per second, p50 and p99 in microseconds.
 */
final class BenchDriver {
    private static final int MAX_SAMPLES = 1 << 20;
    private static volatile boolean stop;
    private static volatile boolean measuring;
    private static final AtomicReference<Throwable> failed = new AtomicReference<>();

    private BenchDriver() {}

    public static void main(String[] args) throws Exception {
        int clients = Integer.parseInt(args[1]);
        int window = Integer.parseInt(args[2]);
        int size = Integer.parseInt(args[5]);
        try (GridClient c = GridClient.connect(Config.of(args[0].split(",")))) {
            Load[] loads = new Load[clients];
            CountDownLatch done = new CountDownLatch(clients);
            for (int i = 0; i < clients; i++) {
                loads[i] = new Load(c.session(i % c.table().size()), new Orders.Counter(args[6] + (char) ('a' + i), size), window, done);
                new Thread(loads[i], "load-" + i).start();
            }
            Thread.sleep(Long.parseLong(args[3]));
            long began = System.nanoTime();
            measuring = true;
            Thread.sleep(Long.parseLong(args[4]));
            measuring = false;
            long took = System.nanoTime() - began;
            stop = true;
            done.await();
            report(loads, took, c.stats());
        }
        if (failed.get() != null) {
            failed.get().printStackTrace();
            System.exit(1);
        }
    }

    private static void report(Load[] loads, long took, Stats stats) {
        long orders = 0;
        int n = 0;
        for (Load l : loads) {
            orders += l.orders;
            n += Math.min(l.n, MAX_SAMPLES);
        }
        int[] all = new int[n];
        int at = 0;
        for (Load l : loads) {
            int k = Math.min(l.n, MAX_SAMPLES);
            System.arraycopy(l.samples, 0, all, at, k);
            at += k;
        }
        Arrays.sort(all);
        System.out.printf("{\"ordersPerSecond\":%.0f,\"p50us\":%.1f,\"p99us\":%.1f,\"resent\":%d}%n", orders * 1e9 / took,
                n == 0 ? 0 : all[n / 2] / 1e3, n == 0 ? 0 : all[(int) (n * 0.99)] / 1e3, stats.resent());
    }

    /** One client. */
    private static final class Load implements Runnable, Completion {
        private final Session s;
        private final Orders.Counter orderOf;
        private final int window;
        private final CountDownLatch done;
        final int[] samples = new int[MAX_SAMPLES];
        int n;
        long orders;
        private final long[] sentAt; // of the orders in flight, oldest first
        private int first;
        private int inFlight;

        Load(Session s, Orders.Counter orderOf, int window, CountDownLatch done) {
            this.s = s;
            this.orderOf = orderOf;
            this.window = window;
            this.done = done;
            sentAt = new long[Math.max(window, 1)];
        }

        @Override
        public void run() {
            try {
                if (window > 0) {
                    synchronized (this) { // with the first completions
                        for (int i = 0; i < window; i++) {
                            enqueue(System.nanoTime());
                        }
                        s.push();
                    }
                    return;
                }
                while (!stop) {
                    long t = System.nanoTime();
                    s.submit(orderOf.next());
                    sample(System.nanoTime() - t);
                }
                done.countDown();
            } catch (RuntimeException e) {
                failed.compareAndSet(null, e);
                done.countDown();
            }
        }

        private void enqueue(long now) {
            sentAt[(first + inFlight) % window] = now;
            inFlight++;
            s.enqueue(orderOf.next(), this);
        }

        @Override
        public synchronized void done(Receipt receipt, GridException error) {
            if (error != null) {
                failed.compareAndSet(null, error);
                stop = true;
            }
            long now = System.nanoTime();
            sample(now - sentAt[first]);
            first = (first + 1) % window;
            inFlight--;
            if (!stop) {
                enqueue(now);
            } else if (inFlight == 0) {
                done.countDown();
            }
        }

        private void sample(long ns) {
            if (measuring) {
                orders++;
                samples[n++ & MAX_SAMPLES - 1] = (int) Math.min(ns, Integer.MAX_VALUE);
            }
        }
    }
}
