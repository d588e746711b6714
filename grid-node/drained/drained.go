// Package drained judges whether a partition that takes no more orders may be given up: docs/replication.md, Closed. The
// operator goes by it, and so does the one of the simulator.
package drained

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/ordergrid/ordergrid/grid-node/arbiter"
	"github.com/ordergrid/ordergrid/grid-node/nodestatus"
)

// Terms on which a partition is given up.
type Terms struct {
	Revision uint64        // of the decision that closed it
	Keep     time.Duration // for so long it stays closed and answers before that, by its primary's clock
	Discard  bool          // what no sink holds is given up with it
}

// Verdict on one partition.
type Verdict struct {
	Waits   string // what has to happen yet, for people; "": it may be given up
	Entries uint64 // that it took; 0 unless its primary was heard
	Last    uint64 // number of the last entry of its primary; 0 unless that was heard
	Left    uint64 // of those, that its sink does not hold
}

// Judge goes by the record, read from the arbiter itself, and by what the processes in the pods of its shard answered when
// they were asked after that; nil: no answer. Every process that could become primary has to have heard that the
// partition is closed: then nothing can be added to what the present primary says. That holds for as long as the record
// is not changed, so Retired is written over the version of the record that was judged, and over no other.
func Judge(rec *arbiter.Record, nodes map[string]*nodestatus.Node, t Terms) (v Verdict) {
	if rec.Spec.Layout.Revision != t.Revision || rec.Spec.Admission != arbiter.AdmissionDraining {
		v.Waits = rec.Name + " has not been told"
		return v
	}
	if v.Waits = unheard(rec, nodes); v.Waits != "" || rec.Primary.ID == "" { // nobody ever had it: there is nothing in it
		return v
	}
	q := nodes[rec.Primary.PodName].Find(rec.Name)
	if q.Role != "primary" || q.Epoch != rec.Epoch || q.Suspended {
		v.Waits = fmt.Sprintf("the primary of %s is being changed", rec.Name)
		return v
	}
	v.Entries, v.Last = q.DataSeq-min(q.DataSeq, max(rec.Spec.FirstSeq, 1)-1), q.LastSeq
	if q.DataSeq > q.CursorSeq {
		v.Left = q.DataSeq - q.CursorSeq
	}
	switch closedFor := time.Duration(q.ClosedForNs); {
	case q.CommitSeq != q.LastSeq:
		v.Waits = rec.Name + " has orders under way"
	case !q.Drained() && !t.Discard:
		v.Waits = fmt.Sprintf("%s holds %d entries that its sink does not", rec.Name, v.Left)
	case closedFor < t.Keep:
		v.Waits = fmt.Sprintf("%s answers reads and repeated orders for %v more", rec.Name, (t.Keep - closedFor).Round(time.Second))
	}
	return v
}

// unheard says who has not heard of the decision, or cannot say so.
func unheard(rec *arbiter.Record, nodes map[string]*nodestatus.Node) string {
	for _, pod := range slices.Sorted(maps.Keys(nodes)) {
		if nodes[pod] == nil {
			continue
		}
		if q := nodes[pod].Find(rec.Name); q == nil || !q.Closed || q.AdmissionRevision != rec.Spec.Layout.Revision {
			return fmt.Sprintf("%s has not heard that %s takes no more orders", pod, rec.Name)
		}
	}
	for _, m := range rec.InSync {
		if nodes[m.PodName] == nil {
			return fmt.Sprintf("%s, which holds a copy of %s, does not answer", m.PodName, rec.Name)
		}
		if nodes[m.PodName].Find(rec.Name).Member != m.ID {
			return fmt.Sprintf("%s is not the process that the record of %s names", m.PodName, rec.Name)
		}
	}
	return ""
}
