package dev.ordergrid.client;

import java.util.concurrent.ThreadLocalRandom;

/**
 * Spaces attempts that fail. The first is made at once; the longest pause before the next ones grows by half each
 * time, up to the caller's limit, and each pause is drawn evenly from 0 to that: clients that lost a primary at the same
 * moment spread over the whole time.
 */
final class Backoff {
    private static final long FIRST = 2 * Clock.MS;
    int attempts;
    private long longest;

    /** Nanoseconds to wait before the next attempt. */
    long pause(long limit) {
        attempts++;
        if (attempts == 1) {
            return 0;
        }
        longest = Math.min(Math.max(longest + longest / 2, FIRST), limit);
        return ThreadLocalRandom.current().nextLong(longest);
    }

    /** The same without a first attempt at once. */
    Backoff started(long from) {
        attempts = 1;
        longest = from;
        return this;
    }

    void reset() {
        attempts = 0;
        longest = 0;
    }
}
