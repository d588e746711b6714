package dev.ordergrid.client;

import java.nio.channels.Selector;

/** The time and right to go on of one attempt to do something over the network. */
final class Attempt {
    final long until;
    private final long began = Clock.now();
    private volatile boolean cancelled;
    private volatile Selector waiting;

    Attempt(long until) {
        this.until = until;
    }

    static Attempt within(long ns) {
        return new Attempt(Clock.now() + ns);
    }

    void cancel() {
        cancelled = true;
        Selector s = waiting;
        if (s != null && s.isOpen()) {
            s.wakeup();
        }
    }

    boolean over() {
        return cancelled || Clock.now() >= until;
    }

    /** Names the selector that cancel wakes. */
    void waitsAt(Selector s) {
        waiting = s;
    }

    /** The time it had when it began. */
    long given() {
        return until - began;
    }

    long left() {
        return until - Clock.now();
    }
}
