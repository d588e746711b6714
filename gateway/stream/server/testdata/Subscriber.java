import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.WebSocket;
import java.nio.ByteBuffer;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.TimeUnit;

/**
 * Subscribes at the address given, prints each message without spaces, and closes behind as many as given. A third
 * argument is a token, a fourth the topics.
 */
class Subscriber {
    public static void main(String[] args) throws Exception {
        int wanted = Integer.parseInt(args[1]);
        CompletableFuture<Integer> closed = new CompletableFuture<>();
        WebSocket.Listener listener = new WebSocket.Listener() {
            final StringBuilder text = new StringBuilder();
            int messages;

            @Override
            public CompletionStage<?> onText(WebSocket ws, CharSequence part, boolean last) {
                text.append(part);
                if (last) {
                    System.out.println(text.toString().replace(" ", ""));
                    text.setLength(0);
                    if (++messages == wanted) {
                        ws.sendClose(WebSocket.NORMAL_CLOSURE, "done");
                    }
                }
                ws.request(1);
                return null;
            }

            @Override
            public CompletionStage<?> onPong(WebSocket ws, ByteBuffer message) {
                System.out.println("pong " + message.remaining());
                ws.request(1);
                return null;
            }

            @Override
            public CompletionStage<?> onClose(WebSocket ws, int code, String reason) {
                closed.complete(code);
                return null;
            }

            @Override
            public void onError(WebSocket ws, Throwable error) {
                closed.completeExceptionally(error);
            }
        };
        WebSocket.Builder builder = HttpClient.newHttpClient().newWebSocketBuilder().subprotocols("ordergrid.json.v1");
        if (args.length > 2) {
            builder.header("Authorization", "Bearer " + args[2]);
        }
        String topics = args.length > 3 ? args[3] : "orders.*.BRK%2EB.>";
        WebSocket ws = builder.buildAsync(URI.create(args[0]), listener).get(30, TimeUnit.SECONDS);
        ws.sendPing(ByteBuffer.wrap(new byte[] {1, 2, 3})).get(30, TimeUnit.SECONDS);
        // In fragments.
        ws.sendText("{\"op\":\"subscribe\",\"id\":1,", false).get(30, TimeUnit.SECONDS);
        ws.sendText("\"topics\":\"" + topics + "\"}", true).get(30, TimeUnit.SECONDS);
        System.out.println("closed " + closed.get(60, TimeUnit.SECONDS));
    }
}
