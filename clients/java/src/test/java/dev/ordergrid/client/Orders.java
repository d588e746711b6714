package dev.ordergrid.client;

import java.nio.charset.StandardCharsets;

/** Orders for tests, of FIX 4.2 unless it says otherwise. */
final class Orders {
    private Orders() {}

    /** A NewOrderSingle with this ClOrdID, padded with tag 58 to size bytes if it would be shorter. */
    static byte[] order(String clOrdId, int size) {
        String body = "35=D\u000149=CLIENT\u000156=GRID\u000134=1\u000152=20261121-09:30:00\u000111=" + clOrdId
                + "\u00011=ACC\u000121=1\u000155=IBM\u000154=1\u000160=20261121-09:30:00\u000138=100\u000140=2\u000144=125.25\u000159=0\u0001";
        int pad = size - body.length() - "8=FIX.4.2|9=000|10=000|58=|".length();
        if (pad > 0) {
            body += "58=" + "x".repeat(pad) + "\u0001";
        }
        String head = "8=FIX.4.2\u00019=" + body.length() + "\u0001" + body;
        return sealed(head);
    }

    /** The same of FIX 5.0 SP2. */
    static byte[] later(String clOrdId) {
        String fix = new String(order(clOrdId, 0), StandardCharsets.ISO_8859_1);
        return sealed(fix.substring(0, fix.length() - "10=000|".length()).replace("8=FIX.4.2", "8=FIXT.1.1"));
    }

    private static byte[] sealed(String head) {
        int sum = 0;
        for (int i = 0; i < head.length(); i++) {
            sum += head.charAt(i);
        }
        return (head + String.format("10=%03d\u0001", sum & 0xFF)).getBytes(StandardCharsets.ISO_8859_1);
    }

    /** An order whose ClOrdID counts up in place, without allocation. */
    static final class Counter {
        private static final int DIGITS = 10;
        final byte[] fix;
        private final int at; // of the last digit
        private int sum;

        Counter(String prefix, int size) {
            String zeros = "0".repeat(DIGITS);
            fix = order(prefix + zeros, size);
            at = new String(fix, StandardCharsets.ISO_8859_1).indexOf("\u000111=") + 4 + prefix.length() + DIGITS - 1;
            for (int i = 0; i < fix.length - 7; i++) {
                sum += fix[i];
            }
        }

        byte[] next() {
            int i = at;
            while (fix[i] == '9') {
                fix[i] = '0';
                sum -= 9;
                i--;
            }
            fix[i]++;
            sum++;
            int c = sum & 0xFF;
            fix[fix.length - 4] = (byte) ('0' + c / 100);
            fix[fix.length - 3] = (byte) ('0' + c / 10 % 10);
            fix[fix.length - 2] = (byte) ('0' + c % 10);
            return fix;
        }
    }
}
