package dev.ordergrid.client;

import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;

/** What a client can do with regions of a real grid: {@code RegionCheck ENDPOINTS}. Exit status 0: it is as documented. */
final class RegionCheck {
    private RegionCheck() {}

    public static void main(String[] args) throws Exception {
        try (GridClient c = GridClient.connect(Config.of(args[0].split(",")).grid("dev"))) {
            Region r = c.region("positions");
            changes(r);
            takes(r);
            scans(c, r);
            refusals(c, r);
            expiry(c.region("brief"));
            Tests.equal(c.stats().violations(), 0L, "violations");
        }
        System.out.println("passed");
    }

    private static byte[] b(String s) {
        return s.getBytes();
    }

    private static void is(Region r, String key, String want, long version) {
        for (ReadMode mode : List.of(ReadMode.CONFIRMED, ReadMode.LEASED)) {
            Region.Entry e = r.get(b(key), mode).orElseThrow();
            Tests.equal(new String(e.value()), want, key);
            Tests.equal(e.version(), version, "version of " + key);
            Tests.check(e.commitSeq() >= version, "commitSeq");
        }
    }

    private static void changes(Region r) {
        Receipt first = r.put(b("ACC-1/IBM"), b("100"));
        Tests.equal(first.copies(), 2, "copies");
        is(r, "ACC-1/IBM", "100", first.seq());
        Receipt second = r.putIf(b("ACC-1/IBM"), b("150.50"), first.seq());
        for (long version : new long[] {first.seq(), 0}) {
            ConditionFailedException e = GridCheck.thrown(ConditionFailedException.class, () -> r.putIf(b("ACC-1/IBM"), b("x"), version));
            Tests.equal(e.version(), second.seq(), "version that is there");
            Tests.equal(e.fate(), Fate.REFUSED, "fate");
        }
        is(r, "ACC-1/IBM", "150.50", second.seq());
        is(r, "ACC-1/IBM", "150.75", r.patch(b("ACC-1/IBM"), 4, b("75")).seq());
        is(r, "ACC-1/IBM", "150.755", r.patch(b("ACC-1/IBM"), 6, b("5")).seq());
        Tests.equal(GridCheck.thrown(RejectedException.class, () -> r.patch(b("ACC-1/IBM"), 8, b("5"))).code(), RejectCode.TOO_LARGE, "behind the end");
        Tests.equal(GridCheck.thrown(ConditionFailedException.class, () -> r.patch(b("NONE"), 0, b("5"))).version(), 0L, "no value");
        r.putIf(b("NEW"), b("1"), 0);
        Tests.check(r.remove(b("NEW")) && !r.remove(b("NEW")), "removed once");
        Tests.equal(r.get(b("NEW")), Optional.empty(), "removed");
    }

    private static void takes(Region r) {
        r.put(b("TICKET"), b("7"));
        Tests.equal(new String(r.take(b("TICKET")).orElseThrow().value()), "7", "taken");
        Tests.equal(r.take(b("TICKET")), Optional.empty(), "taken twice");
        r.put(b("EMPTY"), new byte[0]);
        Tests.equal(r.take(b("EMPTY")).orElseThrow().value().length, 0, "a value of no byte");
    }

    private static void scans(GridClient c, Region r) {
        for (int i = 0; i < 600; i++) { // more than a page of each partition
            r.put(b(String.format("S/%04d", i)), new byte[1000]);
        }
        Map<Integer, String> last = new HashMap<>();
        int[] n = {0};
        r.scan(b("S/"), ReadMode.CONFIRMED, e -> {
            String key = new String(e.key());
            Tests.check(key.startsWith("S/") && e.value().length == 1000, key);
            Tests.check(key.compareTo(last.getOrDefault(e.partition(), "")) > 0, "order of keys");
            last.put(e.partition(), key);
            n[0]++;
            return true;
        });
        Tests.equal(n[0], 600, "entries");
        List<String> some = new ArrayList<>();
        r.scan(b(""), ReadMode.CONFIRMED, e -> some.add(new String(e.key())) && some.size() < 5);
        Tests.equal(some.size(), 5, "a scan that ends");
        RegionInfo info = c.regions().stream().filter(x -> x.name().equals("positions")).findFirst().orElseThrow();
        Tests.equal(info.entries(), 601L, "entries of the region");
        Tests.check(info.bytes() > 600_000 && info.life().isEmpty(), "region " + info);
        r.clear();
        r.scan(b(""), ReadMode.CONFIRMED, e -> {
            throw new AssertionError("after a clear: " + new String(e.key()));
        });
    }

    private static void refusals(GridClient c, Region r) {
        Tests.equal(GridCheck.thrown(RejectedException.class, () -> c.region("nowhere").put(b("k"), b("v"))).code(), RejectCode.REGION_UNKNOWN, "code");
        Tests.equal(GridCheck.thrown(RejectedException.class, () -> c.region("nowhere").get(b("k"))).code(), RejectCode.REGION_UNKNOWN, "code");
        RejectedException full = GridCheck.thrown(RejectedException.class, () -> {
            for (int i = 0; i < 100; i++) {
                c.region("small").put(b("k" + i), new byte[1000]);
            }
        });
        Tests.equal(full.code(), RejectCode.CAPACITY, "a full region");
        GridCheck.thrown(IllegalArgumentException.class, () -> r.put(b(""), b("v")));
        GridCheck.thrown(IllegalArgumentException.class, () -> r.put(b("k"), new byte[Wire.MAX_REGION_PAIR]));
        GridCheck.thrown(IllegalArgumentException.class, () -> r.patch(b("k"), -1, b("v")));
        GridCheck.thrown(IllegalArgumentException.class, () -> Region.Life.of(Duration.ZERO));
        GridCheck.thrown(IllegalArgumentException.class, () -> c.region(""));
        GridCheck.thrown(IllegalArgumentException.class, () -> r.clearPartition(99));
        r.put(b("k"), new byte[Wire.MAX_REGION_PAIR - 1]);
        Tests.equal(r.get(b("k")).orElseThrow().value().length, Wire.MAX_REGION_PAIR - 1, "the longest value");
    }

    private static void expiry(Region r) throws InterruptedException {
        r.put(b("default"), b("1"));
        r.put(b("own"), b("1"), Region.Life.of(Duration.ofHours(1)));
        r.put(b("forever"), b("1"), Region.Life.FOREVER);
        Tests.equal(r.get(b("forever")).orElseThrow().expires(), Optional.empty(), "expiry");
        Tests.check(r.get(b("own")).orElseThrow().expires().isPresent(), "expiry");
        for (long end = System.nanoTime() + 60_000_000_000L; r.get(b("default")).isPresent(); Thread.sleep(20)) {
            Tests.check(System.nanoTime() < end, "a value did not expire");
        }
        Tests.check(r.get(b("own")).isPresent() && r.get(b("forever")).isPresent(), "values that do not expire");
    }
}
