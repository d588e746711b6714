package dev.ordergrid.client;

import java.nio.ByteBuffer;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.atomic.AtomicInteger;

/** The rules of exactly once (docs/protocol.md) against a node that loses connections and answers as it must not. */
final class ExactlyOnceTest {
    private ExactlyOnceTest() {}

    private static Config config(FakeNode n) {
        return Config.of(n.address()).connectTimeout(Duration.ofSeconds(60)).requestTimeout(Duration.ofSeconds(60));
    }

    /** An order whose answer is lost is sent again with its number; the stored reply is a receipt. */
    static void testResent() throws Exception {
        FakeNode.Seen seqs = new FakeNode.Seen();
        FakeNode.Seen attempts = new FakeNode.Seen();
        try (FakeNode n = new FakeNode((c, type, f) -> {
            if (type == Wire.OPEN_SESSION) {
                attempts.add(f.getLong(40));
            }
            if (type != Wire.SUBMIT) {
                return false;
            }
            seqs.add(f.getLong(24));
            if (seqs.list().size() == 3) {
                c.close();
            } else {
                c.ack(f.getLong(24), 200 + f.getLong(24), seqs.list().size() == 4 ? Wire.ACK_DUP : 0);
            }
            return true;
        }); GridClient c = GridClient.connect(config(n))) {
            for (int i = 0; i < 4; i++) {
                Tests.equal(c.submit(Orders.order("R" + i, 0)).duplicate(), i == 2, "order " + i + " is a duplicate");
            }
            Tests.equal(seqs.list(), List.of(1L, 2L, 3L, 3L, 4L), "numbers");
            Tests.equal(attempts.list(), List.of(1L, 2L), "attempts");
            Tests.equal(c.stats().resent(), 1L, "resent");
            Tests.equal(c.outages().size(), 1, "outages");
            Tests.equal(c.outages().get(0).cause(), Outage.Cause.RESET, "cause");
        }
    }

    /** A refusal that the node gives before it has looked at the session decides nothing about an earlier copy. */
    static void testRefusedAfterResend() throws Exception {
        for (RejectCode code : List.of(RejectCode.SESSION_WINDOW, RejectCode.NOT_PERMITTED, RejectCode.UNSUPPORTED, RejectCode.BAD_FIX)) {
            AtomicInteger n = new AtomicInteger();
            try (FakeNode node = new FakeNode((c, type, f) -> {
                if (type != Wire.SUBMIT) {
                    return false;
                }
                if (n.getAndIncrement() == 0) {
                    c.close();
                } else {
                    c.reject(f.getLong(24), code, 0);
                }
                return true;
            }); GridClient c = GridClient.connect(config(node))) {
                c.submit(Orders.order("X", 0));
                throw new AssertionError("accepted");
            } catch (GridException e) {
                Tests.equal(Fate.of(e), code == RejectCode.BAD_FIX ? Fate.REFUSED : Fate.UNKNOWN, code + ": " + e.getMessage());
            }
        }
    }

    /** An order that was given up is never sent with its payload again, and its number is used up. */
    static void testGivenUp() throws Exception {
        ConcurrentLinkedQueue<String> got = new ConcurrentLinkedQueue<>();
        try (FakeNode n = new FakeNode((c, type, f) -> {
            if (type != Wire.SUBMIT) {
                return false;
            }
            got.add(f.getLong(24) + (f.capacity() > Wire.SUBMIT_FIXED ? " order" : " empty"));
            if (got.size() == 1) {
                return true; // no answer
            }
            if (got.size() == 2) {
                c.close();
            } else if (f.capacity() > Wire.SUBMIT_FIXED) {
                c.ack(f.getLong(24), 200 + f.getLong(24), 0);
            } else {
                c.reject(f.getLong(24), RejectCode.BAD_FIX, 0);
            }
            return true;
        }); GridClient c = GridClient.connect(config(n).suspectAfter(Duration.ofSeconds(30)))) {
            Session s = c.session(0);
            try {
                s.submit(Orders.order("G1", 0), Duration.ofMillis(100));
                throw new AssertionError("accepted");
            } catch (UnknownOutcomeException e) {
                Tests.equal(e.clientSeq(), 1L, "number");
            }
            Tests.equal(s.submit(Orders.order("G2", 0)).seq(), 202L, "the order behind it");
            Tests.equal(String.join(", ", got), "1 order, 2 order, 1 empty, 2 order", "frames");
            Tests.equal(s.stats().lateRefused(), 1L, "late refusals");
        }
    }

