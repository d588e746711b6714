package dev.ordergrid.client;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.SocketChannel;

/** The byte connection below a {@link Conn}, never blocking. One thread may read while another writes. */
interface Stream {
    /** Puts what is there into dst: its number of bytes, 0 if there is nothing now, -1 at the end. */
    int read(ByteBuffer dst) throws IOException;

    /** Writes src; false: the peer takes no more now, come back with the same buffer. */
    boolean write(ByteBuffer src) throws IOException;

    /** Reports whether read may give something without the socket having more. */
    boolean buffered();

    /** Plain TCP. */
    record Plain(SocketChannel channel) implements Stream {
        @Override
        public int read(ByteBuffer dst) throws IOException {
            return channel.read(dst);
        }

        @Override
        public boolean write(ByteBuffer src) throws IOException {
            while (src.hasRemaining()) {
                if (channel.write(src) == 0) {
                    return false;
                }
            }
            return true;
        }

        @Override
        public boolean buffered() {
            return false;
        }
    }
}
