package dev.ordergrid.peers;

import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;

/** Answers at once: what the generator itself costs. */
public final class Nothing implements Peer {
    private static final CompletionStage<Void> DONE = CompletableFuture.completedFuture(null);

    @Override
    public void serve(Servers servers, int own) {}

    @Override
    public void connect(Servers servers) {}

    @Override
    public void put(String key, byte[] order) {}

    @Override
    public CompletionStage<?> putAsync(String key, byte[] order) {
        return DONE;
    }

    @Override
    public void close() {}
}
