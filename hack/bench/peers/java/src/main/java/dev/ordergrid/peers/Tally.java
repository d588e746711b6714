package dev.ordergrid.peers;

import org.HdrHistogram.ConcurrentHistogram;
import org.HdrHistogram.Histogram;

/** What one client measured between two moments. Any thread may record. */
final class Tally implements ClosedLoop.Answers {
    private static final long LONGEST = 3_600_000_000_000L; // as the histograms of the bench have it
    private static final int DIGITS = 3;

    private final long from, to;
    private final Histogram latency = new ConcurrentHistogram(1, LONGEST, DIGITS);

    /** Counts what is answered from one moment to before another. */
    Tally(long from, long to) {
        this.from = from;
        this.to = to;
    }

    @Override
    public void answered(long sent, long now) {
        if (now - from >= 0 && now - to < 0) {
            latency.recordValue(clipped(now - sent));
        }
    }

    Histogram latency() {
        return latency;
    }

    static Histogram histogram() {
        return new Histogram(1, LONGEST, DIGITS);
    }

    static long clipped(long ns) {
        return Math.min(Math.max(ns, 1), LONGEST);
    }
}
