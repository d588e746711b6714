package dev.ordergrid.client;

import java.util.ArrayList;
import java.util.List;
import java.util.function.Function;

/**
 * The orders of a session that wait until the partition is known to take orders of their version of FIX, oldest first:
 * the primary asks the copies upon the first one. That one goes alone, and is sent again while it is refused; the others
 * go when it is taken, so that they keep their order, and a copy that does not learn the version costs one order a
 * pause. They have no number, and take up room in the window.
 */
final class Awaited {
    /** How long an order is sent again. */
    private static final long PATIENCE = 1000 * Clock.MS;

    private final Link s;
    private final List<Window.Pending> orders = new ArrayList<>();
    private Window.Pending probe; // the one that goes alone and has no answer, null: none
    private boolean taken; // the version is known
    private long at; // when the next one is sent
    private final Backoff back = new Backoff();
    private RejectedException refusal; // the last one
    long patience = PATIENCE;

    Awaited(Link s) {
        this.s = s;
    }

    int size() {
        return orders.size();
    }

    /** When an order has to be sent. */
    long until() {
        return orders.isEmpty() || probe != null ? Clock.NEVER : at;
    }

    /** Keeps a new order behind those that wait; false: it goes now. */
    boolean takes(Window.Pending o) {
        if (taken && orders.isEmpty() || o.change != null || !later(o)) {
            return false;
        }
        if (probe == null && orders.isEmpty()) {
            probe = o;
            return false;
        }
        orders.add(o);
        return true;
    }

    /** Reports whether an order may be of FIX 5.0 SP2. */
    private static boolean later(Window.Pending o) {
        return o.len > 6 && o.payload[o.off + 2] == 'F' && o.payload[o.off + 5] == 'T';
    }

    /**
     * Keeps an order that was refused because of its version; false: it is refused for good. The order has no number
     * any more.
     */
    boolean keeps(Window.Pending o, RejectedException reject) {
        if (reject.code() != RejectCode.VERSION_AWAITED || o.change != null || s.closed) {
            return false;
        }
        refusal = reject;
        taken = false;
        if (o.again == 0) {
            o.again = s.now + patience;
        }
        if (o.again <= s.now) {
            return false;
        }
        int i = orders.size();
        if (o == probe) {
            probe = null;
            i = 0;
            pause();
        } else if (i == 0 && probe == null) {
            pause();
        } else { // under way when a new primary has to ask again: older than what came in since
            while (i > 0 && orders.get(i - 1).submitted > o.submitted) {
                i--;
            }
        }
        orders.add(i, o);
        return true;
    }

    private void pause() {
        at = s.now + back.pause(s.client.config.retryMaxNs());
    }

    /** Sends the first of the orders, and all when one was taken. */
    void send(Conn c, long now) {
        if (now < until() || s.evicting) {
            return;
        }
        int n = 0;
        while (probe == null && n < orders.size() && s.win.inFlight() < s.win.limit) {
            Window.Pending o = orders.get(n++);
            s.win.add(o);
            s.win.at(o.clientSeq).submitted = now;
            s.encode(c, o.clientSeq);
            if (!taken) {
                probe = o;
            }
        }
        orders.subList(0, n).clear();
        forget();
    }

    /** Notes the outcome of an order, if it is the one that went alone. */
    void finished(Window.Pending o, GridException e) {
        if (o != probe) {
            return;
        }
        probe = null;
        at = 0;
        if (e == null) {
            taken = true;
        } else if (e instanceof RejectedException r) {
            switch (r.code()) {
                case DUPLICATE_CLORDID, LIMIT_REFUSED, FUNCTION_REFUSED -> taken = true; // after the look at the version
                case VERSION_AWAITED -> pause();
                default -> { }
            }
        }
        forget();
    }

    private void forget() {
        if (orders.isEmpty() && probe == null) {
            refusal = null;
            back.reset();
        }
    }

    /** Ends the orders whose time is over. */
    void sweep(long now) {
        boolean refused = refusal != null;
        leave(o -> {
            if (refused && o.again == 0) {
                o.again = now + patience;
            }
            return now < o.deadline && (!refused || now < o.again) ? null : new TimedOutException(o.deadline - o.submitted, s.trouble.last);
        });
    }

    /** Ends all of them. */
    void end(Throwable cause) {
        leave(o -> cause);
    }

    /** Ends the waiting of an order, if it is one of them. */
    boolean stop(Window.Pending o, Throwable cause) {
        int before = orders.size();
        leave(other -> other == o ? cause : null);
        return orders.size() < before;
    }

    /** Ends orders for which why has a cause: refused, if the version was, else not sent. */
    private void leave(Function<Window.Pending, Throwable> why) {
        if (orders.isEmpty()) {
            return;
        }
        RejectedException last = refusal;
        boolean any = orders.removeIf(o -> {
            Throwable cause = why.apply(o);
            if (cause == null) {
                return false;
            }
            if (last != null) {
                s.stats.refused++;
                s.finish(o, null, last);
            } else {
                s.stats.notSent++;
                s.finish(o, null, new NotSentException(s.partition, Clock.now() - o.submitted, cause));
            }
            return true;
        });
        if (any) {
            forget();
            s.room();
        }
    }
}
