package dev.ordergrid.peers;

import java.util.Map;
import java.util.concurrent.CompletionStage;

/**
 * A system that is measured. One object is a server or the client, never both. Everything it does is in memory and on the
 * addresses it is told, and it tells no one outside about it.
 */
public interface Peer extends AutoCloseable {
    /** The name of the map that orders are in. */
    String ORDERS = "orders";

    /**
     * Serves orders as server number own. With the last server it returns when every order that is acknowledged from then on
     * is in as many copies as there are servers.
     */
    void serve(Servers servers, int own) throws Exception;

    /** Connects the one client that all threads of the generator use. */
    void connect(Servers servers) throws Exception;

    /** Returns when every copy has the order in memory. */
    void put(String key, byte[] order) throws Exception;

    /** How many orders a pipelining client hands over at once: 1 is putAsync for each, more is putAll. */
    default int batch() {
        return 1;
    }

    /** As put, but completes. */
    default CompletionStage<?> putAsync(String key, byte[] order) {
        throw new UnsupportedOperationException("this peer takes batches");
    }

    /** Returns when every copy has all of them in memory. */
    default void putAll(Map<String, byte[]> orders) throws Exception {
        throw new UnsupportedOperationException("this peer takes one order at a time");
    }

    /** Makes the peer of a class that the command line names. */
    static Peer of(String className) throws ReflectiveOperationException {
        return (Peer) Class.forName(className).getDeclaredConstructor().newInstance();
    }
}
