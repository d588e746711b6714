package dev.ordergrid.client;

/**
 * Checks a connection over which an answer is long overdue: a node that is cut off silently closes no connection. It
 * asks other nodes who the primary is, and leaves the present one only for a successor; a slow primary is waited for. It
 * also pings the node itself: a connection over which not even that is answered is replaced.
 */
final class Suspicion {
    /** How many times per suspectAfter the others are asked while an answer is overdue. */
    private static final int ASK_AGAIN = 4;
    /** In units of suspectAfter: allows for a node that is only very busy. */
    private static final int DEAF_AFTER = 5;

    private final Link s;
    private boolean asking;
    private long asked;

    Suspicion(Link s) {
        this.s = s;
    }

    void look(Conn c, long now) {
        if (c.heard) {
            c.heard = false;
            c.heardAt = now;
        }
        long limit = s.client.config.suspectAfterNs();
        if (s.win.inFlight() == 0) {
            return;
        }
        long owed = now - Math.max(s.win.at(s.win.head).submitted, s.lastOk);
        if (owed < limit) {
            return;
        }
        if (now - c.pingedAt >= limit && c.heardAt >= c.pingedAt) {
            c.pingedAt = now;
            c.out.request(Wire.PING, 1);
        } else if (c.heardAt < c.pingedAt && now - c.pingedAt >= DEAF_AFTER * limit) {
            s.fail(c, new SilentException(c.addr, owed, "and did not answer a ping"));
            return;
        }
        if (asking || now - asked < limit / ASK_AGAIN) {
            return;
        }
        asking = true;
        asked = now;
        s.client.fork(() -> askOthers(c));
    }

    private void askOthers(Conn c) {
        boolean told = s.client.directory.refresh(s.partition, c.addr, Attempt.within(s.client.attemptNs(0))) == null;
        s.mu.lock();
        try {
            asking = false;
            PartitionInfo info = s.client.directory.partition(s.partition);
            if (told && s.conn == c && info.epoch() > s.epoch && info.primary() != null && !info.primary().id().equals(s.member)) {
                s.fail(c, new SilentException(c.addr, Clock.now() - s.lastOk, "and " + info.primaryAddress() + " is the primary since epoch " + info.epoch()));
            }
        } finally {
            s.mu.unlock();
        }
    }
}
