package dev.ordergrid.client;

/** The state of failures of a session since its last good answer. */
final class Trouble {
    long since; // first failure, 0 without one
    private long outage; // since when an order waits for its answer because of it; 0: none
    private long epoch;
    private String member = "";
    private Throwable firstCause;
    Throwable last;
    final Backoff back = new Backoff();
    long triedAt; // last failed attempt or broken connection

    /** Notes a failure. waitingSince is 0 if no order waits. */
    void note(Link s, long at, long waitingSince, Throwable cause) {
        if (since == 0) {
            since = at;
            epoch = s.epoch;
            member = s.member;
        }
        if (outage == 0) {
            outage = waitingSince;
        }
        if (cause != null) {
            last = cause;
            if (firstCause == null) {
                firstCause = cause;
            }
        }
    }

    boolean any() {
        return (since | outage) != 0;
    }

    /** Ends the failure; the outage, if an order had to wait. */
    Outage end(Link s) {
        Outage o = null;
        if (outage != 0) {
            o = new Outage(s.partition, Clock.wall(outage), Clock.wall(s.lastOk), Outage.Cause.of(firstCause), firstCause, epoch, s.epoch,
                    member, s.member, back.attempts);
            s.stats.outages++;
            s.stats.longestOutageNs = Math.max(s.stats.longestOutageNs, s.lastOk - outage);
        }
        clear();
        return o;
    }

    void clear() {
        since = 0;
        outage = 0;
        firstCause = null;
        last = null;
        back.reset();
        triedAt = 0;
    }
}
