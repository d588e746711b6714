package dev.ordergrid.peers.coherence;

import com.tangosol.net.AsyncNamedCache;
import com.tangosol.net.CacheFactory;
import com.tangosol.net.NamedCache;
import com.tangosol.net.PartitionedService;
import dev.ordergrid.peers.Peer;
import dev.ordergrid.peers.Servers;
import dev.ordergrid.peers.Wait;
import java.util.Collections;
import java.util.concurrent.CompletionStage;

/**
 * Coherence CE: a distributed cache with one backup. The client is a member of the cluster without storage, which reaches the
 * primary of an order directly. put would send back what was there, so an order is a putAll of one.
 */
public final class CoherencePeer implements Peer {
    private static final int CLUSTER_PORT = 0;

    private NamedCache<String, byte[]> orders;
    private AsyncNamedCache<String, byte[]> async;

    /** Joins the cluster, and returns a cache of it. */
    static <V> NamedCache<String, V> join(Servers servers, boolean stores, String cache) {
        System.setProperty("coherence.cluster", "bench");
        System.setProperty("coherence.wka", servers.host());
        System.setProperty("coherence.localhost", servers.host());
        System.setProperty("coherence.clusterport", String.valueOf(servers.port(0, CLUSTER_PORT)));
        System.setProperty("coherence.ttl", "0");
        System.setProperty("coherence.management", "none");
        System.setProperty("coherence.log.level", "3");
        System.setProperty("coherence.distributed.backupcount", String.valueOf(servers.backups()));
        System.setProperty("coherence.distributed.localstorage", String.valueOf(stores));
        return CacheFactory.getCache(cache);
    }

    @Override
    public void serve(Servers servers, int own) throws Exception {
        orders = join(servers, true, ORDERS);
        if (servers.last(own)) {
            PartitionedService service = (PartitionedService) orders.getCacheService();
            Wait.until("every partition has its backup", () -> safe(service, servers.backups()));
        }
    }

    private static boolean safe(PartitionedService service, int backups) {
        if (service.getOwnershipEnabledMembers().size() != backups + 1) {
            return false;
        }
        for (int partition = 0; partition < service.getPartitionCount(); partition++) {
            if (service.getPartitionOwner(partition) == null || backups > 0 && service.getBackupOwner(partition, 1) == null) {
                return false;
            }
        }
        return true;
    }

    @Override
    public void connect(Servers servers) {
        orders = join(servers, false, ORDERS);
        async = orders.async();
    }

    @Override
    public void put(String key, byte[] order) {
        orders.putAll(Collections.singletonMap(key, order));
    }

    @Override
    public CompletionStage<?> putAsync(String key, byte[] order) {
        return async.put(key, order);
    }

    @Override
    public void close() {
        CacheFactory.shutdown();
    }
}
