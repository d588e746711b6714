package dev.ordergrid.client;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.util.function.Consumer;

/** How connections begin: Hello, Welcome, and the client's token. */
final class Handshake {
    private Handshake() {}

    /** A connection to a node that has answered. */
    record Node(Conn conn, String member) {}

    /**
     * Connects to a node. What {@code more} appends is sent right behind the Hello, to save a round trip, or when the
     * node has taken the client's token; the answer to it is left unread.
     */
    static Node dial(Config cfg, String addr, Attempt a, Consumer<Out> more) throws IOException {
        byte[] token = cfg.token() == null ? null : token(cfg.token());
        Conn c = Conn.dial(addr, cfg.tls(), a);
        try {
            c.out.hello(cfg.grid().getBytes(StandardCharsets.UTF_8), cfg.name().getBytes(StandardCharsets.UTF_8));
            if (token == null) {
                more.accept(c.out);
            }
            c.send(a);
            String member = welcome(cfg, c, c.receive(a));
            if (token != null) {
                c.out.authenticate(1, token);
                c.send(a);
                authenticated(c, c.receive(a));
                more.accept(c.out);
                if (c.dirty()) {
                    c.send(a);
                }
            }
            return new Node(c, member);
        } catch (FrameException e) {
            c.close();
            throw new ProtocolException(addr, "handshake", e);
        } catch (IOException | RuntimeException e) {
            c.close();
            throw e;
        }
    }

    private static String welcome(Config cfg, Conn c, int n) throws FrameException {
        In.Welcome m = In.welcome(c.in, c.r, n);
        c.r += n;
        if (m.version() != Wire.VERSION) {
            throw new ProtocolException(c.addr, "Welcome.version is " + m.version() + ", allowed: " + Wire.VERSION, null);
        }
        if (!cfg.grid().isEmpty() && !m.grid().equals(cfg.grid())) {
            throw new GoawayException(c.addr, GoawayException.GRID, "it is a node of grid \"" + In.printable(m.grid().getBytes(StandardCharsets.UTF_8))
                    + "\", wanted: \"" + cfg.grid() + "\"");
        }
        return m.member();
    }

    private static void authenticated(Conn c, int n) throws FrameException {
        In.Authenticated m = In.authenticated(c.in, c.r, n);
        c.r += n;
        if (m.reqId() != 1) {
            throw new ProtocolException(c.addr, "Authenticated.reqID is " + m.reqId() + ", allowed: 1", null);
        }
    }

    /** The present token; no message contains it. */
    private static byte[] token(TokenSource source) throws IOException {
        String token;
        try {
            token = source.token();
        } catch (IOException e) {
            throw new IOException("Config.token: " + e, e);
        }
        byte[] b = token == null ? new byte[0] : token.getBytes(StandardCharsets.US_ASCII);
        if (b.length == 0 || b.length > Wire.MAX_TOKEN) {
            throw new IOException("Config.token gives " + b.length + " bytes, allowed: a token of 1.." + Wire.MAX_TOKEN + " bytes");
        }
        return b;
    }
}
