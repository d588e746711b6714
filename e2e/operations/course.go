// Package operations carries out, on a real cluster and under orders, what a grid goes through in its life: an update, a
// node that is drained, a version that never works, and what else is in TestOperations. Of each it keeps a certificate of
// the orders and a plot of their latency over time, below out/operations.
//
// `make e2e SUITE=operations` runs all of it, `make e2e SUITE=node-drain` one part. `go run ./e2e/operations/cmd/operations
// DIR...` draws and tells again from what was kept.
package operations

import (
	"cmp"
	"time"

	"github.com/ordergrid/ordergrid/probe/drill/history"
	"github.com/ordergrid/ordergrid/probe/drill/validate"
	"github.com/ordergrid/ordergrid/probe/load"
)

// Course is the latency of orders over time, and the operations during it. Times are since the start of the orders.
type Course struct {
	Title   string
	Step    time.Duration // width of a moment
	Moments []Moment      // those that had orders, by time
	Acts    []Act
	Created int64
	Failed  int64 // not acknowledged
}

// Moment is the orders that were created in one stretch of time.
type Moment struct {
	At             time.Duration
	Orders, Failed int64
	validate.Spread
}

// Act is something that was done to the grid.
type Act struct {
	What      string
	From, To  time.Duration
	Redundant time.Duration   // all copies in sync again; 0: never
	Changes   []time.Duration // of primaries and members, as the nodes tell
}

// longest course that is looked at: a history may come from anywhere.
const longest = 24 * time.Hour

// CourseOf a history, in steps.
func CourseOf(h *history.History, title string, step time.Duration) *Course {
	c := &Course{Title: title, Step: step}
	at := func(ns int64) time.Duration { return time.Duration(ns - h.StartedAt) }
	var moments []Moment
	var latencies [][]time.Duration
	for s := range h.Streams {
		if h.Streams[s].Node >= 0 {
			continue // it asks one node only: its rejection is correct
		}
		for i := range h.Streams[s].Orders {
			o := &h.Streams[s].Orders[i]
			created := at(o.T1)
			if created < 0 || created >= longest {
				continue
			}
			n := int(created / step)
			for len(moments) <= n {
				moments = append(moments, Moment{At: time.Duration(len(moments)) * step})
				latencies = append(latencies, nil)
			}
			c.Created++
			moments[n].Orders++
			if o.Fate != load.Acked {
				c.Failed++
				moments[n].Failed++
				continue
			}
			latencies[n] = append(latencies[n], max(time.Duration(o.T3-o.T1), 0))
		}
	}
	for i := range moments {
		if moments[i].Orders > 0 {
			moments[i].Spread = validate.SpreadOf(latencies[i])
			c.Moments = append(c.Moments, moments[i])
		}
	}
	for i := range h.Reps {
		c.Acts = append(c.Acts, actOf(h, i, at))
	}
	return c
}

func actOf(h *history.History, i int, at func(int64) time.Duration) Act {
	rep := &h.Reps[i]
	a := Act{What: rep.What, From: at(rep.From), To: at(max(rep.To, rep.Healed))}
	if rep.Redundant > 0 {
		a.Redundant = at(rep.Redundant)
	}
	if h.Drill != nil {
		for _, change := range h.Drill.Faults[i].Changes {
			if t := cmp.Or(change.Accepted, change.Proposed); t > 0 {
				a.Changes = append(a.Changes, at(t))
			}
		}
	}
	return a
}
