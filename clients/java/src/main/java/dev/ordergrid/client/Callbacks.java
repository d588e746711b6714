package dev.ordergrid.client;

import java.util.Arrays;

/** Outcomes of asynchronous orders, and the thread that reads answers for them. */
final class Callbacks {
    private final Link s;
    int async; // unanswered orders of submitAsync
    boolean calling;
    private Thread caller; // that runs them
    Runnable onBatch;
    private Batch full = new Batch(); // outcomes whose callbacks have not run
    private Batch spare = new Batch();
    private boolean reader;
    private boolean idle;
    private final Waiter wake = new Waiter();

    Callbacks(Link s) {
        this.s = s;
    }

    /** Outcomes, kept in arrays that are used again. */
    private static final class Batch {
        Completion[] callbacks = new Completion[64];
        Receipt[] receipts = new Receipt[64];
        GridException[] errors = new GridException[64];
        int n;

        void add(Completion f, Receipt r, GridException e) {
            if (n == callbacks.length) {
                callbacks = Arrays.copyOf(callbacks, 2 * n);
                receipts = Arrays.copyOf(receipts, 2 * n);
                errors = Arrays.copyOf(errors, 2 * n);
            }
            callbacks[n] = f;
            receipts[n] = r;
            errors[n++] = e;
        }
    }

    void add(Completion f, Receipt r, GridException e) {
        async--;
        full.add(f, r, e);
    }

    boolean none() {
        return full.n == 0 && !calling;
    }

    /** Runs what add queued, without the lock, one thread at a time: callbacks see the order of the answers. */
    void run(long at) {
        if (calling || full.n == 0) {
            return;
        }
        calling = true;
        caller = Thread.currentThread();
        for (s.now = at; full.n > 0; s.now = Clock.now()) {
            Batch b = full;
            full = spare;
            Runnable after = onBatch;
            s.mu.unlock();
            try {
                for (int i = 0; i < b.n; i++) {
                    call(b, i);
                }
                if (after != null) {
                    after.run();
                }
            } catch (RuntimeException | Error e) {
                report(e);
            } finally {
                s.mu.lock();
                b.n = 0;
                spare = b;
            }
        }
        calling = false;
        caller = null;
    }

    /** Refuses to wait in a completion: the thread that would read the answer is the one that runs it. */
    void checkMayWait(String what) {
        if (caller == Thread.currentThread()) {
            throw new IllegalStateException(what + " in a completion of the same session, allowed: submitAsync and enqueue, which do not wait");
        }
    }

    private void call(Batch b, int i) {
        Completion f = b.callbacks[i];
        Receipt r = b.receipts[i];
        GridException e = b.errors[i];
        b.callbacks[i] = null;
        b.receipts[i] = null;
        b.errors[i] = null;
        try {
            f.done(r, e);
        } catch (RuntimeException | Error thrown) {
            report(thrown); // the other outcomes of the batch have callers too
        }
    }

    private static void report(Throwable t) {
        Thread self = Thread.currentThread();
        Thread.UncaughtExceptionHandler h = self.getUncaughtExceptionHandler();
        if (h != null) {
            h.uncaughtException(self, t);
        }
    }

    /** Makes sure that a thread reads answers. */
    void wake() {
        if (!reader) {
            if (async > 0 && !s.closed) {
                reader = true;
                s.client.fork(this::readLoop);
            }
        } else if (idle) {
            wake.signal();
        }
    }

    /** Leads while asynchronous orders are unanswered and no synchronous caller leads. Lives until close. */
    private void readLoop() {
        Waiter w = new Waiter();
        s.mu.lock();
        try {
            while (!s.closed) {
                Thread.interrupted(); // of a callback: it must not keep this thread from waiting
                if (async > 0) {
                    s.await(w, s.awaited.until(), true);
                    continue;
                }
                s.leave(w);
                idle = true;
                s.mu.unlock();
                try {
                    wake.sleep(Clock.NEVER);
                } finally {
                    s.mu.lock();
                }
                idle = false;
            }
        } finally {
            s.mu.unlock();
        }
    }
}
