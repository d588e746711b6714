package dev.ordergrid.client;

import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;

/** Ends orders in time while their sessions have no connection, that is, while no thread reads. */
final class Sweeper {
    private final GridClient client;
    private final Set<Link> links = new HashSet<>();
    private boolean running;

    Sweeper(GridClient client) {
        this.client = client;
    }

    synchronized void add(Link s) {
        links.add(s);
        if (!running) {
            running = true;
            client.fork(this::run);
        }
    }

    private void run() {
        while (true) {
            List<Link> now;
            synchronized (this) {
                if (links.isEmpty()) {
                    running = false;
                    return;
                }
                now = new ArrayList<>(links);
            }
            for (Link s : now) {
                if (!sweep(s)) {
                    synchronized (this) {
                        links.remove(s);
                    }
                }
            }
            client.directory.await(() -> false, Clock.now() + Clock.TICK);
        }
    }

    /** Reports whether the session still needs it. */
    private boolean sweep(Link s) {
        s.mu.lock();
        try {
            if (s.conn != null || s.closed || !s.recovery.recovering()) {
                return false;
            }
            long at = Clock.now();
            s.sweep(at);
            s.callbacks.run(at);
            return true;
        } finally {
            s.mu.unlock();
        }
    }
}
