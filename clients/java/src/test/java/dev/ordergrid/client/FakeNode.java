package dev.ordergrid.client;

import java.io.DataInputStream;
import java.io.EOFException;
import java.io.IOException;
import java.io.OutputStream;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;

/** A socket that behaves as a test's script makes it: by default as the only node of a grid of one partition. */
final class FakeNode implements AutoCloseable {
    /** What it does with a frame; false: as usual. */
    interface Script {
        boolean handle(FakeNode.Link c, int type, ByteBuffer frame) throws IOException;
    }

    final ServerSocket server;
    private final Script script;
    final List<Link> links = new CopyOnWriteArrayList<>();
    volatile long lastClientSeq;
    private final java.util.concurrent.atomic.AtomicLong seq = new java.util.concurrent.atomic.AtomicLong(100); // of the log

    FakeNode(Script script) throws IOException {
        server = new ServerSocket(0, 50, InetAddress.getLoopbackAddress());
        this.script = script;
        Thread t = new Thread(this::accept, "fake-node");
        t.setDaemon(true);
        t.start();
    }

    String address() {
        return "127.0.0.1:" + server.getLocalPort();
    }

    private void accept() {
        try {
            while (true) {
                Link c = new Link(server.accept());
                links.add(c);
                Thread t = new Thread(c::run, "fake-link");
                t.setDaemon(true);
                t.start();
            }
        } catch (IOException e) {
            // closed
        }
    }

    @Override
    public void close() throws IOException {
        server.close();
        for (Link c : links) {
            c.close();
        }
    }

    /** A frame with a body. */
    static ByteBuffer frame(int type, int partition, int body) {
        ByteBuffer b = ByteBuffer.allocate(Wire.HEADER + body).order(ByteOrder.LITTLE_ENDIAN);
        b.putInt(Wire.HEADER + body).put((byte) type).put((byte) 0).putShort((short) partition);
        return b;
    }

    /** A connection. */
    final class Link {
        final Socket socket;
        final int number = links.size(); // of its kind, from 0

        Link(Socket socket) {
            this.socket = socket;
        }

        void close() {
            try {
                socket.close();
            } catch (IOException e) {
                // closed
            }
        }

        private void run() {
            try (socket; DataInputStream in = new DataInputStream(socket.getInputStream())) {
                while (true) {
                    byte[] head = new byte[4];
                    in.readFully(head);
                    int n = ByteBuffer.wrap(head).order(ByteOrder.LITTLE_ENDIAN).getInt();
                    ByteBuffer b = ByteBuffer.allocate(n).order(ByteOrder.LITTLE_ENDIAN);
                    b.put(head);
                    in.readFully(b.array(), 4, n - 4);
                    if (!script.handle(this, b.get(4) & 0xFF, b)) {
                        usual(b.get(4) & 0xFF, b);
                    }
                }
            } catch (EOFException | java.net.SocketException e) {
                // the client closed it
            } catch (IOException e) {
                e.printStackTrace();
            }
        }

        void send(ByteBuffer b) throws IOException {
            send(b.array());
        }

        synchronized void send(byte[] b) throws IOException {
            OutputStream out = socket.getOutputStream();
            out.write(b);
            out.flush();
        }

        void usual(int type, ByteBuffer f) throws IOException {
            switch (type) {
                case Wire.HELLO -> send(welcome(Wire.VERSION));
                case Wire.TABLE_REQUEST -> send(table(f.getLong(8)));
                case Wire.OPEN_SESSION -> send(frame(Wire.SESSION_OPENED, 0, 40).putLong(f.getLong(8)).putInt(1).putInt(1).putInt(512).putInt(0)
                        .putLong(lastClientSeq).putLong(3));
                case Wire.SUBMIT -> {
                    ack(f.getLong(24), seq.incrementAndGet(), 0);
                }
                case Wire.PING -> send(frame(Wire.PONG, 0, 8).putLong(f.getLong(8)));
                default -> { }
            }
        }

        void ack(long clientSeq, long at, int flags) throws IOException {
            lastClientSeq = Math.max(lastClientSeq, clientSeq);
            send(frame(Wire.ACK, 0, 48).putLong(clientSeq).putLong(at).putLong(3).putInt(1).put((byte) 2).put((byte) flags).putShort((short) 0)
                    .putLong(77).putInt(1).putInt(0));
        }

        void applied(long clientSeq, long at, int flags, byte[] value) throws IOException {
            lastClientSeq = Math.max(lastClientSeq, clientSeq);
            send(frame(Wire.REGION_APPLIED, 0, 56 + value.length).putLong(clientSeq).putLong(at).putLong(3).putInt(1).put((byte) 2).put((byte) flags)
                    .putShort((short) 0).putLong(77).putInt(1).putInt(0).putLong(value.length).put(value));
        }

        void reject(long clientSeq, RejectCode code, long detail) throws IOException {
            byte[] text = "of the test".getBytes();
            send(frame(Wire.REJECT, 0, 40 + text.length).putLong(clientSeq).putLong(detail).putInt(1).putInt(0).putShort((short) code.wire)
                    .put((byte) Wire.SUBMIT).put((byte) 0).putShort((short) text.length).putShort((short) 0).putLong(0).put(text));
        }
    }

    static ByteBuffer welcome(int version) {
        return frame(Wire.WELCOME, 0, 12 + 2 + 2).putShort((short) version).putShort((short) 0).putInt(1 << 20).putInt(512)
                .put((byte) 1).put((byte) 'g').put((byte) 1).put((byte) 'm');
    }

    /** One partition, this node its only member. */
    ByteBuffer table(long reqId) {
        byte[] a = address().getBytes();
        return frame(Wire.TABLE, 0, 12 + 17 + 1 + a.length + 2).putLong(reqId).putShort((short) 1).putShort((short) 1)
                .putShort((short) 0).putLong(3).putInt(1).put((byte) 0).put((byte) 1).put((byte) 1)
                .put((byte) a.length).put(a).put((byte) 1).put((byte) 'm');
    }

    /** Frames that were sent, for assertions. */
    static final class Seen {
        private final List<Long> list = new ArrayList<>();

        synchronized void add(long v) {
            list.add(v);
        }

        synchronized List<Long> list() {
            return List.copyOf(list);
        }
    }
}
