package dev.ordergrid.client;

import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentLinkedQueue;

/**
 * What a client can ask of a real grid: {@code GridCheck ENDPOINTS [CERT KEY CA]}. Exit status 0: everything is as
 * documented.
 */
final class GridCheck {
    private GridCheck() {}

    public static void main(String[] args) throws Exception {
        Config cfg = Config.of(args[0].split(",")).grid("dev").name("java-test");
        if (args.length > 1) {
            refusals(cfg, Path.of(args[3]));
            cfg = cfg.tls(Tls.files(Path.of(args[1]), Path.of(args[2]), Path.of(args[3])));
        } else {
            otherGrid(cfg);
        }
        try (GridClient c = GridClient.connect(cfg)) {
            firstOfVersion(c);
            submitAndRead(c);
            refused(c);
            pipeline(c);
            logAndFollow(c);
            outcomes(c);
        }
        System.out.println("passed");
    }

    static <T extends Throwable> T thrown(Class<T> type, Runnable f) {
        try {
            f.run();
        } catch (Throwable t) {
            if (type.isInstance(t)) {
                return type.cast(t);
            }
            throw new AssertionError("want " + type.getSimpleName(), t);
        }
        throw new AssertionError("nothing is thrown, want " + type.getSimpleName());
    }

    /** A client without TLS, and one without a certificate, of a grid that wants both. */
    private static void refusals(Config cfg, Path ca) {
        long began = System.nanoTime();
        UnavailableException plain = thrown(UnavailableException.class, () -> GridClient.connect(cfg));
        Tests.contains(plain.getMessage(), "the node speaks TLS: set Config.tls", "plain TCP to TLS");
        UnavailableException none = thrown(UnavailableException.class, () -> GridClient.connect(cfg.tls(Tls.authority(ca))));
        Tests.check(GridException.find(none, TlsException.class) != null || none.getMessage().contains("closed"), "no certificate: " + none.getMessage());
        UnavailableException name = thrown(UnavailableException.class, () -> GridClient.connect(cfg.tls(Tls.authority(ca).serverName("other.example"))));
        Tests.contains(name.getMessage(), "other.example", "wrong name");
        Tests.check(System.nanoTime() - began < 60_000_000_000L, "refusals take the whole time");
        TlsException missing = thrown(TlsException.class, () -> GridClient.connect(cfg.tls(Tls.authority(Path.of("missing.pem")))));
        Tests.contains(missing.getMessage(), "missing.pem", "a file that is not there");
        thrown(IllegalArgumentException.class, () -> GridClient.connect(cfg.token(() -> "secret")));
    }

    private static void otherGrid(Config cfg) {
        UnavailableException e = thrown(UnavailableException.class, () -> GridClient.connect(cfg.grid("other")));
        Tests.contains(e.getMessage(), "goaway 3", "another grid");
    }

    /** Nodes have not asked each other for FIX 5.0 SP2 when the first orders of it come. All are taken, in their order. */
    private static void firstOfVersion(GridClient c) {
        try (Session s = c.session(0)) {
            ConcurrentLinkedQueue<String> bad = new ConcurrentLinkedQueue<>();
            long[] last = {0};
            for (int i = 0; i < 20; i++) {
                String id = "FIRST-" + i;
                s.enqueue(Orders.later(id), (r, e) -> {
                    if (e != null || r.seq() <= last[0]) {
                        bad.add(id + ": " + (e != null ? e.toString() : r + " behind seq " + last[0]));
                    } else {
                        last[0] = r.seq();
                    }
                });
            }
            Tests.check(s.drain(Duration.ofSeconds(20)), "drained");
            Tests.equal(String.join(", ", bad), "", "pipelined");
        }
        try (Session s = c.session(1)) {
            Tests.check(s.submit(Orders.later("FIRST-OF-1")).seq() > 0, "one by one");
        }
    }

    private static void submitAndRead(GridClient c) {
        byte[] fix = Orders.order("CHECK-1", 0);
        Receipt r = c.submit(fix);
        Tests.equal(r.copies(), 2, "copies");
        Tests.equal(r.partition(), c.routeClOrdId("CHECK-1"), "partition");
        for (ReadMode mode : ReadMode.values()) {
            for (Order o : List.of(c.get(r.id(), mode), c.get(r.name(), mode), c.getByClOrdId("CHECK-1", mode))) {
                Tests.equal(o.id(), r.id(), "id");
                Tests.equal(o.name(), r.name(), "name");
                Tests.equal(new String(o.fix()), new String(fix), "message");
                Tests.equal(o.clOrdId() + o.symbol() + o.account() + o.side(), "CHECK-1IBMACC1", "fields");
                Tests.check(Duration.between(o.received(), java.time.Instant.now()).abs().toMinutes() < 1, "received " + o.received());
            }
        }
        thrown(OrderNotFoundException.class, () -> c.get(new OrderId(r.partition(), r.seq() + 1_000_000)));
        thrown(OrderNotFoundException.class, () -> c.getByClOrdId("CHECK-NONE"));
        OrderName other = new OrderName(r.id(), r.epoch(), r.hash() + 1);
        Tests.contains(thrown(OtherOrderException.class, () -> c.get(other, ReadMode.CONFIRMED)).getMessage(), r.name().toString(), "other order");
        thrown(IllegalArgumentException.class, () -> c.get(new OrderId(1000, 1)));
        Tests.equal(OrderName.parse(r.name().toString()), r.name(), "name as text");
    }

