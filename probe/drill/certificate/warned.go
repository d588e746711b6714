package certificate

import (
	"sort"
	"time"

	"github.com/ordergrid/ordergrid/probe/drill/history"
	"github.com/ordergrid/ordergrid/probe/drill/validate"
	"github.com/ordergrid/ordergrid/probe/load"
)

// noticed is how long after an acknowledgement the recorder may have needed to see
// that the grid says it is not redundant: it asks many times a second, but may
// itself be kept from running.
const noticed = int64(time.Second)

// warnedLosses are the lost orders whose loss the grid had warned of. All of this
// must hold:
//
//   - the grid is to hold more than one copy; one that is made with one copy is not
//     excused, whoever made it so was warned by its spec only;
//   - the order's own receipt said that one process holds it;
//   - the grid itself said, in the table it gives to every client, that the partition has
//     fewer copies than it is to have, in a time that the acknowledgement lies in or
//     that began within a second after it;
//   - it said so before the next fault began, so that whoever looks could have stopped;
//     where none came after it, before the acknowledgement.
func warnedLosses(h *history.History, lost []validate.Order) map[validate.Order]bool {
	out := map[validate.Order]bool{}
	if h.Replicas < 2 {
		return out
	}
	var faults []int64 // when they began; Reps stand in that order
	for i := range h.Reps {
		faults = append(faults, h.Reps[i].From)
	}
	for _, at := range lost {
		s := &h.Streams[at.Stream]
		o := &s.Orders[at.Index]
		next := o.T3 + 1
		if i := sort.Search(len(faults), func(i int) bool { return faults[i] > o.T3 }); i < len(faults) {
			next = faults[i]
		}
		if o.Copies == 1 && said(h, s, o, next) {
			out[at] = true
		}
	}
	return out
}

func said(h *history.History, s *history.Stream, o *load.Order, before int64) bool {
	for _, d := range h.Degraded {
		if d.Partition == s.Partition && d.From <= o.T3+noticed && (d.To == 0 || d.To >= o.T3) && d.From < before {
			return true
		}
	}
	return false
}
