package metrics

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/ordergrid/ordergrid/grid-node/region"
	"github.com/ordergrid/ordergrid/grid-node/replica"
)

// Regions are those of a partition, with what they take together; nil without.
type Regions struct {
	Used, Limit uint64 // bytes of all, with what clients have taken and not received
	List        []replica.RegionUse
}

var (
	regionEntries = desc("region_entries", "Entries of a region that this copy of the partition has; absent without regions.", "partition", "region")
	regionBytes   = desc("region_bytes", "Memory that the entries of a region take, in blocks of 128 bytes; absent without regions.", "partition", "region")
	regionLimit   = desc("region_limit_bytes", "What they may take in the partition; absent for a region without a bound of its own.", "partition", "region")
	regionFull    = desc("region_full", "1 while the change that the primary refused last for want of memory would be refused still; 0 on a backup. Absent without regions.", "partition", "region")
	regionsUsed   = desc("regions_bytes", "Memory that all regions of the partition take, with values that were taken and not received yet; absent without regions.", "partition")
	regionsLimit  = desc("regions_limit_bytes", "What all regions of the partition may take; absent without regions.", "partition")
	regionOps     = desc("region_operations_total", "Operations on a region that were decided or read here, by outcome: done, condition_failed, full (no memory for it), invalid (a patch that does not fit). Begins anew when a copy does; absent for what there was none of.", "region", "operation", "outcome")
	regionExpired = desc("region_expired_total", "Entries of a region that this copy has removed because their time was over. Begins anew when a copy does; absent without regions.", "partition", "region")

	regionDescs = []*prometheus.Desc{regionEntries, regionBytes, regionLimit, regionFull, regionsUsed, regionsLimit, regionOps, regionExpired}
)

// regions of all partitions. Operations are summed over them: a client does not choose the partition of a key.
func (e emitter) regions(partitions []Partition) {
	type key struct {
		region    string
		operation replica.RegionOperation
		outcome   replica.RegionOutcome
	}
	sums := map[key]uint64{}
	for i := range partitions {
		p := &partitions[i]
		if p.Regions == nil {
			continue
		}
		e.gauge(regionsUsed, float64(p.Regions.Used), p.Name)
		e.gauge(regionsLimit, float64(p.Regions.Limit), p.Name)
		for j := range p.Regions.List {
			u := &p.Regions.List[j]
			e.gauge(regionEntries, float64(u.Entries), p.Name, u.Name)
			e.gauge(regionBytes, float64(u.Blocks*region.BlockSize), p.Name, u.Name)
			if u.MaxBytes > 0 {
				e.gauge(regionLimit, float64(u.MaxBytes), p.Name, u.Name)
			}
			e.gauge(regionFull, b2f(u.Full), p.Name, u.Name)
			e.counter(regionExpired, u.Expired, p.Name, u.Name)
			for o := range u.Counts.Ops {
				for c, n := range u.Counts.Ops[o] {
					if n > 0 {
						sums[key{u.Name, replica.RegionOperation(o), replica.RegionOutcome(c)}] += n
					}
				}
			}
		}
	}
	for k, n := range sums {
		e.counter(regionOps, n, k.region, k.operation.String(), k.outcome.String())
	}
}
