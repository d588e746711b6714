package dev.ordergrid.client;

import java.util.Collections;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ArrayBlockingQueue;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.TimeUnit;
import java.util.function.BooleanSupplier;
import java.util.function.Function;

/**
 * Where the partitions are. Its lock is taken last: a thread that holds it takes no other.
 */
final class Directory {
    /** How long one node may take to answer before the next is asked as well. */
    private static final long HEDGE = 50 * Clock.MS;
    /** How long an answer is shared, so that waiting clients do not load a grid without a primary. */
    private static final long SHARE = 2 * Clock.MS;

    private final GridClient client;
    private final Object lock = new Object();
    private volatile Table table = Table.EMPTY;
    private final Map<Integer, Flight> flights = new HashMap<>();
    private final Map<String, Question> questions = new HashMap<>();
    private final BlockingQueue<Long> aged = new ArrayBlockingQueue<>(64); // epochs the table lacks, and their partitions

    /** A refresh of one partition in progress, shared by concurrent callers; the future gives the error, or null. */
    private record Flight(long began, CompletableFuture<Throwable> done) {}

    /** A TableRequest to one node, shared by all that want something of the node. */
    private record Question(long asked, CompletableFuture<In.Table> done) {}

    Directory(GridClient client) {
        this.client = client;
    }

    Table table() {
        return table;
    }

    PartitionInfo partition(int p) {
        Table t = table;
        return p < t.parts.length ? t.parts[p] : new PartitionInfo(p, 0, 0, null, List.of());
    }

    /** Waits until the time is over, or done after a change of the table or wake. */
    void await(BooleanSupplier done, long until) {
        synchronized (lock) {
            while (!done.getAsBoolean() && !client.closed()) {
                long left = until - Clock.now();
                if (left <= 0) {
                    return;
                }
                try {
                    TimeUnit.NANOSECONDS.timedWait(lock, Math.min(left, Clock.TICK) + Clock.MS / 10);
                } catch (InterruptedException e) {
                    Thread.currentThread().interrupt();
                    return;
                }
            }
        }
    }

    void wake() {
        synchronized (lock) {
            lock.notifyAll();
        }
    }

    /** Connects: asks the endpoints until one knows how many partitions there are. Null, or the last error. */
    Throwable learnGrid(Attempt a) {
        return ask("the grid's partitions", client.config.endpoints(), client.config.endpoints().size(), 0, a, this::judgeWhole);
    }

    /**
     * Asks where a partition is; avoid is an address that is most likely not the primary any more. Concurrent calls
     * for one partition are one search. Returns null, or why it failed.
     */
    Throwable refresh(int p, String avoid, Attempt a) {
        return join(fly(p, avoid, 0), a);
    }

    /** Asks where all partitions are now, no answer older than the call. */
    Throwable refreshAll(Attempt a) {
        long now = Clock.now();
        List<Flight> all = java.util.stream.IntStream.range(0, table.parts.length).mapToObj(p -> fly(p, "", now)).toList();
        Throwable first = null;
        for (Flight f : all) {
            Throwable e = join(f, a);
            first = first == null ? e : first;
        }
        return first;
    }

    private static Throwable join(Flight f, Attempt a) {
        while (true) {
            try {
                return f.done.get(Math.max(1, Math.min(a.left(), Clock.TICK)), TimeUnit.NANOSECONDS);
            } catch (java.util.concurrent.TimeoutException e) {
                if (a.over()) {
                    return new TimedOutException(a.given(), null);
                }
            } catch (InterruptedException e) {
                Thread.currentThread().interrupt();
                return new InterruptedWaitException();
            } catch (java.util.concurrent.ExecutionException e) {
                return e.getCause();
            }
        }
    }

    private Flight fly(int p, String avoid, long since) {
        Flight f;
        synchronized (lock) {
            Flight old = flights.get(p);
            if (old != null && old.began >= since) {
                return old;
            }
            f = new Flight(Clock.now(), new CompletableFuture<>());
            flights.put(p, f);
        }
        Flight mine = f;
        boolean started = client.fork(() -> {
            Table.Targets t = table.targets(p, avoid, client.config.endpoints());
            Throwable e = ask("p" + p, t.addresses(), t.own(), since, Attempt.within(client.attemptNs(1000 * Clock.MS)), m -> judge(m, p, avoid));
            mine.done.complete(e);
            await(() -> false, Clock.now() + SHARE);
            synchronized (lock) {
                flights.remove(p, mine);
            }
        });
        if (!started) {
            mine.done.complete(new ClosedException("the client"));
        }
        return f;
    }

    /** Notes the epoch that a session is served in. */
    void sawEpoch(int p, long epoch) {
        if (epoch > partition(p).epoch()) {
            aged.offer(epoch << 10 | p); // enough are queued if it is full
        }
    }

