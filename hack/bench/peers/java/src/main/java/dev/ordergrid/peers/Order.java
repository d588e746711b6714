package dev.ordergrid.peers;

/** An order with its fields, for the peers of questions. Peers find fields by these names. */
public final class Order {
    public String id, account, symbol, side, ordType, tif;
    public long cents, qty, ms;
    public byte[] fix;

    /** Reads the line of the bench: ten fields, divided by tabs. */
    static Order parse(String line) {
        String[] f = line.split("\t", -1);
        Order o = new Order();
        o.id = f[0];
        o.account = f[1];
        o.symbol = f[2];
        o.side = f[3];
        o.cents = Long.parseLong(f[4]);
        o.qty = Long.parseLong(f[5]);
        o.ordType = f[6];
        o.tif = f[7];
        o.ms = Long.parseLong(f[8]);
        o.fix = f[9].getBytes(java.nio.charset.StandardCharsets.ISO_8859_1);
        return o;
    }

    /** The text of a row of an answer. */
    String row() {
        return String.join("|", id, account, symbol, side, Long.toString(cents), Long.toString(qty), ordType, tif, Long.toString(ms));
    }
}
