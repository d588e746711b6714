package dev.ordergrid.peers;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicReference;

/**
 * Threads that begin together, so that those that are there first do not keep the others from starting. The first failure is the
 * failure of all.
 */
final class Threads {
    interface Work {
        void run() throws Exception;
    }

    private final CountDownLatch begun = new CountDownLatch(1);
    private final List<Thread> all = new ArrayList<>();
    private final AtomicReference<Throwable> failed = new AtomicReference<>();

    void start(String name, Work work) {
        Thread t = new Thread(() -> {
            try {
                begun.await();
                work.run();
            } catch (Throwable e) {
                failed.compareAndSet(null, e);
            }
        }, name);
        all.add(t);
        t.start();
    }

    void begin() {
        begun.countDown();
    }

    void join() throws Exception {
        for (Thread t : all) {
            t.join();
        }
        if (failed.get() != null) {
            throw new Exception("a client failed", failed.get());
        }
    }
}