    private static void refused(GridClient c) {
        RejectedException dup = thrown(RejectedException.class, () -> c.submit(Orders.order("CHECK-1", 0)));
        Tests.equal(dup.code(), RejectCode.DUPLICATE_CLORDID, "code");
        Tests.equal(dup.fate(), Fate.REFUSED, "fate");
        RejectedException bad = thrown(RejectedException.class, () -> c.submit(new String(Orders.order("CHECK-2", 0)).replace("38=100", "38=abc").getBytes()));
        Tests.equal(bad.code(), RejectCode.BAD_FIX, "code");
        Tests.check(bad.tag() > 0 && bad.getMessage().contains("allowed"), "message " + bad.getMessage());
        thrown(RejectedException.class, () -> c.submit("no FIX".getBytes()));
        Tests.equal(thrown(RejectedException.class, () -> c.submit(Orders.order("CHECK-3", 70_000))).code(), RejectCode.TOO_LARGE, "code");
        Tests.check(c.submit(Orders.order("CHECK-4", 0)).seq() > 0, "the session goes on");
    }

    private static void pipeline(GridClient c) {
        try (Session s = c.session(0)) {
            ConcurrentLinkedQueue<Long> seqs = new ConcurrentLinkedQueue<>();
            ConcurrentLinkedQueue<GridException> errors = new ConcurrentLinkedQueue<>();
            int full = 0;
            for (int i = 0; i < 2000; ) {
                try {
                    byte[] fix = Orders.order("PIPE-" + i, 0);
                    s.submitAsync(fix, (r, e) -> {
                        if (e != null) {
                            errors.add(e);
                        } else {
                            seqs.add(r.seq());
                        }
                    });
                    java.util.Arrays.fill(fix, (byte) 0); // it is copied
                    i++;
                } catch (WindowFullException e) {
                    full++;
                    Thread.yield();
                }
            }
            Tests.check(s.drain(Duration.ofSeconds(20)), "drained");
            Tests.equal(errors.size(), 0, "errors " + errors.peek());
            Tests.equal(seqs.size(), 2000, "receipts");
            Long last = 0L;
            for (Long seq : seqs) {
                Tests.check(seq > last, "receipts in order");
                last = seq;
            }
            Tests.equal(s.stats().windowFull(), (long) full, "window full");
        }
    }

    private static void logAndFollow(GridClient c) {
        Map<Long, Long> hashes = new HashMap<>();
        List<String> ids = new ArrayList<>();
        LogEnd end = c.readLog(0, 1, e -> {
            hashes.put(e.seq(), e.hash());
            if (e.kind() == LogEntry.Kind.ORDER) {
                ids.add(e.clOrdId());
            }
            return true;
        });
        Tests.equal(end.nextSeq(), hashes.size() + 1L, "entries");
        Tests.check(ids.contains("PIPE-0") && ids.contains("PIPE-1999"), "orders in the log");
        Tests.equal(c.readLog(0, 5, e -> e.seq() < 7).nextSeq(), 8L, "a read that ends");
        long[] next = {1};
        Position middle = Position.START;
        try (Follower f = c.follow(FollowOptions.of(0))) {
            while (next[0] <= end.commitSeq()) {
                FollowBatch b = f.next(Duration.ofSeconds(10));
                b.entries().forEach(e -> Tests.equal(e.hash(), hashes.getOrDefault(e.seq(), e.hash()), "entry " + next[0]++));
                middle = next[0] > 1000 && middle.seq() == 0 ? b.through() : middle;
            }
            Receipt r = c.sharedSession(0).submit(Orders.order("TAIL-1", 0));
            boolean seen = false;
            while (!seen) {
                seen = f.next(Duration.ofSeconds(10)).entries().stream().anyMatch(e -> e.seq() == r.seq() && e.clOrdId().equals("TAIL-1"));
            }
        }
        try (Follower f = c.follow(FollowOptions.of(0).after(middle))) {
            Tests.equal(f.next(Duration.ofSeconds(10)).from(), middle.seq() + 1, "resumed");
        }
        try (Follower f = c.follow(FollowOptions.of(0).after(new Position(middle.seq(), middle.hash() + 1, middle.lineage())))) {
            Tests.equal(thrown(DivergedException.class, () -> f.next(Duration.ofSeconds(10))).hash(), middle.hash(), "diverged");
        }
        try (Follower f = c.follow(FollowOptions.of(0).account("OTHER"))) {
            Tests.equal(f.next(Duration.ofSeconds(10)).entries().size(), 0, "entries of another account");
        }
    }

    /** Time-outs, interrupts and close. */
    private static void outcomes(GridClient c) {
        Thread.currentThread().interrupt();
        GridException e = thrown(GridException.class, () -> c.submit(Orders.order("INT-1", 0)));
        Tests.check(Thread.interrupted(), "the interrupt status is kept");
        Tests.check(e instanceof UnknownOutcomeException || e instanceof NotSentException, "interrupted: " + e);
        Session s = c.session(0);
        s.close();
        Tests.equal(thrown(NotSentException.class, () -> s.submit(Orders.order("CLOSED-1", 0))).fate(), Fate.REFUSED, "closed");
        Tests.equal(c.stats().violations(), 0L, "violations");
    }
}
