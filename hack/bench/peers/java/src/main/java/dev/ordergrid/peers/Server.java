package dev.ordergrid.peers;

import java.io.PrintStream;

/** One server process: says "ready" on its standard output when it serves, and runs until it is killed. */
public final class Server {
    private Server() {}

    public static void main(String[] args) throws Exception {
        PrintStream out = System.out;
        System.setOut(System.err); // what peers log is no part of what we say
        try {
            Options options = new Options(args);
            Peer.of(options.text("peer")).serve(Servers.parse(options.text("servers")), options.number("own"));
        } catch (Throwable e) {
            e.printStackTrace();
            Runtime.getRuntime().halt(1); // threads of the peer would keep the process
        }
        out.println("ready");
        out.flush();
        Thread.currentThread().join();
    }
}
