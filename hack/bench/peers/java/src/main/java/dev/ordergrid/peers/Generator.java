package dev.ordergrid.peers;

import java.io.PrintStream;
import java.util.ArrayList;
import java.util.Base64;
import java.util.List;
import java.util.concurrent.atomic.LongAdder;

/**
 * The load generator: one load on one peer. It says "measuring" and "measured" at the ends of the measured time, for the bench to
 * take the CPU time of all processes, and then the result as one line of JSON.
 */
public final class Generator {
    /** Orders that the warm-up of the JVMs cycles through, so that it fills no memory. */
    private static final long WARM_KEYS = 32_768;
    /** Clients of the warm-up are numbered from here down, those of the load from 1 up. */
    private static final int LAST_CLIENT = 255;

    private final PrintStream out;
    private final Peer peer;
    private final byte[] template;
    private final int keyAt, rate, threads, depth;
    private final long jvmWarmup, warmup, duration;

    private Generator(Options o, PrintStream out, Peer peer) {
        this.out = out;
        this.peer = peer;
        template = Base64.getDecoder().decode(o.text("order"));
        keyAt = o.number("key-at");
        rate = o.number("rate");
        threads = o.number("threads");
        depth = o.number("depth");
        jvmWarmup = o.millis("jvm-warmup-ms");
        warmup = o.millis("warmup-ms");
        duration = o.millis("duration-ms");
    }

    public static void main(String[] args) {
        PrintStream out = System.out;
        System.setOut(System.err); // what peers log is no part of what we say
        int status = 1;
        try {
            Options o = new Options(args);
            try (Peer peer = Peer.of(o.text("peer"))) {
                peer.connect(Servers.parse(o.text("servers")));
                out.println(new Generator(o, out, peer).run().json());
                out.flush();
                status = 0;
            }
        } catch (Throwable e) {
            e.printStackTrace();
        }
        Runtime.getRuntime().halt(status); // threads of the peer would keep the process
    }

    private Result run() throws Exception {
        double warming = warmJVMs();
        Result result = rate > 0 ? open() : closed();
        result.warming = warming;
        return result;
    }

    /**
     * The case's clients in a closed loop, so that compilers see as many orders as the machine can do. Returns how many were
     * answered in the last third of the time for each in the middle third: 1 is warm.
     */
    private double warmJVMs() throws Exception {
        long from = Clock.now(), to = from + jvmWarmup;
        LongAdder middle = new LongAdder(), last = new LongAdder();
        ClosedLoop.Answers thirds = (sent, now) -> {
            long third = 3 * (now - from) / Math.max(1, jvmWarmup);
            if (third == 1) {
                middle.increment();
            } else if (third == 2) {
                last.increment();
            }
        };
        Threads clients = new Threads();
        for (int n = 0; n < threads; n++) {
            Orders orders = new Orders(template, keyAt, LAST_CLIENT - n, WARM_KEYS / threads);
            clients.start("warm-" + n, () -> new ClosedLoop(peer, orders, to, thirds).run(depth));
        }
        clients.begin();
        clients.join();
        System.gc(); // not in the measured time
        return last.sum() / (double) Math.max(1, middle.sum());
    }

    private List<Orders> ownOrders() {
        List<Orders> all = new ArrayList<>();
        for (int n = 0; n < threads; n++) {
            all.add(new Orders(template, keyAt, 1 + n, 0));
        }
        return all;
    }

    private Result open() throws Exception {
        List<Orders> orders = ownOrders();
        if (warmup > 0) {
            new OpenLoop(peer, orders, rate, warmup).run();
        }
        say("measuring");
        Result result = new OpenLoop(peer, orders, rate, duration).run();
        say("measured");
        return result;
    }

    private Result closed() throws Exception {
        long from = Clock.now() + warmup, to = from + duration;
        Threads clients = new Threads();
        List<Tally> tallies = new ArrayList<>();
        int n = 0;
        for (Orders orders : ownOrders()) {
            Tally tally = new Tally(from, to);
            tallies.add(tally);
            clients.start("client-" + n++, () -> new ClosedLoop(peer, orders, to, tally).run(depth));
        }
        clients.begin();
        Clock.sleepUntil(from);
        say("measuring");
        Clock.sleepUntil(to);
        say("measured");
        clients.join();
        Result result = new Result();
        for (Tally t : tallies) {
            result.sendToEnd.add(t.latency());
        }
        result.orders = result.sendToEnd.getTotalCount();
        result.elapsed = duration;
        return result;
    }

    private void say(String word) {
        out.println(word);
        out.flush();
    }
}
