package dev.ordergrid.peers;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.concurrent.locks.LockSupport;

/** Monotonic time, and a sleep that ends when it was asked to. */
final class Clock {
    private Clock() {}

    static long now() {
        return System.nanoTime();
    }

    /** Makes the calling thread wake on time: the kernel's default lets it come 50 us late. */
    static void keepTime() throws IOException {
        Path thread = Files.readSymbolicLink(Path.of("/proc/thread-self")); // PID/task/TID
        Files.writeString(Path.of("/proc", thread.getFileName().toString(), "timerslack_ns"), "1");
    }

    static void sleepUntil(long ns) {
        for (long left = ns - now(); left > 0; left = ns - now()) {
            LockSupport.parkNanos(left);
        }
    }
}
