package dev.ordergrid.peers.hazelcast;

import com.hazelcast.map.EntryProcessor;
import dev.ordergrid.peers.Order;
import java.util.Map;

/** Sets tif of an order, on all copies. */
final class SetTif implements EntryProcessor<String, Order, Void> {
    private static final long serialVersionUID = 1;

    private final String tif;

    SetTif(String tif) {
        this.tif = tif;
    }

    @Override
    public Void process(Map.Entry<String, Order> entry) {
        Order order = entry.getValue();
        order.tif = tif;
        entry.setValue(order);
        return null;
    }
}
