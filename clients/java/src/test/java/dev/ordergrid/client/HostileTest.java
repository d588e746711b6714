package dev.ordergrid.client;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.time.Duration;
import java.util.HexFormat;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicReference;

/** Nodes that break the protocol: a clear error, no memory, no thread that hangs, and the grid is used on. */
final class HostileTest {
    private HostileTest() {}

    private static Config config(FakeNode n) {
        return Config.of(n.address()).connectTimeout(Duration.ofSeconds(60)).requestTimeout(Duration.ofSeconds(60));
    }

    /** What a connection to a node that answers Hello so fails with. */
    private static String refused(byte[] answer) throws IOException {
        try (FakeNode n = new FakeNode((c, type, f) -> {
            if (type != Wire.HELLO) {
                return false;
            }
            c.send(answer);
            c.close();
            return true;
        })) {
            try {
                throw new AssertionError("connected to " + Handshake.dial(config(n), n.address(), Attempt.within(60_000 * Clock.MS), out -> { }).member());
            } catch (IOException | GridException e) {
                return e.getMessage();
            }
        }
    }

    private static byte[] length(int n) {
        return ByteBuffer.allocate(16).order(ByteOrder.LITTLE_ENDIAN).putInt(n).put((byte) Wire.WELCOME).array();
    }

    static void testHello() throws Exception {
        Tests.contains(refused(length(Integer.MIN_VALUE)), "frame length is 2147483648, allowed: 8..1048576 bytes", "2 GiB");
        Tests.contains(refused(length(Integer.MAX_VALUE)), "frame length is 2147483647, allowed: 8..1048576 bytes", "2 GiB less 1");
        Tests.contains(refused(length(1 << 20)), "closed the connection", "a frame of 1 MiB that ends early");
        Tests.contains(refused("HTTP/1.1 400 Bad Request\r\n\r\n".getBytes()), "allowed: 8..1048576 bytes", "HTTP");
        Tests.contains(refused(new byte[] {21, 3, 3, 0, 2, 2, 40}), "the node speaks TLS: set Config.tls", "TLS");
        Tests.contains(refused(FakeNode.welcome(5).array()), "Welcome.version is 5, allowed: 4", "version 5");
        Tests.contains(refused(FakeNode.frame(Wire.GOAWAY, 0, 4).putShort((short) 2).putShort((short) 0).array()), "goaway 2", "goaway");
        Tests.contains(refused(FakeNode.frame(0x7f, 0, 8).array()), "Welcome.type is 127, allowed: Welcome", "unknown frame");
        Tests.contains(refused(new byte[0]), "closed the connection", "nothing");
    }

    /** Every hostile vector of a node in place of the answer to Submit, and then to OpenSession. */
    static void testVectors() throws Exception {
        AtomicReference<byte[]> toSubmit = new AtomicReference<>();
        AtomicReference<byte[]> toOpen = new AtomicReference<>();
        try (FakeNode n = new FakeNode((c, type, f) -> {
            byte[] b = type == Wire.SUBMIT ? toSubmit.getAndSet(null) : type == Wire.OPEN_SESSION ? toOpen.getAndSet(null) : null;
            if (b == null) {
                return false;
            }
            c.send(b);
            c.close();
            return true;
        }); GridClient c = GridClient.connect(config(n).retryMax(Duration.ofMillis(5)))) {
            int k = 0;
            for (Map<String, Object> v : Json.vectors("hostile.json")) {
                if (!v.get("sentBy").equals("client")) {
                    byte[] b = HexFormat.of().parseHex((String) v.get("hex"));
                    toSubmit.set(b);
                    toOpen.set(b);
                    Tests.check(c.submit(Orders.order("H" + k++, 0)).seq() > 100, v.get("name") + ": the order is sent again");
                    Tests.check(toSubmit.get() == null && toOpen.get() == null, v.get("name") + ": it was sent");
                }
            }
            Tests.check(k > 90, k + " vectors");
            Stats st = c.stats();
            Tests.check(st.accepted() == k && st.violations() > k / 2 && st.unknown() == 0 && st.resent() == k, st.toString());
        }
    }

    /** Frames in order that mean what cannot be. */
    static void testSession() throws Exception {
        wrong("ack is for order 9, allowed: one without an answer (1..1)", c -> c.ack(9, 101, 0));
        wrong("has seq 0, allowed: more than 0", c -> c.ack(1, 0, 0));
        wrong("has seq 18446744073709551615", c -> c.ack(1, -1, 0));
        wrong("ack is for session slot 7, allowed: 1", c -> c.send(FakeNode.frame(Wire.ACK, 0, 48).putLong(1).putLong(101).putLong(3).putInt(7)));
        wrong("reject is for order 4", c -> c.reject(4, RejectCode.BAD_FIX, 0));
        wrong("frame type LogChunk on a session", c -> c.send(FakeNode.frame(Wire.LOG_CHUNK, 0, 48)));
        wrong("frame type 0xee on a session", c -> c.send(FakeNode.frame(0xee, 0, 0)));
    }

    private interface Answer {
        void to(FakeNode.Link c) throws IOException;
    }

    private static void wrong(String want, Answer answer) throws Exception {
        AtomicInteger left = new AtomicInteger(1);
        StringBuffer logged = new StringBuffer();
        try (FakeNode n = new FakeNode((c, type, f) -> {
            if (type != Wire.SUBMIT || left.getAndDecrement() <= 0) {
                return false;
            }
            answer.to(c);
            return true;
        }); GridClient c = GridClient.connect(config(n).logger(new Log(logged)))) {
            Tests.check(c.submit(Orders.order("W", 0)).seq() > 0, want);
            Tests.equal(c.stats().violations(), 1L, want + ": violations");
            Tests.contains(logged.toString(), want, "log");
        }
    }

