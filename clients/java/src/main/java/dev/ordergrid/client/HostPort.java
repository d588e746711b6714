package dev.ordergrid.client;

/** A host and a port, as text {@code host:port}, an IPv6 address in brackets. */
record HostPort(String host, int port) {
    static HostPort parse(String text) {
        int colon = text.lastIndexOf(':');
        try {
            if (colon > 0) {
                String host = text.substring(0, colon);
                boolean v6 = host.startsWith("[") && host.endsWith("]");
                int port = Integer.parseInt(text.substring(colon + 1));
                if (port > 0 && port < 65536 && (v6 || host.indexOf(':') < 0)) {
                    return new HostPort(v6 ? host.substring(1, host.length() - 1) : host, port);
                }
            }
        } catch (NumberFormatException e) {
            // the message below says what is allowed
        }
        throw new IllegalArgumentException("address is \"" + OrderId.shortened(text) + "\", allowed: host:port, for example 127.0.0.1:7400");
    }
}
