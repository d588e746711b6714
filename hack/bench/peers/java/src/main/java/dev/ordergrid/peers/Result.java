package dev.ordergrid.peers;

import java.nio.ByteBuffer;
import java.util.Base64;
import org.HdrHistogram.Histogram;

/** What came of a load. Times are nanoseconds. */
final class Result {
    long orders, elapsed, failed, unsent;
    String error = "";
    double warming;
    final Histogram sendToEnd = Tally.histogram();
    final Histogram createToEnd = Tally.histogram();
    final Histogram lag = Tally.histogram();

    /** One line, with the names that the bench's own generator uses. */
    String json() {
        return "{\"orders\":" + orders + ",\"elapsed\":" + elapsed + ",\"failed\":" + failed + ",\"unsent\":" + unsent + ",\"error\":" + quoted(error) + ",\"warming\":" + warming
                + ",\"send_to_end\":\"" + encoded(sendToEnd) + "\",\"create_to_end\":\"" + encoded(createToEnd) + "\",\"lag\":\"" + encoded(lag) + "\"}";
    }

    private static String encoded(Histogram h) {
        if (h.getTotalCount() == 0) {
            return "";
        }
        ByteBuffer b = ByteBuffer.allocate(h.getNeededByteBufferCapacity());
        int n = h.encodeIntoCompressedByteBuffer(b);
        return Base64.getEncoder().encodeToString(java.util.Arrays.copyOf(b.array(), n));
    }

    private static String quoted(String s) {
        StringBuilder b = new StringBuilder("\"");
        for (char c : s.toCharArray()) {
            if (c == '"' || c == '\\') {
                b.append('\\').append(c);
            } else if (c < ' ') {
                b.append(String.format("\\u%04x", (int) c));
            } else {
                b.append(c);
            }
        }
        return b.append('"').toString();
    }
}
