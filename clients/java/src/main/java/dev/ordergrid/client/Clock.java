package dev.ordergrid.client;

import java.time.Instant;

/** Monotonic time in nanoseconds, from 1 on, so that 0 can mean none. */
final class Clock {
    static final long NEVER = Long.MAX_VALUE;
    static final long MS = 1_000_000L;
    /** How late a waiting call notices that it should end. */
    static final long TICK = 20 * MS;
    private static final long ORIGIN = System.nanoTime() - 1;

    private Clock() {}

    static long now() {
        return System.nanoTime() - ORIGIN;
    }

    static Instant wall(long then) {
        return Instant.now().plusNanos(then - now());
    }

    static String text(long ns) {
        return ns < 10 * MS ? ns / 1000 + " µs" : ns / MS + " ms";
    }
}