    /** The grid forgot the session: what it may have seen is of unknown outcome, the rest moves to a new number. */
    static void testEvicted() throws Exception {
        AtomicInteger opens = new AtomicInteger();
        AtomicInteger submits = new AtomicInteger();
        try (FakeNode n = new FakeNode((c, type, f) -> {
            if (type == Wire.OPEN_SESSION) {
                int k = opens.getAndIncrement();
                c.send(FakeNode.frame(Wire.SESSION_OPENED, 0, 40).putLong(f.getLong(8)).putInt(1).putInt(k).putInt(512).putInt(0).putLong(0).putLong(3));
                return true;
            }
            if (type != Wire.SUBMIT) {
                return false;
            }
            switch (submits.getAndIncrement()) {
                case 0 -> c.close(); // may be applied
                case 1, 2 -> c.ack(f.getLong(24), 300 + submits.get(), 0);
                case 3 -> c.reject(f.getLong(24), RejectCode.SESSION_UNKNOWN, 0); // seen first: sent anew
                default -> c.ack(f.getLong(24), 300 + submits.get(), 0);
            }
            return true;
        }); GridClient c = GridClient.connect(config(n))) {
            Session s = c.session(0);
            try {
                s.submit(Orders.order("E1", 0));
                throw new AssertionError("accepted");
            } catch (UnknownOutcomeException e) {
                Tests.check(e.getCause() instanceof SessionEvictedException, "cause " + e.getCause());
            }
            for (int i = 2; i < 5; i++) {
                Tests.check(s.submit(Orders.order("E" + i, 0)).seq() > 300, "order " + i);
            }
            Tests.equal(s.stats().evictions(), 2L, "evictions");
            Tests.equal(s.stats().violations(), 0L, "violations");
        }
    }

    /** Draining and SessionMoved are followed to the primary; NotPrimary with a hint at once. */
    static void testMoved() throws Exception {
        AtomicInteger submits = new AtomicInteger();
        FakeNode.Seen attempts = new FakeNode.Seen();
        try (FakeNode n = new FakeNode((c, type, f) -> {
            if (type == Wire.OPEN_SESSION) {
                attempts.add(f.getLong(40));
            }
            if (type != Wire.SUBMIT) {
                return false;
            }
            switch (submits.getAndIncrement()) {
                case 0 -> c.reject(f.getLong(24), RejectCode.DRAINING, 0);
                case 1 -> c.reject(f.getLong(24), RejectCode.SESSION_MOVED, 9);
                case 2 -> c.send(notPrimary(f));
                case 3 -> c.reject(f.getLong(24), RejectCode.SEQUENCE_GAP, 1);
                default -> c.ack(f.getLong(24), 500, 0);
            }
            return true;
        }); GridClient c = GridClient.connect(config(n))) {
            Tests.equal(c.submit(Orders.order("M", 0)).seq(), 500L, "seq");
            Tests.equal(attempts.list().size(), 5, "attempts " + attempts.list());
            Tests.check(c.outages().get(0).cause() == Outage.Cause.MOVED && c.outages().get(0).attempts() >= 4, "outage " + c.outages());
        }
    }

    private static ByteBuffer notPrimary(ByteBuffer f) {
        return FakeNode.frame(Wire.NOT_PRIMARY, 0, 24 + 2).putLong(f.getLong(24)).putLong(3).putInt(1).put((byte) Wire.SUBMIT);
    }

    /** Acks that skip an order end the connection; nothing is taken for the wrong order. */
    static void testGap() throws Exception {
        AtomicInteger submits = new AtomicInteger();
        ConcurrentLinkedQueue<String> got = new ConcurrentLinkedQueue<>();
        try (FakeNode n = new FakeNode((c, type, f) -> {
            if (type != Wire.SUBMIT) {
                return false;
            }
            int k = submits.incrementAndGet();
            if (k == 2) {
                c.ack(2, 402, 0);
            } else if (k > 2) {
                c.ack(f.getLong(24), 400 + f.getLong(24), 0);
            }
            return true;
        }); GridClient c = GridClient.connect(config(n))) {
            Session s = c.session(0);
            for (int i = 1; i < 3; i++) {
                String id = "A" + i;
                s.enqueue(Orders.order(id, 0), (r, e) -> got.add(id + " " + (e == null ? r.seq() : e.toString())));
            }
            Tests.check(s.drain(Duration.ofSeconds(60)), "drained");
            Tests.equal(String.join(", ", got), "A1 401, A2 402", "outcomes");
            Tests.equal(s.stats().violations(), 1L, "violations");
        }
    }

