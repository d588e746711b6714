package dev.ordergrid.peers.hazelcast;

import com.hazelcast.aggregation.Aggregators;
import com.hazelcast.client.HazelcastClient;
import com.hazelcast.client.config.ClientConfig;
import com.hazelcast.config.IndexConfig;
import com.hazelcast.config.IndexType;
import com.hazelcast.core.HazelcastInstance;
import com.hazelcast.map.IMap;
import com.hazelcast.query.Predicate;
import com.hazelcast.query.Predicates;
import dev.ordergrid.peers.Order;
import dev.ordergrid.peers.Rows;
import dev.ordergrid.peers.Servers;
import java.util.Collection;
import java.util.Map;

/** Questions to Hazelcast: predicates, aggregators and entry processors. */
public final class HazelcastRows implements Rows {
    private HazelcastInstance instance;
    private IMap<String, Order> rows;

    @Override
    public void connect(Servers servers) {
        ClientConfig config = HazelcastPeer.client(servers);
        config.getSerializationConfig().getCompactSerializationConfig().addSerializer(new OrderSerializer());
        instance = HazelcastClient.newHazelcastClient(config);
        rows = instance.getMap(ROWS);
        rows.addIndex(new IndexConfig(IndexType.HASH, "account"));
        rows.addIndex(new IndexConfig(IndexType.SORTED, "cents"));
        rows.addIndex(new IndexConfig(IndexType.SORTED, "ms"));
    }

    @Override
    public void put(Map<String, Order> orders) {
        rows.setAll(orders);
    }

    @Override
    public Order get(String id) {
        return rows.get(id);
    }

    @Override
    public Collection<Order> ofAccount(String account) {
        return rows.values(Predicates.equal("account", account));
    }

    @Override
    public long countQty(long qty) {
        return count(Predicates.equal("qty", qty));
    }

    private long count(Predicate<String, Order> where) {
        return rows.aggregate(Aggregators.count(), where);
    }

    @Override
    public Collection<Order> inRange(long cents, long lastCents, long ms, long lastMs) {
        return rows.values(Predicates.and(Predicates.between("cents", cents, lastCents), Predicates.between("ms", ms, lastMs)));
    }

    @Override
    public Map<String, long[]> bySymbol() {
        return rows.aggregate(new BySymbol());
    }

    @Override
    public long countTif(String tif, String side) {
        Predicate<String, Order> is = Predicates.equal("tif", tif);
        return count(side == null ? is : Predicates.and(is, Predicates.equal("side", side)));
    }

    @Override
    public long count() {
        return rows.size();
    }

    @Override
    public void patch(String side, String tif) {
        rows.executeOnEntries(new SetTif(tif), Predicates.equal("side", side));
    }

    @Override
    public void drop() {
        rows.clear();
    }

    @Override
    public void close() {
        instance.shutdown();
    }
}
