package dev.ordergrid.client;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Set;

/** An immutable snapshot of the routing information: all partitions by number, known or not. */
final class Table {
    /** How many nodes are asked at a time: a refresh must not become a scan of a large grid. */
    private static final int MAX_TARGETS = 16;
    static final Table EMPTY = new Table(new PartitionInfo[0], false);

    final PartitionInfo[] parts;
    /** Orders belong to the partition of their symbol: a node has said so. */
    final boolean bySymbol;

    private Table(PartitionInfo[] parts, boolean bySymbol) {
        this.parts = parts;
        this.bySymbol = bySymbol;
    }

    boolean whole() {
        return parts.length > 0 && Arrays.stream(parts).allMatch(PartitionInfo::known);
    }

    /**
     * This with a node's rows. Of two rows of a partition the one with the higher epoch counts; epochs only rise, so
     * the order in which nodes answer does not matter.
     */
    Table merge(String address, In.Table m) {
        int n = m.partitions();
        if (parts.length != 0 && n != parts.length) {
            throw new ProtocolException(address, "Table.partitions is " + n + ", allowed: " + parts.length + ", as a node of this grid reported before. "
                    + "The number never changes; a grid recreated under its name needs a new GridClient", null);
        }
        PartitionInfo[] next = new PartitionInfo[n];
        for (int i = 0; i < n; i++) {
            next[i] = parts.length > 0 ? parts[i] : new PartitionInfo(i, 0, 0, null, List.of());
        }
        for (PartitionInfo p : m.parts()) {
            if (p.epoch() >= next[p.partition()].epoch()) {
                next[p.partition()] = p;
            }
        }
        return new Table(next, bySymbol || m.bySymbol());
    }

    /** Whom to ask about a partition, best first; the first {@code own} are its members. */
    record Targets(List<String> addresses, int own) {}

    /** The members of a partition, the endpoints, the members of others; avoid, which has just failed, comes last. */
    Targets targets(int partition, String avoid, List<String> endpoints) {
        Set<String> out = new LinkedHashSet<>();
        int own = 0;
        for (int i = 0; i < parts.length; i++) {
            for (Member m : parts[(partition + i) % parts.length].members()) {
                add(out, m.address(), avoid);
            }
            if (i == 0) {
                own = out.size();
                endpoints.forEach(e -> add(out, e, avoid));
            }
        }
        List<String> list = new ArrayList<>(out);
        if (!avoid.isEmpty()) {
            list.add(avoid);
        }
        return new Targets(list, own);
    }

    private static void add(Set<String> out, String address, String avoid) {
        if (!address.isEmpty() && !address.equals(avoid) && out.size() < MAX_TARGETS) {
            out.add(address);
        }
    }

    /** The addresses of all members, and the endpoints. */
    List<String> addresses(List<String> endpoints) {
        Set<String> out = new LinkedHashSet<>();
        for (PartitionInfo p : parts) {
            for (Member m : p.members()) {
                if (!m.address().isEmpty()) {
                    out.add(m.address());
                }
            }
        }
        out.addAll(endpoints);
        return new ArrayList<>(out);
    }

    static List<String> some(List<String> addresses) {
        return addresses.subList(0, Math.min(addresses.size(), MAX_TARGETS));
    }
}
