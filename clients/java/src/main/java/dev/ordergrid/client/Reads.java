package dev.ordergrid.client;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.function.Predicate;

/** Requests that may be repeated: reads of orders and of the log. */
final class Reads {
    private final GridClient client;

    Reads(GridClient client) {
        this.client = client;
    }

    record Answer<T>(T m, String from) {}

    interface Ask<T> {
        T ask(Attempt a, String addr) throws IOException;
    }

    Order get(OrderName name, ReadMode mode) {
        OrderId id = name.id();
        client.checkPartition(id.partition());
        if (id.seq() == 0) {
            throw new IllegalArgumentException("order id is " + id + ", allowed: a seq of 1 or more");
        }
        Order o = one(id.partition(), Wire.BY_ID, id.seq(), new byte[0], "order " + id, mode);
        if (!name.is(o.epoch(), o.entry().hash())) {
            throw new OtherOrderException(name, o.name(), client.directory.partition(id.partition()).lineage());
        }
        return o;
    }

    Order getByClOrdId(String clOrdId, ReadMode mode) {
        byte[] key = clOrdId.getBytes(StandardCharsets.ISO_8859_1);
        if (key.length == 0 || key.length > Wire.MAX_KEY) {
            throw new IllegalArgumentException("ClOrdID has " + key.length + " bytes, allowed: 1.." + Wire.MAX_KEY);
        }
        int n = client.directory.table().parts.length;
        int first = client.routeClOrdId(clOrdId);
        OrderFreedException freed = null;
        String what = "ClOrdID \"" + OrderId.shortened(clOrdId) + "\"";
        for (int i = 0; i < n; i++) {
            try {
                return one((first + i) % n, Wire.BY_CLORDID, 0, key, what, mode);
            } catch (OrderFreedException e) {
                freed = freed == null ? e : freed;
            } catch (OrderNotFoundException e) {
                // another partition may have it
            }
        }
        if (freed != null) {
            throw freed;
        }
        throw new OrderNotFoundException(what + " in " + n + " partitions");
    }

    private Order one(int p, int by, long seq, byte[] key, String what, ReadMode mode) {
        Answer<In.GetReply> a = retry(p, mode == ReadMode.BACKUP, (attempt, addr) -> client.callers.call(addr, attempt,
                (out, id) -> out.get(p, id, by, mode.wire, seq, key), (f, at, n) -> {
                    In.GetReply m = In.getReply(f, at, n);
                    checkReply(m, by, seq, key);
                    return m;
                }));
        In.GetReply m = a.m;
        if (m.status() == Wire.NOT_FOUND) {
            throw new OrderNotFoundException(what);
        }
        if (m.status() == Wire.FREED) {
            throw new OrderFreedException(p, what, m.freed());
        }
        try {
            return new Order(p, LogEntry.decode(m.entry(), 0), m.commitSeq(), a.from);
        } catch (FrameException e) {
            throw new ProtocolException(a.from, "answer", e);
        }
    }

    /** The entry must be that of the order which was asked for. */
    private static void checkReply(In.GetReply m, int by, long seq, byte[] key) throws FrameException {
        if (m.status() != Wire.FOUND) {
            return;
        }
        LogEntry e = LogEntry.decode(m.entry(), 0);
        if (e.kind() != LogEntry.Kind.ORDER && e.kind() != LogEntry.Kind.EXECUTE || e.padded() != (m.entry().length + 7 & ~7)) {
            throw new FrameException("GetReply.entry is of kind " + e.kind() + ", allowed: one order");
        }
        if (by == Wire.BY_ID && e.seq() != seq) {
            throw new FrameException("GetReply.entry is entry " + e.seq() + ", allowed: " + seq + ", which was asked for");
        }
        if (by == Wire.BY_CLORDID && !e.clOrdId().equals(new String(key, StandardCharsets.ISO_8859_1))) {
            throw new FrameException("GetReply.entry is of another ClOrdID than was asked for");
        }
    }

