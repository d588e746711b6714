import exchange.core2.collections.objpool.ObjectsPool;
import exchange.core2.core.common.CoreSymbolSpecification;
import exchange.core2.core.common.MatcherEventType;
import exchange.core2.core.common.MatcherTradeEvent;
import exchange.core2.core.common.OrderAction;
import exchange.core2.core.common.OrderType;
import exchange.core2.core.common.SymbolType;
import exchange.core2.core.common.cmd.OrderCommand;
import exchange.core2.core.common.cmd.OrderCommandType;
import exchange.core2.core.common.config.LoggingConfiguration;
import exchange.core2.core.orderbook.IOrderBook;
import exchange.core2.core.orderbook.OrderBookDirectImpl;
import exchange.core2.core.orderbook.OrderBookEventsHelper;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.lang.management.ManagementFactory;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.Map;

/**
 * Runs a flow of operations through the books of exchange-core, as its matching engine does: one pool of objects, and no
 * pipeline, risk engine or journal around them. The flow is a file of 32 bytes an operation, see writeFlow of
 * bench_peer_test.go. For each line of standard input it makes new books, runs the flow once, and prints the CPU time of
 * this thread in nanoseconds, trades, and the sums of their quantities and of quantity times price.
 */
public final class Book {
    private static final int RECORD = 32;

    public static void main(String[] args) throws Exception {
        ByteBuffer flow = ByteBuffer.wrap(Files.readAllBytes(Path.of(args[0]))).order(ByteOrder.LITTLE_ENDIAN);
        int books = Integer.parseInt(args[1]);
        int operations = flow.capacity() / RECORD;
        boolean[] cancel = new boolean[operations], sell = new boolean[operations], ioc = new boolean[operations];
        int[] book = new int[operations], owner = new int[operations];
        long[] id = new long[operations], price = new long[operations], quantity = new long[operations];
        for (int i = 0; i < operations; i++) {
            int at = i * RECORD;
            cancel[i] = flow.get(at) != 0;
            sell[i] = flow.get(at + 1) != 0;
            ioc[i] = flow.get(at + 2) != 0;
            book[i] = flow.getInt(at + 4);
            id[i] = flow.getLong(at + 8);
            owner[i] = flow.getInt(at + 16);
            price[i] = flow.getInt(at + 20);
            quantity[i] = flow.getInt(at + 24);
        }
        BufferedReader requests = new BufferedReader(new InputStreamReader(System.in));
        while (requests.readLine() != null) {
            IOrderBook[] all = create(books);
            System.gc();
            long trades = 0, traded = 0, value = 0;
            OrderCommand command = new OrderCommand();
            long start = ManagementFactory.getThreadMXBean().getCurrentThreadCpuTime();
            for (int i = 0; i < operations; i++) {
                command.orderId = id[i];
                command.uid = owner[i];
                command.matcherEvent = null;
                if (cancel[i]) {
                    command.command = OrderCommandType.CANCEL_ORDER;
                    all[book[i]].cancelOrder(command);
                    continue;
                }
                command.command = OrderCommandType.PLACE_ORDER;
                command.orderType = ioc[i] ? OrderType.IOC : OrderType.GTC;
                command.action = sell[i] ? OrderAction.ASK : OrderAction.BID;
                command.price = price[i];
                command.reserveBidPrice = price[i];
                command.size = quantity[i];
                all[book[i]].newOrder(command);
                for (MatcherTradeEvent e = command.matcherEvent; e != null; e = e.nextEvent) {
                    if (e.eventType == MatcherEventType.TRADE) {
                        trades++;
                        traded += e.size;
                        value += e.size * e.price;
                    }
                }
            }
            long took = ManagementFactory.getThreadMXBean().getCurrentThreadCpuTime() - start;
            System.out.println(took + " " + trades + " " + traded + " " + value);
        }
    }

    /** The sizes of the pool are those of exchange-core's MatchingEngineRouter. */
    private static IOrderBook[] create(int books) {
        Map<Integer, Integer> sizes = new HashMap<>();
        sizes.put(ObjectsPool.DIRECT_ORDER, 1024 * 1024);
        sizes.put(ObjectsPool.DIRECT_BUCKET, 1024 * 64);
        sizes.put(ObjectsPool.ART_NODE_4, 1024 * 32);
        sizes.put(ObjectsPool.ART_NODE_16, 1024 * 16);
        sizes.put(ObjectsPool.ART_NODE_48, 1024 * 8);
        sizes.put(ObjectsPool.ART_NODE_256, 1024 * 4);
        ObjectsPool pool = new ObjectsPool(sizes);
        IOrderBook[] all = new IOrderBook[books];
        for (int i = 0; i < books; i++) {
            CoreSymbolSpecification spec = CoreSymbolSpecification.builder().symbolId(i).type(SymbolType.CURRENCY_EXCHANGE_PAIR).build();
            all[i] = new OrderBookDirectImpl(spec, pool, OrderBookEventsHelper.NON_POOLED_EVENTS_HELPER, LoggingConfiguration.DEFAULT);
        }
        return all;
    }
}
