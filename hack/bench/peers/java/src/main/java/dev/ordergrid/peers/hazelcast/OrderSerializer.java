package dev.ordergrid.peers.hazelcast;

import com.hazelcast.nio.serialization.compact.CompactReader;
import com.hazelcast.nio.serialization.compact.CompactSerializer;
import com.hazelcast.nio.serialization.compact.CompactWriter;
import dev.ordergrid.peers.Order;

/** An order in Hazelcast's compact serialization. */
final class OrderSerializer implements CompactSerializer<Order> {
    @Override
    public Order read(CompactReader in) {
        Order o = new Order();
        o.id = in.readString("id");
        o.account = in.readString("account");
        o.symbol = in.readString("symbol");
        o.side = in.readString("side");
        o.ordType = in.readString("ordType");
        o.tif = in.readString("tif");
        o.cents = in.readInt64("cents");
        o.qty = in.readInt64("qty");
        o.ms = in.readInt64("ms");
        o.fix = in.readArrayOfInt8("fix");
        return o;
    }

    @Override
    public void write(CompactWriter out, Order o) {
        out.writeString("id", o.id);
        out.writeString("account", o.account);
        out.writeString("symbol", o.symbol);
        out.writeString("side", o.side);
        out.writeString("ordType", o.ordType);
        out.writeString("tif", o.tif);
        out.writeInt64("cents", o.cents);
        out.writeInt64("qty", o.qty);
        out.writeInt64("ms", o.ms);
        out.writeArrayOfInt8("fix", o.fix);
    }

    @Override
    public String getTypeName() {
        return "order";
    }

    @Override
    public Class<Order> getCompactClass() {
        return Order.class;
    }
}
