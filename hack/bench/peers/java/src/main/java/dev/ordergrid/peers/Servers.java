package dev.ordergrid.peers;

import java.util.ArrayList;
import java.util.List;

/**
 * The servers there are to be, on one host: for each the ports that are its own. Every one of them holds one copy of every order,
 * as primary or as backup.
 */
public record Servers(String host, List<List<Integer>> ports) {
    /** Reads HOST=PORT,PORT,PORT;PORT,PORT,PORT: a group a server. */
    static Servers parse(String text) {
        String[] parts = text.split("=", 2);
        List<List<Integer>> all = new ArrayList<>();
        for (String server : parts[1].split(";")) {
            List<Integer> own = new ArrayList<>();
            for (String port : server.split(",")) {
                own.add(Integer.valueOf(port));
            }
            all.add(List.copyOf(own));
        }
        return new Servers(parts[0], List.copyOf(all));
    }

    /** How many servers, and so copies, there are. */
    public int count() {
        return ports.size();
    }

    /** Copies beside the primary's. */
    public int backups() {
        return count() - 1;
    }

    public boolean last(int own) {
        return own == count() - 1;
    }

    /** The port of a server for the purpose that a peer gives this number: 0, 1 or 2. */
    public int port(int server, int purpose) {
        return ports.get(server).get(purpose);
    }

    /** ip:port of every server. */
    public List<String> addresses(int purpose) {
        List<String> all = new ArrayList<>();
        for (int server = 0; server < count(); server++) {
            all.add(host + ":" + port(server, purpose));
        }
        return all;
    }
}
