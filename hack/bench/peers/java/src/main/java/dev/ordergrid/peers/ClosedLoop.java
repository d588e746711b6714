package dev.ordergrid.peers;

import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.Semaphore;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.concurrent.atomic.AtomicReference;

/** One client of a closed loop: the next order leaves when an answer has come, or fewer than depth are unanswered. */
final class ClosedLoop {
    private static final long ANSWER_LIMIT_SECONDS = 20;

    /** Takes note of an answer; any thread may call it. */
    interface Answers {
        void answered(long sent, long now);
    }

    private final Peer peer;
    private final Orders orders;
    private final long to;
    private final Answers answers;

    ClosedLoop(Peer peer, Orders orders, long to, Answers answers) {
        this.peer = peer;
        this.orders = orders;
        this.to = to;
        this.answers = answers;
    }

    void run(int depth) throws Exception {
        if (depth == 1) {
            synchronous();
        } else if (peer.batch() > 1) {
            batches(Math.min(depth, peer.batch()));
        } else {
            pipeline(depth);
        }
    }

    private void synchronous() throws Exception {
        for (;;) {
            byte[] order = orders.next();
            long sent = Clock.now();
            if (sent - to >= 0) {
                return;
            }
            peer.put(orders.key(), order);
            answers.answered(sent, Clock.now());
        }
    }

    private void batches(int size) throws Exception {
        for (;;) {
            Map<String, byte[]> batch = new HashMap<>(2 * size);
            for (int i = 0; i < size; i++) {
                byte[] order = orders.next();
                batch.put(orders.key(), order);
            }
            long sent = Clock.now();
            if (sent - to >= 0) {
                return;
            }
            peer.putAll(batch);
            long now = Clock.now();
            for (int i = 0; i < size; i++) {
                answers.answered(sent, now);
            }
        }
    }

    private void pipeline(int depth) throws Exception {
        Semaphore room = new Semaphore(depth);
        AtomicReference<Throwable> failed = new AtomicReference<>();
        while (failed.get() == null && Clock.now() - to < 0) {
            acquire(room, 1);
            byte[] order = orders.next();
            long sent = Clock.now();
            // On the thread that has the answer: by default some peers take a new thread for each.
            peer.putAsync(orders.key(), order).whenCompleteAsync((done, e) -> {
                if (e != null) {
                    failed.compareAndSet(null, e);
                } else {
                    answers.answered(sent, Clock.now());
                }
                room.release();
            }, Runnable::run);
        }
        acquire(room, depth);
        if (failed.get() != null) {
            throw new Exception("an order failed", failed.get());
        }
    }

    private static void acquire(Semaphore room, int n) throws Exception {
        if (!room.tryAcquire(n, ANSWER_LIMIT_SECONDS, TimeUnit.SECONDS)) {
            throw new TimeoutException("no answer for " + ANSWER_LIMIT_SECONDS + " s");
        }
    }
}
