package ordergrid

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/ordergrid/ordergrid/api/v1alpha1"
	"github.com/ordergrid/ordergrid/grid-node/nodestatus"
)

// coarseUse has figures of two significant digits, since each other figure is a write of status.
func coarseUse(use []nodestatus.RegionUse) []nodestatus.RegionUse {
	use = slices.Clone(use)
	for i := range use {
		use[i].Entries, use[i].Bytes = twoDigits(use[i].Entries), twoDigits(use[i].Bytes)
	}
	return use
}

// twoDigits rounds up, so that what is there is never 0.
func twoDigits(n uint64) uint64 {
	unit := uint64(1)
	for n > 99 {
		n, unit = (n+9)/10, unit*10
	}
	return n * unit
}

// regionUse sums what the primaries of all partitions report of their regions; nil without spec.regions. A region that one
// partition refuses changes of is refused, and one is taken only when all have said so.
func (o *observation) regionUse() []api.RegionUse {
	if o.grid.Spec.Regions == nil {
		return nil
	}
	sums, partitions, full := map[string]*api.RegionUse{}, map[string]int{}, map[string][]string{}
	for _, pod := range slices.Sorted(maps.Keys(o.room.regions)) {
		for _, u := range o.room.regions[pod].Use {
			if sums[u.Name] == nil {
				sums[u.Name] = &api.RegionUse{Name: u.Name}
			}
			s := sums[u.Name]
			s.Entries, s.Bytes = s.Entries+int64(u.Entries), s.Bytes+int64(u.Bytes)
			partitions[u.Name] += u.Partitions
			full[u.Name] = append(full[u.Name], u.Full...)
		}
	}
	accepting := judgeAccepting(o)
	var list []api.RegionUse
	for _, name := range slices.Sorted(maps.Keys(sums)) {
		s := sums[name]
		s.Entries, s.Bytes = int64(twoDigits(uint64(s.Entries))), int64(twoDigits(uint64(s.Bytes)))
		slices.Sort(full[name])
		switch {
		case len(full[name]) > 0:
			s.Writes = api.RegionWritesRefused
			s.Message = fmt.Sprintf("no memory for more in partitions %s: raise spec.maxBytes of the GridRegion or spec.regions.memory, or remove entries", strings.Join(full[name][:min(len(full[name]), nodestatus.MaxFull)], ", "))
		case accepting.status == metav1.ConditionFalse:
			s.Writes, s.Message = api.RegionWritesRefused, fmt.Sprintf("see condition %s of the grid: %s", api.ConditionAcceptingOrders, accepting.reason)
		case accepting.status != metav1.ConditionTrue || !o.room.all || partitions[name] < o.wantPartitions():
			s.Writes, s.Message = api.RegionWritesUnknown, fmt.Sprintf("%d of %d partitions have reported", partitions[name], o.wantPartitions())
		default:
			s.Writes = api.RegionWritesTaken
		}
		list = append(list, *s)
	}
	return list[:min(len(list), 64)]
}