    /** Unknown reject codes refuse only the copy they answer. */
    static void testUnknownCode() throws Exception {
        try (FakeNode n = new FakeNode((c, type, f) -> {
            if (type != Wire.SUBMIT) {
                return false;
            }
            c.send(FakeNode.frame(Wire.REJECT, 0, 40).putLong(f.getLong(24)).putLong(0).putInt(1).putInt(0).putShort((short) 999).put((byte) Wire.SUBMIT));
            return true;
        }); GridClient c = GridClient.connect(config(n))) {
            c.submit(Orders.order("U", 0));
            throw new AssertionError("accepted");
        } catch (RejectedException e) {
            Tests.equal(e.code(), RejectCode.OTHER, "code");
            Tests.equal(e.number(), 999, "number");
        }
    }

    /** A node that takes everything and says nothing, or sends Pongs only. */
    static void testSilence() throws Exception {
        for (Set<Integer> silent : Set.of(Set.of(Wire.HELLO), Set.of(Wire.OPEN_SESSION), Set.of(Wire.SUBMIT, Wire.PING), Set.of(Wire.SUBMIT))) {
            try (FakeNode n = new FakeNode((c, type, f) -> silent.contains(type))) {
                long began = System.nanoTime();
                try (GridClient c = GridClient.connect(config(n).connectTimeout(Duration.ofSeconds(2)).requestTimeout(Duration.ofMillis(1500)).suspectAfter(Duration.ofMillis(50)))) {
                    c.submit(Orders.order("S", 0));
                    throw new AssertionError("accepted");
                } catch (UnavailableException | NotSentException | UnknownOutcomeException e) {
                    Fate want = silent.contains(Wire.SUBMIT) ? Fate.UNKNOWN : Fate.REFUSED;
                    Tests.check(e.fate() == want || silent.contains(Wire.HELLO), silent + ": " + e.getMessage());
                    Tests.check(System.nanoTime() - began < 60_000_000_000L, silent + " takes too long");
                    Tests.check(n.links.size() > 2 || !silent.contains(Wire.PING), "a connection without a Pong is not replaced: " + n.links.size());
                }
            }
        }
    }

    /** Reads: answers to nothing, entries of another order, a log that does not chain. */
    static void testReads() throws Exception {
        readError("GetReply.status is 9", Wire.GET, FakeNode.frame(Wire.GET_REPLY, 0, 32).putLong(8, 0).put(32, (byte) 9));
        readError("GetReply.type is 97, allowed: GetReply", Wire.GET, FakeNode.frame(Wire.LOG_CHUNK, 0, 52));
        readError("reqID 18446744073709551615, allowed: 1..", Wire.GET, FakeNode.frame(Wire.GET_REPLY, 0, 32).putLong(8, -1));
        readError("GetReply.entry is entry 5, allowed: 1", Wire.GET, entry(5, 2));
        readError("GetReply.entry is of kind NOOP, allowed: one order", Wire.GET, entry(1, 1));
        readError("Table.partitions is 7, allowed: 1", Wire.GET, null);
    }

    /** A GetReply with an entry of this seq and kind. */
    private static ByteBuffer entry(long seq, int kind) {
        int payload = 16;
        ByteBuffer b = FakeNode.frame(Wire.GET_REPLY, 0, 32 + Wire.ENTRY_HEADER + payload);
        int at = 40;
        b.putInt(at, Wire.ENTRY_HEADER + payload).put(at + 4, (byte) kind).putLong(at + 8, seq);
        if (kind == 2) {
            b.putShort(at + 6, (short) 1).put(at + 48, (byte) 3);
        }
        return b;
    }

    private static void readError(String want, int in, ByteBuffer answer) throws Exception {
        AtomicInteger tables = new AtomicInteger();
        try (FakeNode n = new FakeNode((c, type, f) -> {
            if (answer == null && type == Wire.TABLE_REQUEST && tables.getAndIncrement() > 0) {
                c.send(FakeNode.frame(Wire.TABLE, 0, 12).putLong(f.getLong(8)).putShort((short) 7).putShort((short) 0));
                return true;
            }
            if (type != in) {
                return false;
            }
            if (answer == null) {
                c.close();
                return true;
            }
            ByteBuffer b = ByteBuffer.wrap(answer.array().clone()).order(ByteOrder.LITTLE_ENDIAN);
            if (b.getLong(8) == 0) {
                b.putLong(8, f.getLong(8));
            }
            c.send(b);
            return true;
        }); GridClient c = GridClient.connect(config(n).requestTimeout(Duration.ofMillis(300)))) {
            String got = "";
            for (long end = System.nanoTime() + 60_000_000_000L; !got.contains(want) && System.nanoTime() < end; ) { // a slow machine needs more than one
                try {
                    if (answer == null) {
                        c.refresh();
                    } else {
                        c.get(new OrderId(0, 1));
                    }
                    throw new AssertionError("answered");
                } catch (GridException e) {
                    got = e.getMessage();
                }
            }
            Tests.contains(got, want, "message");
        }
    }

    /** Collects what the client logs. */
    private record Log(StringBuffer text) implements System.Logger {
        @Override
        public String getName() {
            return "test";
        }

        @Override
        public boolean isLoggable(Level level) {
            return true;
        }

        @Override
        public void log(Level level, java.util.ResourceBundle bundle, String msg, Throwable thrown) {
            text.append(msg).append('\n');
        }

        @Override
        public void log(Level level, java.util.ResourceBundle bundle, String format, Object... params) {
            text.append(format).append('\n');
        }
    }
}
