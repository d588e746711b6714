package dev.ordergrid.peers.geode;

import dev.ordergrid.peers.Peer;
import dev.ordergrid.peers.Servers;
import dev.ordergrid.peers.Wait;
import java.util.Map;
import java.util.Properties;
import org.apache.geode.cache.Cache;
import org.apache.geode.cache.CacheFactory;
import org.apache.geode.cache.Region;
import org.apache.geode.cache.RegionShortcut;
import org.apache.geode.cache.client.ClientCache;
import org.apache.geode.cache.client.ClientCacheFactory;
import org.apache.geode.cache.client.ClientRegionShortcut;
import org.apache.geode.cache.partition.PartitionRegionHelper;
import org.apache.geode.cache.partition.PartitionRegionInfo;
import org.apache.geode.cache.server.CacheServer;

/**
 * Apache Geode: PARTITION_REDUNDANT, a client with single hop. It has no asynchronous put: a pipelining client has a batch of
 * orders acknowledged at a time.
 */
public final class GeodePeer implements Peer {
    private static final int LOCATOR = 0, SERVER = 1, MEMBER = 2;

    private AutoCloseable cache;
    private Region<String, byte[]> orders;

    @Override
    public void serve(Servers servers, int own) throws Exception {
        String locator = servers.host() + "[" + servers.port(0, LOCATOR) + "]";
        Properties p = new Properties();
        p.setProperty("name", "server-" + own);
        p.setProperty("bind-address", servers.host());
        p.setProperty(own == 0 ? "start-locator" : "locators", locator);
        p.setProperty("tcp-port", String.valueOf(servers.port(own, MEMBER)));
        p.setProperty("log-level", "warning");
        p.setProperty("jmx-manager", "false");
        p.setProperty("http-service-port", "0");
        p.setProperty("enable-cluster-configuration", "false");
        p.setProperty("use-cluster-configuration", "false");
        p.setProperty("statistic-sampling-enabled", "false");
        Cache server = new CacheFactory(p).create();
        cache = server;
        orders = server.<String, byte[]>createRegionFactory(servers.backups() > 0 ? RegionShortcut.PARTITION_REDUNDANT : RegionShortcut.PARTITION)
                .create(ORDERS);
        CacheServer listener = server.addCacheServer();
        listener.setBindAddress(servers.host());
        listener.setHostnameForClients(servers.host());
        listener.setPort(servers.port(own, SERVER));
        listener.start();
        if (servers.last(own)) {
            PartitionRegionHelper.assignBucketsToPartitions(orders);
            Wait.until("every bucket has its copies", () -> {
                PartitionRegionInfo info = PartitionRegionHelper.getPartitionRegionInfo(orders);
                return info.getPartitionMemberInfo().size() == servers.count() && info.getCreatedBucketCount() == info.getConfiguredBucketCount()
                        && info.getLowRedundancyBucketCount() == 0;
            });
        }
    }

    @Override
    public void connect(Servers servers) {
        ClientCacheFactory factory = new ClientCacheFactory().set("log-level", "warning").set("statistic-sampling-enabled", "false")
                .setPoolPRSingleHopEnabled(true);
        for (int server = 0; server < servers.count(); server++) {
            factory.addPoolServer(servers.host(), servers.port(server, SERVER));
        }
        ClientCache client = factory.create();
        cache = client;
        orders = client.<String, byte[]>createClientRegionFactory(ClientRegionShortcut.PROXY).create(ORDERS);
    }

    @Override
    public void put(String key, byte[] order) {
        orders.put(key, order);
    }

    @Override
    public int batch() {
        return 64;
    }

    @Override
    public void putAll(Map<String, byte[]> batch) {
        orders.putAll(batch);
    }

    @Override
    public void close() throws Exception {
        cache.close();
    }
}
