package dev.ordergrid.client;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.HashMap;
import java.util.Map;
import java.util.function.ObjLongConsumer;

/**
 * A connection to one node for requests that may be repeated freely: tables, reads, log chunks. Many threads share it.
 * Once broken it is thrown away, and the next request dials again.
 */
final class Caller extends Pump {
    /** Bounds the outstanding requests to one node. */
    private static final int MAX_CALLS = 16 << 10;

    private final Callers owner;
    private final String addr;
    private final Map<Long, Call> calls = new HashMap<>();
    private long next;
    private Throwable broken;

    private static final class Call {
        final Waiter waiter = new Waiter();
        ByteBuffer frame; // the answer, a copy
        IOException error;
    }

    /** The connection was lost, most likely before the request. */
    static final class LostException extends IOException {
        private static final long serialVersionUID = 1;

        LostException(String addr, Throwable cause) {
            super(addr + ": connection lost: " + GridException.text(cause), cause);
        }
    }

    Caller(Callers owner, String addr, Conn c) {
        this.owner = owner;
        this.addr = addr;
        conn = c;
    }

    /** Sends a request, which encode appends with its id, and waits for the answer. */
    ByteBuffer roundTrip(Attempt a, ObjLongConsumer<Out> encode) throws IOException {
        long began = Clock.now();
        mu.lock();
        try {
            Conn c = conn;
            if (c == null) {
                throw new LostException(addr, broken);
            }
            if (calls.size() >= MAX_CALLS) {
                throw new IOException(addr + ": " + calls.size() + " requests are unanswered, allowed: " + MAX_CALLS + "; slow down");
            }
            long id = ++next;
            Call q = new Call();
            calls.put(id, q);
            encode.accept(c.out, id);
            long reads = c.reads;
            flush(c, false);
            boolean interrupted = false;
            while (q.frame == null && q.error == null && !a.over() && !interrupted) {
                await(q.waiter, a.until, false);
                interrupted = Thread.currentThread().isInterrupted();
            }
            leave(q.waiter);
            calls.remove(id);
            if (q.frame != null) {
                return q.frame;
            }
            if (q.error != null) {
                throw q.error;
            }
            long owed = Clock.now() - began;
            if (c.reads == reads && owed >= owner.client.config.suspectAfterNs()) {
                // Nothing arrived: a middlebox may have dropped the connection. The next request dials again.
                fail(c, new SilentException(addr, owed, "the client reconnects"));
            }
            if (interrupted) {
                throw new InterruptedWaitException();
            }
            throw new java.net.SocketTimeoutException(addr + ": no answer in " + Clock.text(owed));
        } finally {
            mu.unlock();
        }
    }

    /** Finds the request that a frame answers: every answer has the request id first. */
    @Override
    void onFrame(Conn c, int n) throws FrameException {
        int type = In.type(c.in, c.r);
        switch (type) {
            case Wire.TABLE, Wire.GET_REPLY, Wire.LOG_CHUNK, Wire.PONG, Wire.NOT_PRIMARY, Wire.REJECT, Wire.REGION_GOT, Wire.REGION_PAGE,
                    Wire.REGION_LISTED -> {
                if (n < Wire.HEADER + 8) {
                    throw new ProtocolException(addr, "a " + Wire.name(type) + " frame of " + n + " bytes, allowed: 16 or more", null);
                }
                long id = c.in.getLong(c.r + Wire.HEADER);
                if (id < 1 || id > next) {
                    throw new ProtocolException(addr, Wire.name(type) + " has reqID " + Long.toUnsignedString(id) + ", allowed: 1.." + next, null);
                }
                Call q = calls.get(id);
                if (q != null && q.frame == null) {
                    q.frame = ByteBuffer.wrap(In.bytes(c.in, c.r, n)).order(ByteOrder.LITTLE_ENDIAN);
                    q.waiter.signal();
                }
            }
            case Wire.GOAWAY -> c.checkGoaway(n);
            default -> throw new ProtocolException(addr, "frame type " + Wire.name(type) + " was not asked for", null);
        }
    }

    @Override
    void onBroken(Conn c, Throwable cause) {
        broken = cause;
        for (Call q : calls.values()) {
            q.error = new LostException(addr, cause);
            q.waiter.signal();
        }
        owner.drop(addr, this);
    }

    @Override
    void onPause(Conn c, long at) {}

    void close() {
        mu.lock();
        try {
            if (conn != null) {
                fail(conn, new ClosedException("the client"));
            }
        } finally {
            mu.unlock();
        }
    }
}
