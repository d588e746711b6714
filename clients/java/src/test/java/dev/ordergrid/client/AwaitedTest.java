package dev.ordergrid.client;

import java.time.Duration;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentLinkedQueue;

/** Orders of a version of FIX that the copies of the partition are asked about, which a primary refuses for now. */
final class AwaitedTest {
    private AwaitedTest() {}

    /** A node that refuses orders of FIX 5.0 SP2 until it is told not to. */
    private static final class Refusing implements AutoCloseable {
        volatile int left; // refusals
        final Map<String, Integer> refused = new ConcurrentHashMap<>();
        final List<String> taken = Collections.synchronizedList(new ArrayList<>());
        final FakeNode node;
        private long seq = 1000;

        Refusing(int left) throws Exception {
            this.left = left;
            node = new FakeNode((c, type, f) -> type == Wire.SUBMIT && handle(c, f));
        }

        private synchronized boolean handle(FakeNode.Link c, java.nio.ByteBuffer f) throws java.io.IOException {
            String fix = new String(f.array(), Wire.SUBMIT_FIXED, f.capacity() - Wire.SUBMIT_FIXED, java.nio.charset.StandardCharsets.ISO_8859_1);
            if (fix.isEmpty()) {
                c.reject(f.getLong(24), RejectCode.BAD_FIX, 0);
                return true;
            }
            String id = fix.replaceAll(".*\u000111=([^\u0001]*).*", "$1");
            if (fix.startsWith("8=FIXT") && left > 0) {
                left--;
                refused.merge(id, 1, Integer::sum);
                c.reject(f.getLong(24), RejectCode.VERSION_AWAITED, 0);
                return true;
            }
            taken.add(id);
            c.ack(f.getLong(24), ++seq, 0);
            return true;
        }

        GridClient client() {
            return GridClient.connect(Config.of(node.address()).connectTimeout(Duration.ofSeconds(60)).requestTimeout(Duration.ofSeconds(60)));
        }

        void until(String id, int n) throws InterruptedException {
            while (refused.getOrDefault(id, 0) < n) {
                Thread.sleep(1);
            }
        }

        @Override
        public void close() throws java.io.IOException {
            node.close();
        }
    }

    private static GridException outcome(Session s, byte[] fix, boolean async) throws InterruptedException {
        if (!async) {
            try {
                s.submit(fix);
                return null;
            } catch (GridException e) {
                return e;
            }
        }
        ConcurrentLinkedQueue<Object> out = new ConcurrentLinkedQueue<>();
        s.submitAsync(fix, (r, e) -> out.add(e == null ? r : e));
        while (out.isEmpty()) {
            Thread.sleep(1);
        }
        return out.peek() instanceof GridException e ? e : null;
    }

    static void testSentAgain() throws Exception {
        try (Refusing n = new Refusing(0); GridClient c = n.client()) {
            Session s = c.session(0);
            for (boolean async : new boolean[] {false, true}) {
                n.left = 3;
                String id = "V" + async;
                Tests.equal(outcome(s, Orders.later(id), async), null, "outcome");
                Tests.equal(n.refused.get(id), 3, "refusals");
                n.left = Integer.MAX_VALUE; // a copy of a release before stays
                long began = System.nanoTime();
                GridException e = outcome(s, Orders.later("N" + async), async);
                Tests.check(e instanceof RejectedException r && r.code() == RejectCode.VERSION_AWAITED, "outcome " + e);
                Tests.check(System.nanoTime() - began >= 900 * Clock.MS, "refused at once");
            }
            Tests.equal(n.taken, List.of("Vfalse", "Vtrue"), "taken");
            Tests.equal(s.stats().submitted(), 4L, "submitted");
            Tests.equal(s.stats().refused(), 2L, "refused");
            Tests.equal(s.inFlight(), 0, "in flight");
        }
    }

    /** Pipelined orders keep their order; one at a time is sent again, and orders of other versions do not wait. */
    static void testOrder() throws Exception {
        try (Refusing n = new Refusing(Integer.MAX_VALUE); GridClient c = n.client()) {
            Session s = c.session(0);
            s.link().awaited.patience = 60_000 * Clock.MS;
            List<String> want = new ArrayList<>();
            ConcurrentLinkedQueue<String> errors = new ConcurrentLinkedQueue<>();
            for (int i = 0; i < 20; i++) {
                String id = "K" + i;
                want.add(id);
                s.enqueue(Orders.later(id), (r, e) -> {
                    if (e != null) {
                        errors.add(id + ": " + e);
                    }
                });
                if (i == 9) {
                    s.push();
                    n.until("K0", 3);
                }
            }
            s.submit(Orders.order("BEFORE", 0));
            n.left = 0;
            Tests.check(s.drain(Duration.ofSeconds(60)), "drained");
            Tests.equal(String.join(", ", errors), "", "errors");
            Tests.equal(n.taken.remove(0), "BEFORE", "the one that need not wait");
            Tests.equal(n.taken, want, "taken");
            n.refused.remove("K0");
            Tests.equal(n.refused, Map.of(), "refused, although the first one was not taken");
            Tests.equal(s.stats().violations(), 0L, "violations");
        }
    }

    /** They take up room, and are refused when the session is closed. */
    static void testBounded() throws Exception {
        try (Refusing n = new Refusing(Integer.MAX_VALUE);
                GridClient c = GridClient.connect(Config.of(n.node.address()).connectTimeout(Duration.ofSeconds(60)).requestTimeout(Duration.ofSeconds(60)).maxInFlight(4))) {
            Session s = c.session(0);
            s.link().awaited.patience = 60_000 * Clock.MS;
            ConcurrentLinkedQueue<GridException> out = new ConcurrentLinkedQueue<>();
            for (int i = 0; i < 4; i++) {
                s.submitAsync(Orders.later("B" + i), (r, e) -> out.add(e));
            }
            n.until("B0", 3);
            GridCheck.thrown(WindowFullException.class, () -> s.submitAsync(Orders.later("B9"), (r, e) -> { }));
            s.close();
            while (out.size() < 4) {
                Thread.sleep(1);
            }
            long refused = out.stream().filter(e -> e instanceof RejectedException r && r.code() == RejectCode.VERSION_AWAITED).count();
            Tests.check(refused >= 3, "of 4 orders 3 or more are refused: " + out);
        }
    }
}
