package dev.ordergrid.client;

import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.concurrent.ConcurrentLinkedQueue;

/** How a client proves who it is. Below TLS: real grids that review tokens run on Kubernetes. */
final class HandshakeTest {
    private HandshakeTest() {}

    private static String text(ByteBuffer f, int at) {
        return new String(f.array(), at, f.capacity() - at, StandardCharsets.US_ASCII);
    }

    /** The token is read anew for each connection, and nothing follows it before Authenticated. */
    static void testToken() throws Exception {
        Path file = Files.createTempFile("token", "");
        ConcurrentLinkedQueue<String> got = new ConcurrentLinkedQueue<>();
        try (FakeNode n = new FakeNode((c, type, f) -> {
            got.add(Wire.name(type) + (type == Wire.AUTHENTICATE ? " " + text(f, 20) : ""));
            if (type == Wire.AUTHENTICATE) {
                Tests.check(c.socket.getInputStream().available() == 0, "something follows the token at once");
                c.send(FakeNode.frame(Wire.AUTHENTICATED, 0, 16 + 2).putLong(f.getLong(8)).putShort((short) 3).putShort((short) 0).putInt(0).put((byte) 1).put((byte) 'u'));
                return true;
            }
            return false;
        })) {
            Config cfg = Config.of(n.address()).token(TokenSource.file(file)); // connect would want TLS
            for (String token : new String[] {"first", "second"}) {
                Files.writeString(file, token + "\n");
                int before = got.size();
                Handshake.dial(cfg, n.address(), Attempt.within(5000 * Clock.MS), out -> out.request(Wire.PING, 9)).conn().close();
                while (got.size() < before + 3) { // each connection has a thread of its own
                    Thread.sleep(1);
                }
            }
            Tests.equal(String.join(", ", got), "Hello, Authenticate first, Ping, Hello, Authenticate second, Ping", "frames");
            Files.writeString(file, "x".repeat(Wire.MAX_TOKEN + 1));
            fails(cfg, n, "Config.token gives 16385 bytes, allowed: a token of 1..16384 bytes");
            Files.delete(file);
            fails(cfg, n, "Config.token: ");
        }
    }

    private static void fails(Config cfg, FakeNode n, String want) {
        try {
            Handshake.dial(cfg, n.address(), Attempt.within(5000 * Clock.MS), out -> { });
            throw new AssertionError("connected");
        } catch (java.io.IOException e) {
            Tests.contains(e.getMessage(), want, "message");
        }
    }

    /** What cannot change by itself is reported at once, not after the whole time. */
    static void testRefused() throws Exception {
        for (int code : new int[] {GoawayException.VERSION, GoawayException.GRID, GoawayException.UNAUTHENTICATED, GoawayException.NOT_PERMITTED}) {
            try (FakeNode n = new FakeNode((c, type, f) -> {
                c.send(FakeNode.frame(Wire.GOAWAY, 0, 4 + 3).putShort((short) code).putShort((short) 3).put("why".getBytes()));
                return true;
            })) {
                long began = System.nanoTime();
                try {
                    GridClient.connect(Config.of(n.address()).connectTimeout(Duration.ofMinutes(5))).close();
                    throw new AssertionError("connected");
                } catch (UnavailableException e) {
                    Tests.contains(e.getMessage(), "goaway " + code + "): why; ", "message");
                    Tests.equal(GridException.find(e, GoawayException.class).code(), code, "code");
                    Tests.check(System.nanoTime() - began < 60_000_000_000L, "reported late");
                }
            }
        }
    }

    static void testConfig() {
        for (Runnable wrong : new Runnable[] {() -> Config.of(), () -> Config.of("nowhere"), () -> Config.of("a:b:1"), () -> Config.of("h:70000"),
            () -> Config.of("h:1").maxInFlight(0), () -> Config.of("h:1").requestTimeout(Duration.ZERO), () -> Config.of("h:1").grid("g".repeat(256)),
            () -> GridClient.connect(Config.of("h:1").token(() -> "t")), () -> FollowOptions.of(0).account("a".repeat(65))}) {
            try {
                wrong.run();
                throw new AssertionError("taken");
            } catch (IllegalArgumentException e) {
                Tests.contains(e.getMessage(), ", allowed: ", "message");
            }
        }
        Tests.equal(HostPort.parse("[::1]:7400"), new HostPort("::1", 7400), "IPv6");
    }
}
