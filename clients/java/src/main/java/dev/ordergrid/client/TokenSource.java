package dev.ordergrid.client;

import java.io.IOException;
import java.io.InputStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;

/**
 * Gives the token that authenticates the client. It is called for each connection, from any thread, and must return a
 * token that has not expired.
 */
@FunctionalInterface
public interface TokenSource {
    /** The present token. */
    String token() throws IOException;

    /** Reads it from a file, anew for each connection: the kubelet replaces the token of a projected volume. */
    static TokenSource file(Path path) {
        return () -> {
            try (InputStream in = Files.newInputStream(path)) {
                return new String(in.readNBytes(Wire.MAX_TOKEN + 1024), StandardCharsets.US_ASCII).strip();
            }
        };
    }
}
