package dev.ordergrid.client;

import java.time.Duration;

/** Counters since the start of a {@link Session} or {@link GridClient}; a copy, which does not change. */
public final class Stats {
    long submitted;
    long accepted;
    long refused;
    long unknown;
    long notSent;
    long lateAccepted;
    long lateRefused;
    long duplicates;
    long windowFull;
    long connects;
    long redirects;
    long resent;
    long evictions;
    long violations;
    long outages;
    long longestOutageNs;

    Stats copy() {
        Stats s = new Stats();
        s.add(this);
        return s;
    }

    void add(Stats t) {
        submitted += t.submitted;
        accepted += t.accepted;
        refused += t.refused;
        unknown += t.unknown;
        notSent += t.notSent;
        lateAccepted += t.lateAccepted;
        lateRefused += t.lateRefused;
        duplicates += t.duplicates;
        windowFull += t.windowFull;
        connects += t.connects;
        redirects += t.redirects;
        resent += t.resent;
        evictions += t.evictions;
        violations += t.violations;
        outages += t.outages;
        longestOutageNs = Math.max(longestOutageNs, t.longestOutageNs);
    }

    /** Orders taken into the window. */
    public long submitted() {
        return submitted;
    }

    /** Orders answered with a receipt. */
    public long accepted() {
        return accepted;
    }

    /** Orders answered with a {@link RejectedException}. */
    public long refused() {
        return refused;
    }

    /** Orders that ended with an {@link UnknownOutcomeException}. */
    public long unknown() {
        return unknown;
    }

    /** Orders that ended with a {@link NotSentException}. */
    public long notSent() {
        return notSent;
    }

    /** Of {@link #unknown}: the grid later reported it as accepted. */
    public long lateAccepted() {
        return lateAccepted;
    }

    /** Of {@link #unknown}: the grid later reported it as refused. */
    public long lateRefused() {
        return lateRefused;
    }

    /** Of {@link #accepted}: applied before, the stored reply came. */
    public long duplicates() {
        return duplicates;
    }

    /** Submissions that found no room. */
    public long windowFull() {
        return windowFull;
    }

    /** Connections made with the session opened on them. */
    public long connects() {
        return connects;
    }

    /** Answers that named another node as primary, or none. */
    public long redirects() {
        return redirects;
    }

    /** Orders sent again after a reconnect, each time. */
    public long resent() {
        return resent;
    }

    /** Times the grid had forgotten a session. */
    public long evictions() {
        return evictions;
    }

    /** Breaches of the protocol by peers. */
    public long violations() {
        return violations;
    }

    /** Times in which orders waited because a connection or primary was lost. */
    public long outages() {
        return outages;
    }

    /** The longest of them. */
    public Duration longestOutage() {
        return Duration.ofNanos(longestOutageNs);
    }

    @Override
    public String toString() {
        return "submitted " + submitted + ", accepted " + accepted + ", refused " + refused + ", unknown " + unknown + ", not sent " + notSent
                + ", duplicates " + duplicates + ", connects " + connects + ", resent " + resent + ", evictions " + evictions
                + ", violations " + violations + ", outages " + outages + ", the longest " + Clock.text(longestOutageNs);
    }
}
