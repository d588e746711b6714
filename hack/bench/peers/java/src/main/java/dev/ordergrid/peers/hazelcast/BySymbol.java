package dev.ordergrid.peers.hazelcast;

import com.hazelcast.aggregation.Aggregator;
import dev.ordergrid.peers.Order;
import java.util.HashMap;
import java.util.Map;

/** Count and sum of quantity by symbol: the aggregators of Hazelcast have no groups. */
final class BySymbol implements Aggregator<Map.Entry<String, Order>, Map<String, long[]>> {
    private static final long serialVersionUID = 1;

    private final HashMap<String, long[]> groups = new HashMap<>();

    @Override
    public void accumulate(Map.Entry<String, Order> entry) {
        add(entry.getValue().symbol, 1, entry.getValue().qty);
    }

    private void add(String symbol, long count, long sum) {
        long[] group = groups.computeIfAbsent(symbol, s -> new long[2]);
        group[0] += count;
        group[1] += sum;
    }

    @Override
    @SuppressWarnings("rawtypes")
    public void combine(Aggregator other) {
        ((BySymbol) other).groups.forEach((symbol, group) -> add(symbol, group[0], group[1]));
    }

    @Override
    public Map<String, long[]> aggregate() {
        return groups;
    }
}
