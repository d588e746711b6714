package dev.ordergrid.client;

import java.util.concurrent.locks.LockSupport;

/** A parked thread: listed among the followers of a pump while it sleeps. */
final class Waiter {
    Waiter next;
    Waiter prev;
    boolean listed;
    boolean wantsRoom; // waits for room in the window, not for an answer
    private volatile boolean token; // look again
    private volatile Thread thread;

    void signal() {
        token = true;
        Thread t = thread;
        if (t != null) {
            LockSupport.unpark(t);
        }
    }

    /** Sleeps until signal, until, or an interrupt. */
    void sleep(long until) {
        thread = Thread.currentThread();
        while (!token && !Thread.currentThread().isInterrupted()) {
            long left = until - Clock.now();
            if (left <= 0) {
                break;
            }
            LockSupport.parkNanos(this, left);
        }
        thread = null;
        token = false;
    }

    void drain() {
        token = false;
    }
}
