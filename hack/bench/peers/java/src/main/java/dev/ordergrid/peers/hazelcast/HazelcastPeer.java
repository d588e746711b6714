package dev.ordergrid.peers.hazelcast;

import com.hazelcast.client.HazelcastClient;
import com.hazelcast.client.config.ClientConfig;
import com.hazelcast.config.Config;
import com.hazelcast.config.InMemoryFormat;
import com.hazelcast.config.JoinConfig;
import com.hazelcast.config.MapConfig;
import com.hazelcast.config.NetworkConfig;
import com.hazelcast.core.Hazelcast;
import com.hazelcast.core.HazelcastInstance;
import com.hazelcast.map.IMap;
import dev.ordergrid.peers.Peer;
import dev.ordergrid.peers.Rows;
import dev.ordergrid.peers.Servers;
import dev.ordergrid.peers.Wait;
import java.util.concurrent.CompletionStage;

/** Hazelcast: an IMap with one synchronous backup, its smart client, set and setAsync. */
public final class HazelcastPeer implements Peer {
    private static final int PORT = 0;

    private HazelcastInstance instance;
    private IMap<String, byte[]> orders;

    @Override
    public void serve(Servers servers, int own) throws Exception {
        Config config = new Config().setClusterName("bench");
        config.setProperty("hazelcast.phone.home.enabled", "false");
        config.setProperty("hazelcast.socket.bind.any", "false");
        config.setProperty("hazelcast.logging.type", "jdk");
        config.addMapConfig(new MapConfig(ORDERS).setBackupCount(servers.backups()).setAsyncBackupCount(0));
        config.addMapConfig(new MapConfig(Rows.ROWS).setBackupCount(servers.backups()).setAsyncBackupCount(0).setInMemoryFormat(InMemoryFormat.OBJECT));
        config.getSerializationConfig().getCompactSerializationConfig().addSerializer(new OrderSerializer());
        NetworkConfig network = config.getNetworkConfig().setPort(servers.port(own, PORT)).setPortAutoIncrement(false);
        network.getInterfaces().setEnabled(true).addInterface(servers.host());
        JoinConfig join = network.getJoin();
        join.getAutoDetectionConfig().setEnabled(false);
        join.getMulticastConfig().setEnabled(false);
        join.getTcpIpConfig().setEnabled(true).setMembers(servers.addresses(PORT));
        instance = Hazelcast.newHazelcastInstance(config);
        if (servers.last(own)) {
            instance.getMap(ORDERS).size(); // has the partitions assigned
            Wait.until("every partition has its backup", () ->
                    instance.getCluster().getMembers().size() == servers.count() && instance.getPartitionService().isClusterSafe());
        }
    }

    @Override
    public void connect(Servers servers) {
        instance = HazelcastClient.newHazelcastClient(client(servers));
        orders = instance.getMap(ORDERS);
    }

    /** How a client reaches the servers. */
    static ClientConfig client(Servers servers) {
        ClientConfig config = new ClientConfig().setClusterName("bench");
        config.setProperty("hazelcast.logging.type", "jdk");
        config.getNetworkConfig().setAddresses(servers.addresses(PORT));
        return config;
    }

    @Override
    public void put(String key, byte[] order) {
        orders.set(key, order);
    }

    @Override
    public CompletionStage<?> putAsync(String key, byte[] order) {
        return orders.setAsync(key, order);
    }

    @Override
    public void close() {
        instance.shutdown();
    }
}
