package dev.ordergrid.client;

import java.io.EOFException;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.SocketChannel;
import java.util.concurrent.locks.ReentrantLock;
import javax.net.ssl.SSLEngine;
import javax.net.ssl.SSLEngineResult;
import javax.net.ssl.SSLEngineResult.HandshakeStatus;
import javax.net.ssl.SSLException;

/** TLS on a socket that does not block. */
final class TlsStream implements Stream {
    private static final ByteBuffer NOTHING = ByteBuffer.allocate(0);
    private final SocketChannel channel;
    private final SSLEngine engine;
    private final ByteBuffer netIn; // position: end of what was received
    private final ByteBuffer plain; // decrypted and not taken yet, ready to be read
    private boolean partial; // netIn has no whole record
    private final ReentrantLock writing = new ReentrantLock(); // of netOut and wrap
    private final ByteBuffer netOut; // encrypted and not written yet, ready to be read

    TlsStream(SocketChannel channel, SSLEngine engine) throws SSLException {
        this.channel = channel;
        this.engine = engine;
        netIn = ByteBuffer.allocateDirect(2 * engine.getSession().getPacketBufferSize());
        netOut = ByteBuffer.allocateDirect(2 * engine.getSession().getPacketBufferSize()).limit(0);
        plain = ByteBuffer.allocateDirect(2 * engine.getSession().getApplicationBufferSize()).limit(0);
        engine.beginHandshake();
    }

    /** What a handshake needs next. */
    enum Step { DONE, READ, WRITE }

    /** Goes on with the handshake as far as the socket lets it. */
    Step handshake() throws IOException {
        while (true) {
            switch (engine.getHandshakeStatus()) {
                case NEED_TASK -> runTasks();
                case NEED_WRAP -> {
                    if (!write(NOTHING)) {
                        return Step.WRITE;
                    }
                }
                case NEED_UNWRAP, NEED_UNWRAP_AGAIN -> {
                    if (unwrap() < 0) {
                        throw new EOFException("the connection was closed during the TLS handshake");
                    }
                    if (partial && engine.getHandshakeStatus() == HandshakeStatus.NEED_UNWRAP) {
                        return Step.READ;
                    }
                }
                default -> {
                    return write(NOTHING) ? Step.DONE : Step.WRITE;
                }
            }
        }
    }

    private void runTasks() {
        for (Runnable task = engine.getDelegatedTask(); task != null; task = engine.getDelegatedTask()) {
            task.run();
        }
    }

    @Override
    public int read(ByteBuffer dst) throws IOException {
        while (!plain.hasRemaining()) {
            int n = unwrap();
            if (n <= 0 && !plain.hasRemaining()) {
                return n;
            }
        }
        int n = Math.min(plain.remaining(), dst.remaining());
        dst.put(dst.position(), plain, plain.position(), n);
        dst.position(dst.position() + n);
        plain.position(plain.position() + n);
        return n;
    }

    /** Decrypts one record into plain: 1 if something was done, 0 if more bytes are needed, -1 at the end. */
    private int unwrap() throws IOException {
        if (netIn.position() == 0 || partial) {
            int n = channel.read(netIn);
            if (n <= 0) {
                partial = true;
                return n;
            }
        }
        netIn.flip();
        plain.clear();
        SSLEngineResult r;
        try {
            r = engine.unwrap(netIn, plain);
        } finally {
            netIn.compact();
            plain.flip();
        }
        partial = r.getStatus() == SSLEngineResult.Status.BUFFER_UNDERFLOW;
        if (partial && !netIn.hasRemaining()) {
            throw new SSLException("TLS record exceeds " + netIn.capacity() + " bytes, allowed: 16,384 of data");
        }
        if (r.getStatus() == SSLEngineResult.Status.CLOSED) {
            return -1;
        }
        if (r.getHandshakeStatus() == HandshakeStatus.NEED_TASK) {
            runTasks();
        }
        if (r.getHandshakeStatus() == HandshakeStatus.NEED_WRAP && r.bytesConsumed() > 0) {
            write(NOTHING);
        }
        return partial ? 0 : 1;
    }

    @Override
    public boolean write(ByteBuffer src) throws IOException {
        writing.lock();
        try {
            while (true) {
                while (netOut.hasRemaining()) {
                    if (channel.write(netOut) == 0) {
                        return false;
                    }
                }
                if (!src.hasRemaining() && engine.getHandshakeStatus() != HandshakeStatus.NEED_WRAP) {
                    return true;
                }
                netOut.clear();
                SSLEngineResult r;
                try {
                    r = engine.wrap(src, netOut);
                } finally {
                    netOut.flip();
                }
                if (r.getStatus() == SSLEngineResult.Status.CLOSED && !netOut.hasRemaining()) {
                    throw new EOFException("the TLS connection is closed");
                }
                if (r.getHandshakeStatus() == HandshakeStatus.NEED_TASK) {
                    runTasks();
                } else if (r.bytesConsumed() + r.bytesProduced() == 0) {
                    throw new SSLException("TLS takes no data: " + r.getHandshakeStatus());
                }
            }
        } finally {
            writing.unlock();
        }
    }

    @Override
    public boolean buffered() {
        return plain.hasRemaining() || netIn.position() > 0 && !partial;
    }
}
