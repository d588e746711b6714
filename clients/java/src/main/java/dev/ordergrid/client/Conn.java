package dev.ordergrid.client;

import java.io.EOFException;
import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.StandardSocketOptions;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.channels.SelectionKey;
import java.nio.channels.Selector;
import java.nio.channels.SocketChannel;
import java.util.function.Consumer;

/**
 * One connection. Buffers belong to it, so that a reader of a connection that is gone cannot disturb the next one. One
 * thread at a time reads, one at a time writes.
 */
final class Conn {
    private static final int READ_BUFFER = 32 << 10;
    private static final int WRITE_BUFFER = 16 << 10;
    private static final int KEEP_BUFFER = 1 << 20;
    private static final Consumer<SelectionKey> NO_ACTION = k -> {};

    final String addr;
    private final SocketChannel channel;
    private final Selector selector;
    private final SelectionKey key;
    Stream stream;
    ByteBuffer in = ByteBuffer.allocateDirect(READ_BUFFER).order(ByteOrder.LITTLE_ENDIAN);
    int r; // in[r, w) is read and not handled yet
    int w;
    Out out = new Out(WRITE_BUFFER); // frames waiting for a writer
    private Out spare = new Out(WRITE_BUFFER);
    private ByteBuffer rest; // of spare: what a writer has not written yet

    boolean reading; // a thread leads
    boolean writing;
    boolean stalled; // the peer takes no more now
    boolean heard; // something came since heardAt was set
    long heardAt = Clock.now();
    long reads; // how often something came
    long pingedAt;

    private Conn(String addr, SocketChannel channel, Selector selector) throws IOException {
        this.addr = addr;
        this.channel = channel;
        this.selector = selector;
        key = channel.register(selector, SelectionKey.OP_CONNECT);
        stream = new Stream.Plain(channel);
    }

    /** Connects, without a word of the protocol. */
    static Conn dial(String addr, Tls tls, Attempt a) throws IOException {
        HostPort hp = HostPort.parse(addr);
        InetAddress[] all = InetAddress.getAllByName(hp.host());
        IOException last = null;
        for (int i = 0; i < all.length && !a.over(); i++) {
            try {
                return dialOne(addr, hp, new InetSocketAddress(all[i], hp.port()), tls, a, Clock.now() + a.left() / (all.length - i));
            } catch (IOException e) {
                last = e;
            }
        }
        throw last == null ? new java.net.SocketTimeoutException("connect to " + addr + ": time is over") : last;
    }

    private static Conn dialOne(String addr, HostPort hp, InetSocketAddress to, Tls tls, Attempt a, long until) throws IOException {
        SocketChannel channel = SocketChannel.open();
        Selector selector = null;
        try {
            channel.configureBlocking(false);
            channel.setOption(StandardSocketOptions.TCP_NODELAY, true);
            channel.setOption(StandardSocketOptions.SO_KEEPALIVE, true);
            selector = Selector.open();
            Conn c = new Conn(addr, channel, selector);
            a.waitsAt(selector);
            boolean open = channel.connect(to);
            while (!open) {
                c.await(until);
                open = channel.finishConnect();
                if (!open && (a.over() || Clock.now() >= until)) {
                    throw new java.net.SocketTimeoutException("connect to " + addr + ": no answer in time");
                }
            }
            c.key.interestOps(SelectionKey.OP_READ);
            if (tls != null) {
                c.handshake(hp, tls, a);
            }
            return c;
        } catch (IOException | RuntimeException e) {
            channel.close();
            if (selector != null) {
                selector.close();
            }
            if (e instanceof IOException && !String.valueOf(e.getMessage()).contains(addr)) {
                throw new IOException(addr + ": " + e.getMessage(), e);
            }
            throw e;
        }
    }

    private void handshake(HostPort hp, Tls tls, Attempt a) throws IOException {
        try {
            TlsStream s = new TlsStream(channel, tls.engine(hp.host(), hp.port()));
            for (TlsStream.Step step = s.handshake(); step != TlsStream.Step.DONE; step = s.handshake()) {
                key.interestOps(step == TlsStream.Step.READ ? SelectionKey.OP_READ : SelectionKey.OP_WRITE);
                await(a.until);
                if (a.over()) {
                    throw new java.net.SocketTimeoutException(addr + ": no answer in the TLS handshake in time");
                }
            }
            key.interestOps(SelectionKey.OP_READ);
            stream = s;
        } catch (javax.net.ssl.SSLException e) {
            throw explain(e);
        } catch (EOFException e) {
            throw new TlsException(addr, e.getMessage() + "; are the nodes started with TLS (--tls-cert, --tls-key, --tls-ca), and does "
                    + "their --tls-ca accept this client's certificate? Otherwise leave Config.tls empty", e);
        } catch (java.security.GeneralSecurityException e) {
            throw new TlsException(addr, "Config.tls: " + e.getMessage(), e);
        }
    }

    private TlsException explain(javax.net.ssl.SSLException e) {
        String m = String.valueOf(e.getMessage());
        if (m.contains("Unsupported or unrecognized SSL message") || m.contains("not an SSL/TLS record") || m.contains("plaintext connection")) {
            m = "the node answers plain TCP; start the nodes with --tls-cert, --tls-key and --tls-ca, or leave Config.tls empty";
        }
        Throwable root = e;
        while (root.getCause() != null && root.getCause() != root) {
            root = root.getCause();
        }
        return new TlsException(addr, root == e ? m : m + " (" + root.getMessage() + ")", e);
    }

