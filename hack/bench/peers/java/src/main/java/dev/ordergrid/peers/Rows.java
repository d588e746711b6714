package dev.ordergrid.peers;

import java.util.Collection;
import java.util.Map;

/** A client that asks a peer about orders, which are in the map ROWS of its servers. */
public interface Rows extends AutoCloseable {
    /** The name of the map. */
    String ROWS = "rows";

    /** Connects, and makes indexes of account, cents and ms. */
    void connect(Servers servers) throws Exception;

    /** Returns when every copy has all of them in memory. */
    void put(Map<String, Order> orders) throws Exception;

    Order get(String id) throws Exception;

    Collection<Order> ofAccount(String account) throws Exception;

    long countQty(long qty) throws Exception;

    /** Orders of prices and times, both from the first to the last. */
    Collection<Order> inRange(long cents, long lastCents, long ms, long lastMs) throws Exception;

    /** Count and sum of quantity by symbol. */
    Map<String, long[]> bySymbol() throws Exception;

    /** How many have this tif; with a side, those of them that have it. */
    long countTif(String tif, String side) throws Exception;

    long count() throws Exception;

    /** Sets tif of all orders of a side. */
    void patch(String side, String tif) throws Exception;

    /** Removes all. */
    void drop() throws Exception;
}
