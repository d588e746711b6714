package dev.ordergrid.peers;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.Collection;
import java.util.Collections;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Callable;

/**
 * The client of questions. It does what the lines of its standard input say, and answers each with "took" and, for every time that
 * something was done, its nanoseconds; of questions also the rows, and the sum of their hashes, in hexadecimal digits:
 *
 * <pre>
 * load N                     and N lines with an order each
 * ask WHAT TIMES PARAMETERS  of get a key for each time
 * patch TIF | drop
 * </pre>
 */
public final class Asking {
    /** How many orders are put at once. */
    private static final int PUT = 1000;
    private static final String SELLS = "2";

    private final BufferedReader in;
    private final Rows rows;

    private Asking(BufferedReader in, Rows rows) {
        this.in = in;
        this.rows = rows;
    }

    public static void main(String[] args) {
        PrintStream out = System.out;
        System.setOut(System.err); // what peers log is no part of what we say
        int status = 1;
        try {
            Options o = new Options(args);
            try (Rows rows = (Rows) Class.forName(o.text("peer")).getDeclaredConstructor().newInstance()) {
                rows.connect(Servers.parse(o.text("servers")));
                BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.ISO_8859_1), 1 << 20);
                Asking asking = new Asking(in, rows);
                say(out, "ready");
                for (String line = in.readLine(); line != null; line = in.readLine()) {
                    say(out, "took " + asking.answer(line.split(" ")));
                }
                status = 0;
            }
        } catch (Throwable e) {
            e.printStackTrace();
        }
        Runtime.getRuntime().halt(status); // threads of the peer would keep the process
    }

    private static void say(PrintStream out, String line) {
        out.println(line);
        out.flush();
    }

    private String answer(String[] words) throws Exception {
        switch (words[0]) {
            case "load":
                return Long.toString(load(Integer.parseInt(words[1])));
            case "ask":
                return ask(words[1], Integer.parseInt(words[2]), words);
            case "patch":
                return Long.toString(timed(() -> {
                    rows.patch(SELLS, words[1]);
                    return null;
                }));
            case "drop":
                return Long.toString(timed(() -> {
                    rows.drop();
                    return null;
                }));
            default:
                throw new IllegalArgumentException(words[0] + ": allowed: load, ask, patch, drop");
        }
    }

    private static long timed(Callable<Void> what) throws Exception {
        long begun = System.nanoTime();
        what.call();
        return System.nanoTime() - begun;
    }

    private long load(int n) throws Exception {
        long took = 0;
        for (int left = n; left > 0; ) {
            Map<String, Order> some = new HashMap<>();
            for (; left > 0 && some.size() < PUT; left--) {
                Order o = Order.parse(in.readLine());
                some.put(o.id, o);
            }
            took += timed(() -> {
                rows.put(some);
                return null;
            });
        }
        return took;
    }

    private String ask(String what, int times, String[] words) throws Exception {
        StringBuilder all = new StringBuilder();
        for (int i = 0; i < times; i++) {
            long begun = System.nanoTime();
            Object answer = once(what, i, words);
            long took = System.nanoTime() - begun;
            long sum = 0, n = 0;
            for (String row : texts(answer)) {
                sum += hash(row);
                n++;
            }
            all.append(took).append(' ').append(n).append(' ').append(Long.toHexString(sum)).append(' ');
        }
        return all.toString();
    }

    private Object once(String what, int i, String[] words) throws Exception {
        switch (what) {
            case "get":
                Order order = rows.get(words[3 + i]);
                return order == null ? Collections.emptyList() : List.of(order);
            case "equal":
                return rows.ofAccount(words[3]);
            case "count":
                return rows.countQty(Long.parseLong(words[3]));
            case "range":
                return rows.inRange(Long.parseLong(words[3]), Long.parseLong(words[4]), Long.parseLong(words[5]), Long.parseLong(words[6]));
            case "group":
                return rows.bySymbol();
            case "patched":
                return rows.countTif(words[3], null);
            case "patched-sells":
                return rows.countTif(words[3], SELLS);
            case "left":
                return rows.count();
            default:
                throw new IllegalArgumentException("ask " + what + ": no such question");
        }
    }

    /** The texts of the rows of an answer, as the bench makes them. */
    private static List<String> texts(Object answer) {
        if (answer instanceof Long) {
            return List.of(answer.toString());
        }
        if (answer instanceof Map<?, ?> groups) {
            return groups.entrySet().stream().map(e -> e.getKey() + "|" + ((long[]) e.getValue())[0] + "|" + ((long[]) e.getValue())[1]).toList();
        }
        return ((Collection<?>) answer).stream().map(o -> ((Order) o).row()).toList();
    }

    /** FNV-1a of 64 bits. */
    private static long hash(String row) {
        long h = 0xcbf29ce484222325L;
        for (byte b : row.getBytes(StandardCharsets.ISO_8859_1)) {
            h = (h ^ (b & 0xff)) * 0x100000001b3L;
        }
        return h;
    }
}
