package dev.ordergrid.peers.ignite;

import dev.ordergrid.peers.Peer;
import dev.ordergrid.peers.Servers;
import dev.ordergrid.peers.Wait;
import java.util.concurrent.CompletionStage;
import org.apache.ignite.Ignite;
import org.apache.ignite.Ignition;
import org.apache.ignite.cache.CacheAtomicityMode;
import org.apache.ignite.cache.CacheMode;
import org.apache.ignite.cache.CacheWriteSynchronizationMode;
import org.apache.ignite.client.ClientCache;
import org.apache.ignite.client.IgniteClient;
import org.apache.ignite.configuration.CacheConfiguration;
import org.apache.ignite.configuration.ClientConfiguration;
import org.apache.ignite.configuration.ClientConnectorConfiguration;
import org.apache.ignite.configuration.DataRegionConfiguration;
import org.apache.ignite.configuration.DataStorageConfiguration;
import org.apache.ignite.configuration.IgniteConfiguration;
import org.apache.ignite.logger.java.JavaLogger;
import org.apache.ignite.spi.communication.tcp.TcpCommunicationSpi;
import org.apache.ignite.spi.discovery.tcp.TcpDiscoverySpi;
import org.apache.ignite.spi.discovery.tcp.ipfinder.vm.TcpDiscoveryVmIpFinder;

/**
 * Apache Ignite 2: an atomic partitioned cache with one backup, FULL_SYNC; the thin client with partition awareness, put and
 * putAsync. Orders are outside of the heap, in a region of fixed size.
 */
public final class IgnitePeer implements Peer {
    private static final int DISCOVERY = 0, COMMUNICATION = 1, CLIENT = 2;
    private static final long REGION_BYTES = 768L << 20;

    private AutoCloseable closes;
    private ClientCache<String, byte[]> orders;

    @Override
    public void serve(Servers servers, int own) throws Exception {
        System.setProperty("IGNITE_UPDATE_NOTIFIER", "false");
        System.setProperty("IGNITE_QUIET", "true");
        System.setProperty("IGNITE_NO_ASCII", "true");
        System.setProperty("IGNITE_PERFORMANCE_SUGGESTIONS_DISABLED", "true");
        DataRegionConfiguration region = new DataRegionConfiguration().setName("memory").setPersistenceEnabled(false)
                .setInitialSize(REGION_BYTES).setMaxSize(REGION_BYTES);
        Ignite ignite = Ignition.start(new IgniteConfiguration()
                .setIgniteInstanceName("server-" + own)
                .setConsistentId("server-" + own)
                .setLocalHost(servers.host())
                .setWorkDirectory(System.getProperty("user.dir"))
                .setGridLogger(new JavaLogger(false))
                .setMetricsLogFrequency(0)
                .setConnectorConfiguration(null)
                .setDataStorageConfiguration(new DataStorageConfiguration().setDefaultDataRegionConfiguration(region))
                .setClientConnectorConfiguration(new ClientConnectorConfiguration().setHost(servers.host()).setPort(servers.port(own, CLIENT)).setPortRange(0))
                .setCommunicationSpi(new TcpCommunicationSpi().setLocalPort(servers.port(own, COMMUNICATION)).setLocalPortRange(0))
                .setDiscoverySpi(new TcpDiscoverySpi().setLocalPort(servers.port(own, DISCOVERY)).setLocalPortRange(0)
                        .setIpFinder(new TcpDiscoveryVmIpFinder().setAddresses(servers.addresses(DISCOVERY)))));
        closes = ignite;
        if (servers.last(own)) {
            Wait.until("every server is in the cluster", () -> ignite.cluster().forServers().nodes().size() == servers.count());
            ignite.getOrCreateCache(new CacheConfiguration<String, byte[]>(ORDERS)
                    .setCacheMode(CacheMode.PARTITIONED)
                    .setAtomicityMode(CacheAtomicityMode.ATOMIC)
                    .setBackups(servers.backups())
                    .setWriteSynchronizationMode(CacheWriteSynchronizationMode.FULL_SYNC));
            Wait.until("every partition has its backup", () -> backed(ignite, servers.backups()));
        }
    }

    private static boolean backed(Ignite ignite, int backups) {
        var affinity = ignite.affinity(ORDERS);
        for (int partition = 0; partition < affinity.partitions(); partition++) {
            if (affinity.mapPartitionToPrimaryAndBackups(partition).size() != backups + 1) {
                return false;
            }
        }
        return true;
    }

    @Override
    public void connect(Servers servers) {
        IgniteClient client = Ignition.startClient(new ClientConfiguration()
                .setAddresses(servers.addresses(CLIENT).toArray(new String[0]))
                .setAsyncContinuationExecutor(Runnable::run)); // what follows an answer is short
        closes = client;
        orders = client.cache(ORDERS);
    }

    @Override
    public void put(String key, byte[] order) {
        orders.put(key, order);
    }

    @Override
    public CompletionStage<?> putAsync(String key, byte[] order) {
        return orders.putAsync(key, order);
    }

    @Override
    public void close() throws Exception {
        closes.close();
    }
}
