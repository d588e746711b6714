package dev.ordergrid.peers.coherence;

import com.tangosol.io.pof.PofReader;
import com.tangosol.io.pof.PofSerializer;
import com.tangosol.io.pof.PofWriter;
import dev.ordergrid.peers.Order;
import java.io.IOException;

/** An order in Coherence's portable object format, each field at an index of its own. */
public final class OrderSerializer implements PofSerializer<Order> {
    static final int ID = 0, ACCOUNT = 1, SYMBOL = 2, SIDE = 3, ORD_TYPE = 4, TIF = 5, CENTS = 6, QTY = 7, MS = 8, FIX = 9;

    @Override
    public void serialize(PofWriter out, Order o) throws IOException {
        out.writeString(ID, o.id);
        out.writeString(ACCOUNT, o.account);
        out.writeString(SYMBOL, o.symbol);
        out.writeString(SIDE, o.side);
        out.writeString(ORD_TYPE, o.ordType);
        out.writeString(TIF, o.tif);
        out.writeLong(CENTS, o.cents);
        out.writeLong(QTY, o.qty);
        out.writeLong(MS, o.ms);
        out.writeByteArray(FIX, o.fix);
        out.writeRemainder(null);
    }

    @Override
    public Order deserialize(PofReader in) throws IOException {
        Order o = new Order();
        o.id = in.readString(ID);
        o.account = in.readString(ACCOUNT);
        o.symbol = in.readString(SYMBOL);
        o.side = in.readString(SIDE);
        o.ordType = in.readString(ORD_TYPE);
        o.tif = in.readString(TIF);
        o.cents = in.readLong(CENTS);
        o.qty = in.readLong(QTY);
        o.ms = in.readLong(MS);
        o.fix = in.readByteArray(FIX);
        in.readRemainder();
        return o;
    }
}