    /** A number that is settled between two that are not is used up again on the next connection, without its payload. */
    static void testSettledBetween() throws Exception {
        ConcurrentLinkedQueue<String> frames = new ConcurrentLinkedQueue<>();
        ConcurrentLinkedQueue<String> got = new ConcurrentLinkedQueue<>();
        try (FakeNode n = new FakeNode((c, type, f) -> {
            if (type != Wire.SUBMIT) {
                return false;
            }
            long seq = f.getLong(24);
            boolean empty = f.capacity() == Wire.SUBMIT_FIXED;
            frames.add(seq + (empty ? " empty" : " order"));
            if (frames.size() == 2) {
                c.reject(2, RejectCode.BAD_FIX, 0);
            } else if (frames.size() == 3) {
                while (got.isEmpty()) {
                    Thread.onSpinWait(); // until the client has the refusal
                }
                c.close();
            } else if (frames.size() > 3 && empty) {
                c.reject(seq, RejectCode.BAD_FIX, 0);
            } else if (frames.size() > 3) {
                c.ack(seq, 600 + seq, 0);
            }
            return true;
        }); GridClient c = GridClient.connect(config(n).suspectAfter(Duration.ofSeconds(30)))) {
            Session s = c.session(0);
            for (int i = 1; i < 4; i++) {
                String id = "B" + i;
                s.enqueue(Orders.order(id, 0), (r, e) -> got.add(id + " " + (e == null ? r.seq() : Fate.of(e))));
            }
            Tests.check(s.drain(Duration.ofSeconds(60)), "drained");
            Tests.equal(String.join(", ", got), "B2 REFUSED, B1 601, B3 603", "outcomes");
            Tests.equal(String.join(", ", frames), "1 order, 2 order, 3 order, 1 order, 2 empty, 3 order", "frames");
            Tests.equal(s.stats().violations(), 0L, "violations");
        }
    }

    /** A completion that waits would wait for itself. */
    static void testCompletionMayNotWait() throws Exception {
        try (FakeNode n = new FakeNode((c, type, f) -> false); GridClient c = GridClient.connect(config(n))) {
            Session s = c.session(0);
            ConcurrentLinkedQueue<String> got = new ConcurrentLinkedQueue<>();
            Thread.UncaughtExceptionHandler before = Thread.getDefaultUncaughtExceptionHandler();
            Thread.setDefaultUncaughtExceptionHandler((t, e) -> got.add("thrown"));
            s.submitAsync(Orders.order("C1", 0), (r, e) -> {
                try {
                    s.submit(Orders.order("C2", 0));
                } catch (IllegalStateException x) {
                    got.add(x.getMessage());
                }
                throw new IllegalArgumentException("of a completion, on purpose");
            });
            s.submitAsync(Orders.order("C3", 0), (r, e) -> got.add("next"));
            try {
                Tests.check(s.drain(Duration.ofSeconds(60)), "drained");
            } finally {
                Thread.setDefaultUncaughtExceptionHandler(before);
            }
            Tests.equal(got.size(), 3, "calls " + got);
            Tests.contains(String.join(", ", got), "submit in a completion of the same session, allowed: ", "message");
            Tests.check(got.contains("thrown") && got.contains("next"), "an exception of a completion does not stop the others: " + got);
        }
    }

    /** The pipelined steady state allocates a receipt for an order, and nothing else. */
    static void testAllocation() throws Exception {
        com.sun.management.ThreadMXBean threads = (com.sun.management.ThreadMXBean) java.lang.management.ManagementFactory.getThreadMXBean();
        try (FakeNode n = new FakeNode((c, type, f) -> false); GridClient c = GridClient.connect(config(n))) {
            Session s = c.session(0);
            byte[] fix = Orders.order("ALLOC", 305);
            AtomicInteger left = new AtomicInteger();
            long[] reader = new long[1];
            Completion[] again = new Completion[1];
            again[0] = (r, e) -> {
                int k = left.decrementAndGet();
                if (k == 20_000) {
                    reader[0] = threads.getThreadAllocatedBytes(Thread.currentThread().getId());
                } else if (k == 0) {
                    reader[0] = threads.getThreadAllocatedBytes(Thread.currentThread().getId()) - reader[0];
                }
                if (k >= 32) {
                    s.enqueue(fix, again[0]);
                }
            };
            left.set(40_000);
            for (int i = 0; i < 32; i++) {
                s.enqueue(fix, again[0]);
            }
            s.push();
            while (left.get() > 0) {
                Thread.sleep(1);
            }
            double each = reader[0] / 20_000.0;
            System.out.printf("      %.0f bytes allocated for an order%n", each);
            Tests.check(each > 0 && each <= 96, each + " bytes allocated for an order, allowed: 96");
        }
    }
}
