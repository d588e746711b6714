package dev.ordergrid.peers;

import java.nio.charset.StandardCharsets;

/**
 * Makes the orders of one client: of a valid message the ClOrdID and the checksum change. Every order is an array of its own,
 * since a peer may keep it.
 */
final class Orders {
    private static final int ID_SIZE = 20;
    private static final int DIGITS = 9;
    private static final String BASE32 = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";

    private final byte[] message;
    private final int keyAt;
    private final long keys;
    private long made;
    private int sum; // of all bytes that the checksum covers
    private String key;

    /** Orders of one client; after so many keys they begin anew, 0 is never. */
    Orders(byte[] template, int keyAt, int client, long keys) {
        this.message = template.clone();
        this.keyAt = keyAt;
        this.keys = keys;
        message[keyAt + ID_SIZE - DIGITS - 2] = (byte) BASE32.charAt(client >> 5);
        message[keyAt + ID_SIZE - DIGITS - 1] = (byte) BASE32.charAt(client & 31);
        restart();
    }

    private void restart() {
        for (int i = keyAt + ID_SIZE - DIGITS; i < keyAt + ID_SIZE; i++) {
            message[i] = '0';
        }
        sum = 0;
        for (int i = 0; i < message.length - 7; i++) { // up to 10=nnn and its end
            sum += message[i] & 0xff;
        }
        made = 0;
    }

    /** The next order; key() is its ClOrdID. */
    byte[] next() {
        if (keys > 0 && made == keys) {
            restart();
        }
        if (made++ > 0) {
            int i = keyAt + ID_SIZE - 1;
            for (; message[i] == '9'; i--) {
                message[i] = '0';
                sum -= 9;
            }
            message[i]++;
            sum++;
        }
        int s = sum & 0xff, end = message.length - 4;
        message[end] = (byte) ('0' + s / 100);
        message[end + 1] = (byte) ('0' + s / 10 % 10);
        message[end + 2] = (byte) ('0' + s % 10);
        key = new String(message, keyAt, ID_SIZE, StandardCharsets.ISO_8859_1);
        return message.clone();
    }

    String key() {
        return key;
    }
}
