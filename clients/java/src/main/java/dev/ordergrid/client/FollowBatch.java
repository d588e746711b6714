package dev.ordergrid.client;

import java.util.List;

/**
 * A part of a partition's log.
 *
 * @param partition it is of
 * @param from      first entry that was examined: the one behind the batch before
 * @param through   last one: where to go on
 * @param commitSeq committed prefix of the replica that sent it
 * @param address   of that replica
 * @param entries   those the filter let through, by seq
 */
public record FollowBatch(int partition, long from, Position through, long commitSeq, String address, List<LogEntry> entries) {}
