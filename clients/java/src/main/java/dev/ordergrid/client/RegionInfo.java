package dev.ordergrid.client;

import java.time.Duration;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;

/**
 * A region of the grid: the sum of its partitions.
 *
 * @param name     of the region
 * @param entries  that it has
 * @param bytes    that they take, in blocks
 * @param maxBytes that they may take, 0: what all regions together may
 * @param life     of a value whose put names no other; empty: for ever
 */
public record RegionInfo(String name, long entries, long bytes, long maxBytes, Optional<Duration> life) {
    static List<RegionInfo> of(GridClient client) {
        Map<String, RegionInfo> found = new LinkedHashMap<>();
        for (int i = 0; i < client.directory.table().parts.length; i++) {
            int p = i;
            Reads.Answer<RegionFrames.Listed> answer = client.reads.retry(p, false, (a, addr) -> client.callers.call(addr, a,
                    (out, id) -> out.request(Wire.REGION_LIST, p, id), RegionFrames::listed));
            for (RegionFrames.Info r : answer.m().list()) {
                RegionInfo one = new RegionInfo(r.name(), r.entries(), r.bytes(), r.maxBytes(),
                        r.lifeNs() > 0 ? Optional.of(Duration.ofNanos(r.lifeNs())) : Optional.empty());
                found.merge(r.name(), one, RegionInfo::plus);
            }
        }
        return List.copyOf(found.values());
    }

    private RegionInfo plus(RegionInfo o) {
        return new RegionInfo(name, entries + o.entries, bytes + o.bytes, maxBytes + o.maxBytes, life);
    }
}
