package dev.ordergrid.client;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.function.ObjLongConsumer;

/** The connections for requests, one to each node. */
final class Callers {
    final GridClient client;
    private final ConcurrentHashMap<String, CompletableFuture<Caller>> callers = new ConcurrentHashMap<>();

    Callers(GridClient client) {
        this.client = client;
    }

    /** What an answer means. */
    interface Decode<T> {
        T decode(ByteBuffer frame, int at, int n) throws FrameException;
    }

    /** Sends one request to addr and decodes the answer. */
    <T> T call(String addr, Attempt a, ObjLongConsumer<Out> encode, Decode<T> decode) throws IOException {
        ByteBuffer frame;
        try {
            frame = of(addr, a).roundTrip(a, encode);
        } catch (Caller.LostException e) {
            if (client.closed() || a.over()) {
                throw e;
            }
            frame = of(addr, a).roundTrip(a, encode); // most likely it was lost long ago and had not been used since
        }
        try {
            refusal(addr, frame);
            return decode.decode(frame, 0, frame.capacity());
        } catch (FrameException e) {
            throw new ProtocolException(addr, "answer", e);
        }
    }

    /** Throws what the frames mean that any request may be answered with. */
    static void refusal(String addr, ByteBuffer frame) throws FrameException {
        int n = frame.capacity();
        int partition = In.partition(frame, 0);
        switch (In.type(frame, 0)) {
            case Wire.NOT_PRIMARY -> {
                In.NotPrimary m = In.notPrimary(frame, 0, n);
                throw new NotPrimaryException(partition, addr, m.epoch(), m.address());
            }
            case Wire.REJECT -> throw new RejectedException(partition, In.reject(frame, 0, n), addr);
            default -> { }
        }
    }

    In.Table table(String addr, Attempt a) throws IOException {
        return call(addr, a, (out, id) -> out.request(Wire.TABLE_REQUEST, id), In::table);
    }

    /** Makes sure that there is a connection. */
    void connect(String addr, Attempt a) throws IOException {
        of(addr, a);
    }

    private Caller of(String addr, Attempt a) throws IOException {
        if (client.closed()) {
            throw new ClosedException("the client");
        }
        CompletableFuture<Caller> fresh = new CompletableFuture<>();
        CompletableFuture<Caller> f = callers.putIfAbsent(addr, fresh);
        if (f == null) {
            f = fresh;
            if (!client.fork(() -> dial(addr, fresh))) {
                fresh.completeExceptionally(new ClosedException("the client"));
            }
        }
        try {
            return f.get(Math.max(1, a.left()), TimeUnit.NANOSECONDS);
        } catch (TimeoutException e) {
            throw new java.net.SocketTimeoutException("connect to " + addr + ": no answer in time");
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            throw new InterruptedWaitException();
        } catch (ExecutionException e) {
            if (e.getCause() instanceof GridException g) {
                throw g;
            }
            throw e.getCause() instanceof IOException io ? io : new IOException(e.getCause());
        }
    }

    private void dial(String addr, CompletableFuture<Caller> f) {
        try {
            Handshake.Node n = Handshake.dial(client.config, addr, Attempt.within(client.attemptNs(1000 * Clock.MS)), out -> { });
            Caller k = new Caller(this, addr, n.conn());
            f.complete(k);
            if (client.closed()) {
                k.close();
            }
        } catch (IOException | RuntimeException e) {
            callers.remove(addr, f);
            f.completeExceptionally(e);
        }
    }

    void drop(String addr, Caller k) {
        callers.computeIfPresent(addr, (key, f) -> f.isDone() && !f.isCompletedExceptionally() && f.join() == k ? null : f);
    }

    void close() {
        for (CompletableFuture<Caller> f : List.copyOf(callers.values())) {
            f.thenAccept(Caller::close);
        }
    }
}
