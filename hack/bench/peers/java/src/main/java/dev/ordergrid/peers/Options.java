package dev.ordergrid.peers;

import java.util.HashMap;
import java.util.Map;

/** The command line: --name value, every one of them. */
final class Options {
    private final Map<String, String> values = new HashMap<>();

    Options(String[] args) {
        for (int i = 0; i < args.length; i += 2) {
            if (!args[i].startsWith("--") || i + 1 == args.length) {
                throw new IllegalArgumentException("argument " + args[i] + ": allowed: --name value");
            }
            values.put(args[i].substring(2), args[i + 1]);
        }
    }

    String text(String name) {
        String v = values.get(name);
        if (v == null) {
            throw new IllegalArgumentException("--" + name + " is missing");
        }
        return v;
    }

    int number(String name) {
        return Integer.parseInt(text(name));
    }

    /** Whole milliseconds, as nanoseconds. */
    long millis(String name) {
        return Long.parseLong(text(name)) * 1_000_000;
    }
}
