package dev.ordergrid.client;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/** Reads the JSON of the conformance vectors: objects, arrays, strings, integers, booleans. */
final class Json {
    private final String text;
    private int at;

    private Json(String text) {
        this.text = text;
    }

    /** The vectors of a file of docs/protocol/vectors. */
    @SuppressWarnings("unchecked")
    static List<Map<String, Object>> vectors(String file) throws IOException {
        Map<String, Object> all = (Map<String, Object>) new Json(Files.readString(Path.of(System.getProperty("vectors"), file))).value();
        List<Map<String, Object>> list = (List<Map<String, Object>>) all.get("vectors");
        if (list.size() < 10) {
            throw new AssertionError(file + " has " + list.size() + " vectors");
        }
        return list;
    }

    private char peek() {
        while (Character.isWhitespace(text.charAt(at))) {
            at++;
        }
        return text.charAt(at);
    }

    private boolean take(char c) {
        if (peek() == c) {
            at++;
            return true;
        }
        return false;
    }

    private void want(char c) {
        if (!take(c)) {
            throw new IllegalStateException("at " + at + ": " + peek() + ", want " + c);
        }
    }

    private Object value() {
        switch (peek()) {
            case '{' -> {
                return object();
            }
            case '[' -> {
                List<Object> list = new ArrayList<>();
                want('[');
                while (!take(']')) {
                    list.add(value());
                    take(',');
                }
                return list;
            }
            case '"' -> {
                return string();
            }
            default -> {
                int from = at;
                while ("+-0123456789abcdefghijklmnopqrstuvwxyz".indexOf(text.charAt(at)) >= 0) {
                    at++;
                }
                String word = text.substring(from, at);
                return word.equals("true") || word.equals("false") ? (Object) Boolean.valueOf(word) : (Object) Long.valueOf(word);
            }
        }
    }

    private Map<String, Object> object() {
        Map<String, Object> m = new LinkedHashMap<>();
        want('{');
        while (!take('}')) {
            peek();
            String key = string();
            want(':');
            m.put(key, value());
            take(',');
        }
        return m;
    }

    private String string() {
        StringBuilder s = new StringBuilder();
        want('"');
        for (char c = text.charAt(at++); c != '"'; c = text.charAt(at++)) {
            if (c != '\\') {
                s.append(c);
                continue;
            }
            c = text.charAt(at++);
            switch (c) {
                case 'n' -> s.append('\n');
                case 't' -> s.append('\t');
                case 'r' -> s.append('\r');
                case 'u' -> {
                    s.append((char) Integer.parseInt(text.substring(at, at + 4), 16));
                    at += 4;
                }
                default -> s.append(c);
            }
        }
        return s.toString();
    }
}
