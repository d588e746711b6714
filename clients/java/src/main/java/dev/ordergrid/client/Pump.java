package dev.ordergrid.client;

import java.io.IOException;
import java.util.concurrent.locks.ReentrantLock;

/**
 * Moves frames for the threads that wait for answers, without one of its own: one of the waiting threads leads, that
 * is, it reads the socket and hands out what arrives, and the others follow. A single thread writes and reads the
 * socket itself, without a hand-off.
 *
 * <p>{@code mu} guards everything, the state of subclasses too. Methods are called and return with it held; socket
 * calls and callbacks happen without it.
 */
abstract class Pump {
    final ReentrantLock mu = new ReentrantLock();
    Conn conn; // null while there is no connection
    long now; // of the last read, or of the running callbacks
    Waiter first; // followers, oldest first
    private Waiter last;

    /** Handles the frame of n bytes at c.r. An exception ends the connection. */
    abstract void onFrame(Conn c, int n) throws FrameException;

    /** Runs after c stopped being the connection. */
    abstract void onBroken(Conn c, Throwable cause);

    /** Runs whenever a read returns: deadlines, callbacks. It may unlock mu meanwhile. */
    abstract void onPause(Conn c, long at);

    final void list(Waiter w) {
        if (w.listed) {
            return;
        }
        w.listed = true;
        w.prev = last;
        w.next = null;
        if (last != null) {
            last.next = w;
        } else {
            first = w;
        }
        last = w;
    }

    private void unlist(Waiter w) {
        if (!w.listed) {
            return;
        }
        if (w.prev != null) {
            w.prev.next = w.next;
        } else {
            first = w.next;
        }
        if (w.next != null) {
            w.next.prev = w.prev;
        } else {
            last = w.prev;
        }
        w.listed = false;
        w.next = null;
        w.prev = null;
    }

    /** Leads one read, or sleeps until signalled. The caller loops until what it waits for is there, then leaves. */
    final void await(Waiter w, long until, boolean eager) {
        Conn c = conn;
        if (c != null && !c.reading) {
            unlist(w);
            lead(c, until, eager);
            return;
        }
        list(w);
        mu.unlock();
        try {
            w.sleep(until);
        } finally {
            mu.lock();
        }
    }

    /** Ends waiting. If no thread leads now, the oldest follower is woken to lead. */
    final void leave(Waiter w) {
        unlist(w);
        w.drain();
        if (first != null && conn != null && !conn.reading) {
            first.signal();
        }
    }

    final void wakeAll() {
        for (Waiter w = first; w != null; w = w.next) {
            w.signal();
        }
    }

    private void lead(Conn c, long until, boolean eager) {
        c.reading = true;
        mu.unlock();
        int n = 0;
        Throwable failure = null;
        try {
            n = c.read(until, eager);
        } catch (IOException | RuntimeException e) {
            failure = e;
        } finally {
            mu.lock();
        }
        now = Clock.now();
        try {
            if (conn == c && failure != null) {
                fail(c, failure);
            } else if (conn == c && n > 0) {
                c.heard = true;
                c.reads++;
                handle(c);
            }
            onPause(c, now); // even if c is gone: answers may have come before its end
            if (conn == c) {
                flush(c, true); // what callbacks queued, or a slow peer left
            }
        } finally {
            c.reading = false;
        }
    }

    private void handle(Conn c) {
        try {
            while (conn == c) {
                int n = c.frame();
                if (n == 0) {
                    return;
                }
                onFrame(c, n);
                c.r += n;
            }
        } catch (FrameException e) {
            fail(c, violation(c, "undecodable bytes", e));
        } catch (GridException e) {
            fail(c, e);
        }
    }

    /** A breach of the protocol by the peer. */
    GridException violation(Conn c, String what, Throwable cause) {
        return new ProtocolException(c.addr, what, cause);
    }

    /** Drops the connection; the first of several failures of one connection counts. */
    final void fail(Conn c, Throwable cause) {
        if (conn != c) {
            return;
        }
        conn = null;
        c.close();
        onBroken(c, cause);
    }

    /**
     * Writes what is queued, unless another thread is writing. Orders that arrive meanwhile go out with the next
     * write, in one piece. While the peer takes nothing, only the leader tries.
     */
    final void flush(Conn c, boolean leader) {
        if (c.writing || c.stalled && !leader) {
            return;
        }
        c.writing = true;
        while (conn == c && c.dirty()) {
            c.seal();
            mu.unlock();
            boolean all = false;
            Throwable failure = null;
            try {
                all = c.write();
            } catch (IOException | RuntimeException e) {
                failure = e;
            } finally {
                mu.lock();
            }
            if (failure != null) {
                fail(c, failure);
                break;
            }
            if (conn == c) {
                c.written(all);
            }
            if (!all) {
                break;
            }
        }
        c.writing = false;
    }
}
