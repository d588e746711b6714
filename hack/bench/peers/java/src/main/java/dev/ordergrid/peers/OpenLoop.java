package dev.ordergrid.peers;

import java.util.List;
import java.util.concurrent.Semaphore;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import org.HdrHistogram.Histogram;

/**
 * Orders are created on a schedule whatever the peer does, and published by synchronous threads: latency counts from the call,
 * and from the time that the schedule intended.
 */
final class OpenLoop {
    private static final long LEAD = TimeUnit.MILLISECONDS.toNanos(5); // from the decision to start to the first order
    private static final long DRAIN = TimeUnit.SECONDS.toNanos(20);

    private final Peer peer;
    private final List<Orders> orders;
    private final int rate;
    private final long count;
    private final Semaphore created = new Semaphore(0);
    private final AtomicLong drawn = new AtomicLong();
    private final Result result = new Result();
    private volatile long due; // orders there will be: fewer than count if the creator fails
    private long start, end;

    OpenLoop(Peer peer, List<Orders> orders, int rate, long duration) {
        this.peer = peer;
        this.orders = orders;
        this.rate = rate;
        this.count = duration / 1000 * rate / 1_000_000;
    }

    Result run() throws Exception {
        start = Clock.now() + LEAD;
        end = start;
        due = count;
        Threads threads = new Threads();
        for (int n = 0; n < orders.size(); n++) {
            Orders own = orders.get(n);
            threads.start("publisher-" + n, () -> publish(own));
        }
        threads.start("creator", this::create);
        threads.begin();
        threads.join();
        result.elapsed = end - start;
        result.failed = count - result.orders;
        result.unsent = Math.max(0, count - drawn.get());
        if (result.failed > 0 && result.error.isEmpty()) {
            result.error = result.unsent + " were due and not sent, which is this machine's fault";
        }
        return result;
    }

    /** When order i is due. */
    private long intended(long i) {
        return start + i * 1_000_000_000L / rate;
    }

    private void create() throws Exception {
        long i = 0;
        try {
            Clock.keepTime();
            for (; i < count; i++) {
                Clock.sleepUntil(intended(i));
                result.lag.recordValue(Tally.clipped(Clock.now() - intended(i)));
                created.release();
            }
        } finally {
            due = i;
            created.release(orders.size()); // one more for each publisher: it ends
        }
    }

    private void publish(Orders own) {
        Histogram sendToEnd = Tally.histogram(), createToEnd = Tally.histogram();
        long last = start;
        String error = "";
        for (;;) {
            created.acquireUninterruptibly();
            if (Clock.now() - intended(count) > DRAIN) {
                break;
            }
            long i = drawn.getAndIncrement();
            if (i >= due) {
                break;
            }
            byte[] order = own.next();
            long sent = Clock.now();
            try {
                peer.put(own.key(), order);
            } catch (Exception e) {
                error = e.toString();
                continue;
            }
            last = Clock.now();
            sendToEnd.recordValue(Tally.clipped(last - sent));
            createToEnd.recordValue(Tally.clipped(last - intended(i)));
        }
        synchronized (result) {
            result.orders += sendToEnd.getTotalCount();
            result.sendToEnd.add(sendToEnd);
            result.createToEnd.add(createToEnd);
            if (last - end > 0) {
                end = last;
            }
            if (!error.isEmpty()) {
                result.error = error;
            }
        }
    }
}
