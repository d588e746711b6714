package dev.ordergrid.peers.coherence;

import static dev.ordergrid.peers.coherence.OrderSerializer.ACCOUNT;
import static dev.ordergrid.peers.coherence.OrderSerializer.CENTS;
import static dev.ordergrid.peers.coherence.OrderSerializer.MS;
import static dev.ordergrid.peers.coherence.OrderSerializer.QTY;
import static dev.ordergrid.peers.coherence.OrderSerializer.SIDE;
import static dev.ordergrid.peers.coherence.OrderSerializer.SYMBOL;
import static dev.ordergrid.peers.coherence.OrderSerializer.TIF;

import com.tangosol.net.CacheFactory;
import com.tangosol.net.NamedCache;
import com.tangosol.util.Filter;
import com.tangosol.util.InvocableMap;
import com.tangosol.util.ValueExtractor;
import com.tangosol.util.aggregator.CompositeAggregator;
import com.tangosol.util.aggregator.Count;
import com.tangosol.util.aggregator.GroupAggregator;
import com.tangosol.util.aggregator.LongSum;
import com.tangosol.util.extractor.PofExtractor;
import com.tangosol.util.extractor.PofUpdater;
import com.tangosol.util.filter.AlwaysFilter;
import com.tangosol.util.filter.AndFilter;
import com.tangosol.util.filter.BetweenFilter;
import com.tangosol.util.filter.EqualsFilter;
import com.tangosol.util.processor.UpdaterProcessor;
import dev.ordergrid.peers.Order;
import dev.ordergrid.peers.Rows;
import dev.ordergrid.peers.Servers;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/** Questions to Coherence: filters, aggregators and processors that find one field without decoding the rest. */
@SuppressWarnings({"rawtypes", "unchecked"})
public final class CoherenceRows implements Rows {
    private NamedCache<String, Order> rows;

    @Override
    public void connect(Servers servers) {
        rows = CoherencePeer.join(servers, false, ROWS);
        rows.addIndex(text(ACCOUNT), false, null);
        rows.addIndex(number(CENTS), true, null);
        rows.addIndex(number(MS), true, null);
    }

    private static ValueExtractor text(int field) {
        return new PofExtractor(String.class, field);
    }

    private static ValueExtractor number(int field) {
        return new PofExtractor(Long.class, field);
    }

    @Override
    public void put(Map<String, Order> orders) {
        rows.putAll(orders);
    }

    @Override
    public Order get(String id) {
        return rows.get(id);
    }

    private Collection<Order> where(Filter filter) {
        Collection<Order> all = new ArrayList<>();
        for (Object entry : rows.entrySet(filter)) {
            all.add(((Map.Entry<String, Order>) entry).getValue());
        }
        return all;
    }

    @Override
    public Collection<Order> ofAccount(String account) {
        return where(new EqualsFilter(text(ACCOUNT), account));
    }

    private long count(Filter filter) {
        return ((Number) rows.aggregate(filter, new Count())).longValue();
    }

    @Override
    public long countQty(long qty) {
        return count(new EqualsFilter(number(QTY), qty));
    }

    @Override
    public Collection<Order> inRange(long cents, long lastCents, long ms, long lastMs) {
        return where(new AndFilter(new BetweenFilter(number(CENTS), cents, lastCents), new BetweenFilter(number(MS), ms, lastMs)));
    }

    @Override
    public Map<String, long[]> bySymbol() {
        InvocableMap.EntryAggregator both = CompositeAggregator.createInstance(new InvocableMap.EntryAggregator[] {new Count(), new LongSum(number(QTY))});
        Map<String, List<Number>> groups = (Map<String, List<Number>>) rows.aggregate(AlwaysFilter.INSTANCE, GroupAggregator.createInstance(text(SYMBOL), both));
        Map<String, long[]> all = new HashMap<>();
        groups.forEach((symbol, group) -> all.put(symbol, new long[] {group.get(0).longValue(), group.get(1).longValue()}));
        return all;
    }

    @Override
    public long countTif(String tif, String side) {
        Filter is = new EqualsFilter(text(TIF), tif);
        return count(side == null ? is : new AndFilter(is, new EqualsFilter(text(SIDE), side)));
    }

    @Override
    public long count() {
        return rows.size();
    }

    @Override
    public void patch(String side, String tif) {
        rows.invokeAll(new EqualsFilter(text(SIDE), side), new UpdaterProcessor(new PofUpdater(TIF), tif));
    }

    @Override
    public void drop() {
        rows.truncate();
    }

    @Override
    public void close() {
        CacheFactory.shutdown();
    }
}
