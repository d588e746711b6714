package dev.ordergrid.client;

import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.List;
import java.util.function.Consumer;

/** How a {@link GridClient} connects. Only the endpoints are required: {@code Config.of("127.0.0.1:7400")}. */
public final class Config {
    private final List<String> endpoints;
    private String grid = "";
    private String name = "client";
    private Duration connectTimeout = Duration.ofSeconds(5);
    private Duration requestTimeout = Duration.ofSeconds(5);
    private int maxInFlight = 1024;
    private Duration suspectAfter = Duration.ofMillis(200);
    private Duration tableEvery = Duration.ofSeconds(10);
    private Duration retryMax = Duration.ofMillis(250);
    private Tls tls;
    private TokenSource token;
    private Consumer<Outage> onOutage;
    private System.Logger logger;

    private Config(List<String> endpoints) {
        this.endpoints = endpoints;
    }

    private Config(Config c) {
        this(c.endpoints);
        grid = c.grid;
        name = c.name;
        connectTimeout = c.connectTimeout;
        requestTimeout = c.requestTimeout;
        maxInFlight = c.maxInFlight;
        suspectAfter = c.suspectAfter;
        tableEvery = c.tableEvery;
        retryMax = c.retryMax;
        tls = c.tls;
        token = c.token;
        onOutage = c.onOutage;
        logger = c.logger;
    }

    /**
     * A configuration with these {@code host:port} of any nodes, or of the grid's client service. One that answers is
     * enough; the table names the others.
     */
    public static Config of(String... endpoints) {
        if (endpoints.length == 0) {
            throw new IllegalArgumentException("Config.endpoints is empty, allowed: one host:port or more, for example 127.0.0.1:7400");
        }
        for (String e : endpoints) {
            HostPort.parse(e);
        }
        return new Config(List.of(endpoints));
    }

    private interface Change {
        void to(Config c);
    }

    private Config with(Change change) {
        Config c = new Config(this);
        change.to(c);
        return c;
    }

    /** The grid's name; a node of another grid is refused. Default: take the grid that answers. */
    public Config grid(String value) {
        checkString("grid", value);
        return with(c -> c.grid = value);
    }

    /** Shown in the node's logs. Default "client". */
    public Config name(String value) {
        checkString("name", value);
        return with(c -> c.name = value);
    }

    /** Bounds {@link GridClient#connect} and {@link GridClient#session} as a whole. Default 5 s. */
    public Config connectTimeout(Duration value) {
        checkTime("connectTimeout", value);
        return with(c -> c.connectTimeout = value);
    }

    /** Bounds a submission or read without a limit of its own. It includes all retries. Default 5 s. */
    public Config requestTimeout(Duration value) {
        checkTime("requestTimeout", value);
        return with(c -> c.requestTimeout = value);
    }

    /** Bounds the unanswered orders of one session; the node's own window lowers it. Default 1,024, at most 65,536. */
    public Config maxInFlight(int value) {
        if (value < 1 || value > Link.MAX_WINDOW) {
            throw new IllegalArgumentException("Config.maxInFlight is " + value + ", allowed: 1.." + Link.MAX_WINDOW);
        }
        return with(c -> c.maxInFlight = value);
    }

    /** How long a primary may owe an answer before other nodes are asked whether it still is. Default 200 ms. */
    public Config suspectAfter(Duration value) {
        checkTime("suspectAfter", value);
        return with(c -> c.suspectAfter = value);
    }

    /** About how often the table is asked for while all is well. Default 10 s. */
    public Config tableEvery(Duration value) {
        checkTime("tableEvery", value);
        return with(c -> c.tableEvery = value);
    }

    /** Bounds the pause between two attempts to reconnect. Default 250 ms. */
    public Config retryMax(Duration value) {
        checkTime("retryMax", value);
        return with(c -> c.retryMax = value);
    }

    /** Makes every connection TLS 1.3. Default: plain TCP. */
    public Config tls(Tls value) {
        return with(c -> c.tls = value);
    }

    /**
     * Proves the client's identity where the certificate does not, or carries less: for example
     * {@link TokenSource#file} of a projected Kubernetes service account token. It is sent over TLS only.
     */
    public Config token(TokenSource value) {
        return with(c -> c.token = value);
    }

    /** Called after every outage of a session, on a thread of its own. Default: {@link GridClient#outages} has the last. */
    public Config onOutage(Consumer<Outage> value) {
        return with(c -> c.onOutage = value);
    }

    /** Gets reconnects (INFO) and violations of the protocol (ERROR). Default: nothing is logged. */
    public Config logger(System.Logger value) {
        return with(c -> c.logger = value);
    }

    private static void checkString(String field, String value) {
        int n = value.getBytes(StandardCharsets.UTF_8).length;
        if (n > Wire.MAX_STRING) {
            throw new IllegalArgumentException("Config." + field + " has " + n + " bytes, allowed: at most " + Wire.MAX_STRING);
        }
    }

    private static void checkTime(String field, Duration value) {
        if (value.compareTo(Duration.ofMillis(1)) < 0 || value.compareTo(Duration.ofDays(1)) > 0) {
            throw new IllegalArgumentException("Config." + field + " is " + value + ", allowed: 1 ms to 1 day");
        }
    }

    void check() {
        if (token != null && tls == null) {
            throw new IllegalArgumentException("Config.token without Config.tls, allowed: both; a token over plain TCP can be read by third parties");
        }
    }

    List<String> endpoints() {
        return endpoints;
    }

    String grid() {
        return grid;
    }

    String name() {
        return name;
    }

    int maxInFlight() {
        return maxInFlight;
    }

    Tls tls() {
        return tls;
    }

    TokenSource token() {
        return token;
    }

    Consumer<Outage> onOutage() {
        return onOutage;
    }

    System.Logger logger() {
        return logger;
    }

    long connectNs() {
        return connectTimeout.toNanos();
    }

    long requestNs() {
        return requestTimeout.toNanos();
    }

    long suspectAfterNs() {
        return suspectAfter.toNanos();
    }

    long tableEveryNs() {
        return tableEvery.toNanos();
    }

    long retryMaxNs() {
        return retryMax.toNanos();
    }
}
