package dev.ordergrid.client;

/**
 * A replica of a partition.
 *
 * @param id      {@code <pod>/<bootID>}; a process that starts again has another one
 * @param address {@code ip:port}, empty if it cannot be reached from here
 * @param inSync  false: it is catching up, and serves reads of mode BACKUP only
 */
public record Member(String id, String address, boolean inSync) {}
