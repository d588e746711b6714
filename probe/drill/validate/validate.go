// Package validate judges a history: whether all acknowledged orders are there, once, in order, in
// every copy and downstream; whether the clients' observations can be explained; and the length of
// outages. It needs no grid. Linearizability of one order is package internal/linear, which the simulator uses too; model.go
// turns a history into its operations, and adds the guarantees across orders.
package validate

import (
	"fmt"

	"github.com/ordergrid/ordergrid/grid-node/wire"
	"github.com/ordergrid/ordergrid/internal/linear"
	"github.com/ordergrid/ordergrid/probe/drill/history"
	"github.com/ordergrid/ordergrid/probe/load"
)

// Result of Check.
type Result struct {
	Orders     Orders
	Partitions []Partition
	Model      Model
	// Violations are violated guarantees, in words; the first of each kind.
	Violations []string
	// Unread are copies and files that could not be read. With one of them, nothing is proved.
	Unread  []string
	Example []linear.Op // for a picture
}

// Orders by fate, of the sessions and of the direct probers.
type Orders struct {
	Created, Acked, Refused, Unknown, Unsent int64
	Direct, DirectAcked                      int64
}

// Failed are the orders of the sessions that were not acknowledged.
func (o Orders) Failed() int64 { return o.Created - o.Acked }

// Partition is the result for one partition.
type Partition struct {
	ID         wire.PartitionID
	Epoch      uint64 // of the last entry
	Entries    uint64 // of the longest committed log
	Copies     int    // logs compared
	Lost       int64  // acknowledged and not in a log
	Duplicates int64  // duplicated orders or sequence numbers
	Gaps       int64
	Downstream int64 // orders in the sinks
	LostSunk   int64 // acknowledged and in no sink
	Repeats    int64 // entries that several sink files hold, equal: written again around a failover
	Found      int64 // orders without an answer that are in the log
	Control    bool  // the negative control found its modifications
}

// OK reports whether no guarantee was violated and everything could be read.
func (r *Result) OK() bool { return len(r.Violations) == 0 && len(r.Unread) == 0 }

// maxPerKind bounds how many violations of a kind are put in words.
const maxPerKind = 5

// Check judges h.
func Check(h *history.History) *Result {
	r := &Result{Orders: count(h)}
	for _, p := range h.Partitions {
		r.Partitions = append(r.Partitions, r.partition(h, p))
	}
	r.Model = CheckModel(h)
	r.say(r.Model.Violations...)
	r.Example = r.Model.Example
	return r
}

// findings of one kind: the first in words, however many a broken grid has.
type findings struct {
	words []string
	more  int
}

func (f *findings) add(is bool, words func() string) {
	switch {
	case !is:
	case len(f.words) < maxPerKind:
		f.words = append(f.words, words())
	default:
		f.more++
	}
}

func (r *Result) found(f findings) {
	r.Violations = append(r.Violations, f.words...)
	if f.more > 0 {
		r.Violations = append(r.Violations, fmt.Sprintf("and %d more of this kind", f.more))
	}
}

func (r *Result) say(violations ...string) {
	r.Violations = append(r.Violations, violations[:min(len(violations), maxPerKind)]...)
	if more := len(violations) - maxPerKind; more > 0 {
		r.Violations = append(r.Violations, fmt.Sprintf("and %d more of this kind", more))
	}
}

func count(h *history.History) (o Orders) {
	for i := range h.Streams {
		s := &h.Streams[i]
		for j := range s.Orders {
			fate := s.Orders[j].Fate
			if s.Node >= 0 {
				o.Direct++
				if fate == load.Acked {
					o.DirectAcked++
				}
				continue
			}
			o.Created++
			switch fate {
			case load.Acked:
				o.Acked++
			case load.Rejected:
				o.Refused++
			case load.Unknown:
				o.Unknown++
			default:
				o.Unsent++
			}
		}
	}
	return o
}
