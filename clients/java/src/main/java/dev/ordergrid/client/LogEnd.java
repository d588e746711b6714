package dev.ordergrid.client;

/**
 * Where a replica's log stood when a read of it ended.
 *
 * @param address   of the replica
 * @param epoch     of its configuration
 * @param commitSeq its committed prefix
 * @param lastSeq   last entry it stores, committed or not
 * @param lastHash  hash of that entry
 * @param nextSeq   first entry that was not read
 */
public record LogEnd(String address, long epoch, long commitSeq, long lastSeq, long lastHash, long nextSeq) {}
