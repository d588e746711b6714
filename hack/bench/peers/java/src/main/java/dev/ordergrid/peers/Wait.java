package dev.ordergrid.peers;

import java.util.concurrent.Callable;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;

/** Waiting for what a peer becomes by itself. */
public final class Wait {
    private static final long LIMIT_SECONDS = 25;

    private Wait() {}

    /** Returns when the condition holds; what says in an error what was waited for. */
    public static void until(String what, Callable<Boolean> holds) throws Exception {
        long end = System.nanoTime() + TimeUnit.SECONDS.toNanos(LIMIT_SECONDS);
        while (!holds.call()) {
            if (System.nanoTime() > end) {
                throw new TimeoutException(what + ": not within " + LIMIT_SECONDS + " s");
            }
            Thread.sleep(20);
        }
    }
}
