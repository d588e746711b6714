package certificate

import (
	"sort"
	"time"

	"github.com/ordergrid/ordergrid/probe/drill/history"
	"github.com/ordergrid/ordergrid/probe/drill/validate"
	"github.com/ordergrid/ordergrid/probe/load"
)

// noticed is the time the recorder may have needed after an acknowledgement to see that the grid
// reports missing copies: it polls many times a second, but may be delayed itself.
const noticed = int64(time.Second)

// warnedLosses are the lost orders whose loss the grid had warned of. All of these must hold:
//
// - the grid is configured with more than one copy;
//
// - the order's own receipt named one process;
//
// - the grid itself reported, in the table it gives to every client, that the partition has fewer
// copies than configured, in a time that includes the acknowledgement or that began within a second
// after it;
//
// - it reported so before the next fault began, so that an observer could have stopped; without a
// later fault, before the acknowledgement.
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
		if o.Copies == 1 && warned(h, s, o, next) {
			out[at] = true
		}
	}
	return out
}

func warned(h *history.History, s *history.Stream, o *load.Order, before int64) bool {
	for _, d := range h.Degraded {
		if d.Partition == s.Partition && d.From <= o.T3+noticed && (d.To == 0 || d.To >= o.T3) && d.From < before {
			return true
		}
	}
	return false
}