    private void await(long until) throws IOException {
        long ns = Math.min(Clock.TICK, until - Clock.now());
        if (ns <= 0) {
            selector.selectNow(NO_ACTION);
        } else {
            selector.select(NO_ACTION, (ns + Clock.MS - 1) / Clock.MS);
        }
    }

    /**
     * Reads once: the number of bytes, 0 after about a tick or at {@code until} without any.
     *
     * @param eager look before waiting: right where more is likely to have come meanwhile
     */
    int read(long until, boolean eager) throws IOException {
        space();
        if (eager || stream.buffered()) {
            int n = stream.read(in);
            if (n != 0) {
                return took(n);
            }
        }
        await(until);
        return took(stream.read(in));
    }

    private int took(int n) throws IOException {
        if (n < 0) {
            throw new EOFException(addr + " closed the connection");
        }
        w += n;
        return n;
    }

    /** Makes room behind the bytes read so far: for the rest of a large frame what it needs, which the limit bounds. */
    private void space() {
        if (r == w) {
            r = 0;
            w = 0;
        }
        int need = w - r < 4 ? 0 : Math.min(in.getInt(r), Wire.MAX_FRAME);
        if (need > in.capacity()) {
            ByteBuffer grown = ByteBuffer.allocateDirect(need).order(ByteOrder.LITTLE_ENDIAN);
            grown.put(0, in, r, w - r);
            in = grown;
            w -= r;
            r = 0;
        } else if (r > 0 && (r + need > in.capacity() || w == in.capacity())) {
            in.limit(w).position(r);
            in.compact();
            w -= r;
            r = 0;
        }
        in.limit(in.capacity()).position(w);
    }

    /** Length of the whole frame at r, 0 if there is none; take moves behind it. */
    int frame() throws FrameException {
        return In.split(in, r, w);
    }

    /** Reports whether there is something to write. */
    boolean dirty() {
        return rest != null || out.size() > 0;
    }

    /** Hands the collected frames to the writer. Called with the owner's lock; write is called without. */
    void seal() {
        if (rest == null) {
            Out full = out;
            out = spare;
            spare = full;
            rest = full.b.flip();
        }
    }

    /** Writes what seal gave; false: the peer takes no more now. */
    boolean write() throws IOException {
        return stream.write(rest);
    }

    /** Called with the owner's lock after write. */
    void written(boolean all) {
        if (all) {
            rest = null;
            if (spare.b.capacity() > KEEP_BUFFER) {
                spare = new Out(WRITE_BUFFER);
            } else {
                spare.b.clear();
            }
        }
        if (stalled == all && key.isValid()) {
            stalled = !all;
            key.interestOps(all ? SelectionKey.OP_READ : SelectionKey.OP_READ | SelectionKey.OP_WRITE);
            if (stalled) {
                selector.wakeup();
            }
        }
    }

    void wakeup() {
        selector.wakeup();
    }

    /** Sends what is collected, on a connection without other users. */
    void send(Attempt a) throws IOException {
        for (seal(); !write();) {
            key.interestOps(SelectionKey.OP_WRITE);
            await(a.until);
            if (a.over()) {
                throw new java.net.SocketTimeoutException(addr + ": it takes no bytes");
            }
        }
        key.interestOps(SelectionKey.OP_READ);
        written(true);
    }

    /** Waits for the next frame, on a connection without other users: its length; it begins at r. */
    int receive(Attempt a) throws IOException {
        while (true) {
            try {
                int n = frame();
                if (n > 0) {
                    checkGoaway(n);
                    return n;
                }
            } catch (FrameException e) {
                if (stream instanceof Stream.Plain && looksLikeTls()) {
                    throw plainToTls();
                }
                throw new ProtocolException(addr, "undecodable bytes", e);
            }
            if (a.over()) {
                throw new java.net.SocketTimeoutException(addr + ": no answer in time");
            }
            a.waitsAt(selector);
            try {
                read(a.until, true);
            } catch (EOFException e) {
                if (stream instanceof Stream.Plain && looksLikeTls()) {
                    throw plainToTls();
                }
                throw e;
            } catch (javax.net.ssl.SSLException e) {
                throw explain(e); // a node refuses a certificate, or that there is none, after the handshake
            }
        }
    }

    void checkGoaway(int n) throws FrameException {
        if (In.type(in, r) == Wire.GOAWAY) {
            In.Goaway g = In.goaway(in, r, n);
            throw g.code() == GoawayException.TLS ? plainToTls() : new GoawayException(addr, g.code(), g.text());
        }
    }

    private TlsException plainToTls() {
        return new TlsException(addr, "the node speaks TLS: set Config.tls", null);
    }

    private boolean looksLikeTls() {
        return w - r >= 3 && (in.get(r) == 21 || in.get(r) == 22) && in.get(r + 1) == 3 && in.get(r + 2) <= 4;
    }

    void close() {
        try {
            channel.close();
            selector.close();
        } catch (IOException e) {
            // It is given up anyway.
        }
    }
}
