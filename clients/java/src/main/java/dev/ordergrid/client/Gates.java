package dev.ordergrid.client;

import java.io.IOException;
import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.Semaphore;
import java.util.concurrent.TimeUnit;

/**
 * Bounds the sessions of one client that are being opened at one node at the same time, so that a new primary is not
 * hit by all of them at once. A node that does not answer delays no session of another node.
 */
final class Gates {
    private static final int AT_ONCE = 16;
    private final Map<String, Gate> gates = new HashMap<>();

    private static final class Gate {
        final Semaphore places = new Semaphore(AT_ONCE);
        int users; // inside or waiting; the last one removes the gate
    }

    /** Waits for a place; leave gives it back. */
    void enter(String address, Attempt a) throws IOException {
        Gate g;
        synchronized (gates) {
            g = gates.computeIfAbsent(address, k -> new Gate());
            g.users++;
        }
        boolean in = false;
        try {
            in = g.places.tryAcquire(Math.max(a.left(), 0), TimeUnit.NANOSECONDS);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
        if (!in) {
            left(address, g);
            throw new IOException(address + ": " + AT_ONCE + " sessions are being opened there, and none was done in time");
        }
    }

    void leave(String address) {
        Gate g;
        synchronized (gates) {
            g = gates.get(address);
        }
        g.places.release();
        left(address, g);
    }

    private void left(String address, Gate g) {
        synchronized (gates) {
            if (--g.users == 0) {
                gates.remove(address, g);
            }
        }
    }
}