    LogEnd readLog(int p, String replica, long from, Predicate<LogEntry> fn) {
        client.checkPartition(p);
        if (from < 1) {
            throw new IllegalArgumentException("from is " + from + ", allowed: a seq of 1 or more");
        }
        long next = from;
        long hash = 0;
        boolean known = from == 1;
        while (true) {
            long want = next;
            Ask<In.LogChunk> ask = (a, addr) -> client.callers.call(addr, a, (out, id) -> out.readLog(p, id, want, 0), In::logChunk);
            Answer<In.LogChunk> a;
            if (replica.isEmpty()) {
                a = retry(p, false, ask);
            } else {
                try {
                    a = new Answer<>(ask.ask(Attempt.within(client.config.requestNs()), replica), replica);
                } catch (IOException e) {
                    throw new UnavailableException("read the log of p" + p + " at " + replica, e);
                }
            }
            In.LogChunk m = a.m;
            boolean stopped = false;
            for (int at = 0; at < m.entries().length && !stopped; ) {
                LogEntry e;
                try {
                    e = LogEntry.next(m.entries(), at);
                } catch (FrameException x) {
                    throw new LogException(p, a.from, next, x.getMessage());
                }
                checkEntry(p, a.from, e, next, m.commitSeq(), known ? hash : e.prevHash());
                hash = e.hash();
                known = true;
                stopped = !fn.test(e);
                next++;
                at += e.padded();
            }
            if (stopped || m.entries().length == 0) {
                if (!stopped && next <= m.commitSeq()) {
                    throw new LogException(p, a.from, next, "it was not sent although the committed prefix is " + m.commitSeq());
                }
                return new LogEnd(a.from, m.epoch(), m.commitSeq(), m.lastSeq(), m.lastHash(), next);
            }
        }
    }

    static void checkEntry(int p, String addr, LogEntry e, long want, long commit, long prevHash) {
        if (e.seq() != want) {
            throw new LogException(p, addr, want, "seq is " + Long.toUnsignedString(e.seq()) + ", allowed: " + want + ", numbers are dense");
        }
        if (e.seq() > commit) {
            throw new LogException(p, addr, want, "it is beyond the committed prefix " + commit);
        }
        if (e.prevHash() != prevHash) {
            throw new LogException(p, addr, want, String.format("prevHash is %016x, allowed: the hash of the entry before, %016x", e.prevHash(), prevHash));
        }
    }

    /** Runs a request against the right replica until it succeeds, is refused for good, or time is over. */
    <T> Answer<T> retry(int p, boolean backup, Ask<T> request) {
        Attempt all = Attempt.within(client.config.requestNs());
        Directory d = client.directory;
        Backoff back = new Backoff();
        Throwable last = null;
        long began = Clock.now();
        long known = d.partition(p).epoch();
        String hint = "";
        while (!all.over()) {
            d.await(() -> false, Math.min(all.until, Clock.now() + back.pause(client.config.retryMaxNs())));
            String addr = hint.isEmpty() ? replica(p, backup, back.attempts) : hint;
            hint = "";
            try {
                if (addr.isEmpty()) {
                    throw new UnavailableException("p" + p + " has no primary at epoch " + d.partition(p).epoch(), null);
                }
                long limit = client.attemptNs(2 * (Clock.now() - began));
                return new Answer<>(request.ask(new Attempt(Math.min(all.until, Clock.now() + limit)), addr), addr);
            } catch (NotPrimaryException e) {
                last = e;
                if (!e.hint.isEmpty() && !e.hint.equals(addr)) {
                    hint = e.hint;
                    if (e.epoch > known) {
                        known = e.epoch;
                        back.reset(); // news: at once
                    }
                    continue;
                }
            } catch (RejectedException e) {
                last = e;
                if (!e.code().passing()) {
                    throw e;
                }
            } catch (ClosedException | InterruptedWaitException e) {
                throw e;
            } catch (IOException | RuntimeException e) {
                if (last == null || !(e instanceof java.net.SocketTimeoutException)) {
                    last = e; // that of the attempt before says more than a deadline
                }
                if (GridException.permanent(e)) {
                    throw e instanceof GridException g ? g : new UnavailableException("p" + p, e);
                }
            }
            d.refresh(p, addr, Attempt.within(Math.min(Math.max(all.left(), 1), client.attemptNs(0))));
        }
        throw new UnavailableException("p" + p, last);
    }

    /** The target: the primary, or for backup reads the in-sync copies in turn, the primary last. */
    String replica(int p, boolean backup, int attempt) {
        PartitionInfo info = client.directory.partition(p);
        if (!backup) {
            return info.primaryAddress();
        }
        List<String> copies = new ArrayList<>();
        for (Member m : info.members()) {
            if (m.inSync() && (info.primary() == null || !m.id().equals(info.primary().id()))) {
                copies.add(m.address());
            }
        }
        if (!info.primaryAddress().isEmpty()) {
            copies.add(info.primaryAddress());
        }
        return copies.isEmpty() ? "" : copies.get((attempt - 1) % copies.size());
    }
}