    /** Asks one node for the whole table periodically, and soon after a session has seen an epoch that it lacks. */
    void keep() {
        long every = client.config.tableEveryNs();
        ThreadLocalRandom random = ThreadLocalRandom.current();
        long due = Clock.now() + every / 2 + random.nextLong(every);
        while (!client.closed()) {
            Long saw = null;
            try {
                saw = aged.poll(Math.min(Math.max(due - Clock.now(), 1), 500 * Clock.MS), TimeUnit.NANOSECONDS);
            } catch (InterruptedException e) {
                continue; // closed is looked at above
            }
            if (saw != null) {
                await(() -> false, Clock.now() + random.nextLong(Math.min(1000 * Clock.MS, every)));
                if (saw >> 10 <= partition((int) (saw & 1023)).epoch()) {
                    continue;
                }
            } else if (Clock.now() < due) {
                continue;
            } else {
                due = Clock.now() + every / 2 + random.nextLong(every);
            }
            List<String> targets = table.addresses(client.config.endpoints());
            Collections.shuffle(targets, random);
            List<String> some = Table.some(targets);
            ask("the grid's partitions", some, some.size(), 0, Attempt.within(client.attemptNs(1000 * Clock.MS)), this::judgeWhole);
        }
    }

    /** What a node's table is worth to who asked. */
    private enum Verdict { USELESS, STALE, ENOUGH }

    private static Verdict judge(In.Table m, int id, String avoid) {
        Verdict v = Verdict.USELESS;
        for (PartitionInfo p : m.parts()) {
            if (p.partition() == id) {
                v = p.primary() == null || p.primaryAddress().equals(avoid) ? Verdict.STALE : Verdict.ENOUGH;
            }
        }
        return v;
    }

    private Verdict judgeWhole(In.Table m) {
        if (table.whole()) {
            return Verdict.ENOUGH;
        }
        return m.parts().isEmpty() ? Verdict.USELESS : Verdict.STALE;
    }

    private record Answer(String address, In.Table m, Throwable error) {}

    /**
     * Gets tables from targets, the next one when one fails or is slow, until a table is enough, or the first own
     * targets were asked and one that is stale is all there is. Returns null, or why it failed.
     */
    private Throwable ask(String what, List<String> targets, int own, long since, Attempt a, Function<In.Table, Verdict> judge) {
        BlockingQueue<Answer> answers = new LinkedBlockingQueue<>();
        int asked = 0;
        int open = 0;
        boolean answered = false;
        Throwable last = null;
        while (true) {
            if (open == 0) {
                if (answered && asked >= own) {
                    return null;
                }
                if (asked == targets.size()) {
                    return new UnavailableException("no node knows where to find " + what, last);
                }
                tableOf(targets.get(asked++), since, answers);
                open++;
            }
            Answer got;
            try {
                got = answers.poll(Math.max(1, Math.min(HEDGE, a.left())), TimeUnit.NANOSECONDS);
            } catch (InterruptedException e) {
                Thread.currentThread().interrupt();
                return new InterruptedWaitException();
            }
            if (got == null) {
                if (answered && asked >= own) {
                    return null;
                }
                if (a.over()) {
                    return new UnavailableException("no node answered in time where to find " + what, last == null ? new TimedOutException(a.given(), null) : last);
                }
                if (asked < targets.size()) {
                    tableOf(targets.get(asked++), since, answers);
                    open++;
                }
                continue;
            }
            open--;
            if (got.error != null) {
                last = got.error;
                continue;
            }
            switch (judge.apply(got.m)) {
                case ENOUGH -> {
                    return null;
                }
                case STALE -> answered = true;
                default -> last = new UnavailableException(got.address + " knows " + got.m.parts().size() + " of the grid's " + got.m.partitions()
                        + " partitions; the records of others may not be made yet", null);
            }
        }
    }

    /** Puts the table of the node at addr, asked for at since or later, into answers. */
    private void tableOf(String addr, long since, BlockingQueue<Answer> answers) {
        Question q;
        boolean fresh = false;
        synchronized (lock) {
            q = questions.get(addr);
            if (q == null || q.asked < since) {
                q = new Question(Clock.now(), new CompletableFuture<>());
                questions.put(addr, q);
                fresh = true;
            }
        }
        q.done.whenComplete((m, e) -> answers.add(new Answer(addr, m, e)));
        Question mine = q;
        if (fresh && !client.fork(() -> put(mine, addr))) {
            mine.done.completeExceptionally(new ClosedException("the client"));
        }
    }

    /** Asks a node, and merges its answer into the table. */
    private void put(Question q, String addr) {
        try {
            client.callers.connect(addr, Attempt.within(client.attemptNs(1000 * Clock.MS)));
            // Connected it is one round trip; a dead connection has to be noticed while there is time for another.
            In.Table m = client.callers.table(addr, Attempt.within(client.attemptNs(500 * Clock.MS)));
            synchronized (lock) {
                table = table.merge(addr, m);
                lock.notifyAll();
            }
            q.done.complete(m);
        } catch (java.io.IOException | RuntimeException e) {
            q.done.completeExceptionally(e);
        }
        await(() -> false, Clock.now() + SHARE);
        synchronized (lock) {
            questions.remove(addr, q);
        }
    }
}
