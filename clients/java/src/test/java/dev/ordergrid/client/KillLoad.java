package dev.ordergrid.client;

import java.io.BufferedWriter;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicReference;

/**
 * Load for a test that kills primaries: {@code KillLoad ENDPOINTS FILE}. Two threads submit and wait, two sessions have
 * 32 orders in flight each, until standard input ends. FILE gets a line for each receipt, "session clOrdId partition
 * seq", in the order of the receipts of a session. Any order without a receipt makes it fail.
 */
final class KillLoad {
    private static final AtomicBoolean stop = new AtomicBoolean();
    private static final AtomicReference<Throwable> failed = new AtomicReference<>();

    private KillLoad() {}

    public static void main(String[] args) throws Exception {
        Config cfg = Config.of(args[0].split(",")).grid("dev").requestTimeout(java.time.Duration.ofSeconds(30));
        try (GridClient c = GridClient.connect(cfg); BufferedWriter out = Files.newBufferedWriter(Path.of(args[1]))) {
            Thread[] sync = new Thread[2];
            for (int i = 0; i < sync.length; i++) {
                String name = "JS" + i;
                sync[i] = new Thread(() -> synchronous(c, name, out));
                sync[i].start();
            }
            Pipeline[] pipes = new Pipeline[2];
            Thread[] pacing = new Thread[pipes.length];
            for (int i = 0; i < pipes.length; i++) {
                pipes[i] = new Pipeline(c.session(i % c.table().size()), "JP" + i, out);
                pacing[i] = new Thread(pipes[i]);
                pacing[i].start();
            }
            System.out.println("running");
            while (System.in.read() >= 0) { } // until it is closed
            stop.set(true);
            for (Thread t : sync) {
                t.join();
            }
            for (Thread t : pacing) {
                t.join();
            }
            for (Pipeline p : pipes) {
                Tests.check(p.s.drain(java.time.Duration.ofSeconds(40)), "orders are unanswered");
            }
            Stats st = c.stats();
            System.out.println(st);
            Tests.check(st.violations() == 0, "violations of the protocol");
            Tests.check(st.submitted() == st.accepted(), "orders without a receipt");
        }
        if (failed.get() != null) {
            throw new AssertionError(failed.get());
        }
    }

    /** Ends the load at once: a test that waits for orders must not wait for its time. */
    private static void fail(Throwable t) {
        if (failed.compareAndSet(null, t)) {
            t.printStackTrace();
            System.exit(1);
        }
    }

    private static void note(BufferedWriter out, String name, String id, Receipt r) {
        try {
            synchronized (out) {
                out.write(name + " " + id + " " + r.partition() + " " + r.seq() + "\n");
            }
        } catch (IOException e) {
            fail(e);
        }
    }

    private static void synchronous(GridClient c, String name, BufferedWriter out) {
        try {
            for (int i = 0; !stop.get(); i++) {
                String id = name + "-" + i;
                note(out, name + "-" + c.routeClOrdId(id), id, c.submit(Orders.order(id, 305)));
                Thread.sleep(1); // so that 50 kills find room in memory
            }
        } catch (RuntimeException | InterruptedException e) {
            fail(e);
        }
    }

    /** A session with orders in flight. */
    private static final class Pipeline implements Runnable {
        final Session s;
        private final String name;
        private final BufferedWriter out;
        private int next;

        Pipeline(Session s, String name, BufferedWriter out) {
            this.s = s;
            this.name = name;
            this.out = out;
        }

        /** Fills the window every 40 ms; half of the completions submit the next order themselves. */
        @Override
        public void run() {
            try {
                while (!stop.get()) {
                    for (int n = s.inFlight(); n < 32; n++) {
                        submit();
                    }
                    s.push();
                    Thread.sleep(40);
                }
            } catch (RuntimeException | InterruptedException e) {
                fail(e);
            }
        }

        private synchronized void submit() {
            int n = next++;
            String id = name + "-" + n;
            s.enqueue(Orders.order(id, 305), (r, e) -> {
                if (e != null) {
                    fail(e);
                    return;
                }
                note(out, name, id, r);
                if (!stop.get() && n % 2 == 0) {
                    submit();
                }
            });
        }
    }
}
