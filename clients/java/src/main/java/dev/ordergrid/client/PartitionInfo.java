package dev.ordergrid.client;

import java.util.List;

/**
 * What the client knows of a partition.
 *
 * @param partition its number, 0 to 1,023
 * @param epoch     of its configuration; 0: no node has reported it
 * @param lineage   rises when a loss of data is accepted
 * @param primary   the replica that takes orders; null if there is none at present
 * @param members   all replicas, those in sync first
 */
public record PartitionInfo(int partition, long epoch, long lineage, Member primary, List<Member> members) {
    /** Address of the primary, empty if there is none. */
    String primaryAddress() {
        return primary == null ? "" : primary.address();
    }

    boolean known() {
        return epoch != 0 || !members.isEmpty();
    }
}
