package validate

import (
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/ordergrid/ordergrid/grid-node/wire"
	"github.com/ordergrid/ordergrid/probe/drill/history"
	"github.com/ordergrid/ordergrid/probe/load"
)

// Control is the negative control of Accounts: the same logs and sinks, with Dropped orders removed
// from all of them and Repeated ones duplicated, are judged the same way. A judge that does not
// find exactly these proves nothing.
type Control struct {
	Dropped, Repeated int64 // done to the logs
	Lost, Duplicated  int64 // found in addition to the original findings
	Gaps              int64
}

// OK reports whether the judge found the modifications, and nothing else.
func (c Control) OK() bool {
	return c.Dropped > 0 && c.Lost == c.Dropped && c.Duplicated == c.Repeated && c.Gaps == c.Dropped
}

func (c Control) String() string {
	return fmt.Sprintf("with %d orders removed from every copy and sink and %d duplicated, %d more were found lost and %d duplicated", c.Dropped, c.Repeated, c.Lost, c.Duplicated)
}

// NegativeControl removes up to k orders and repeats up to m others, chosen by the seed among the
// acknowledged ones that are in all places, once.
func NegativeControl(h *history.History, real *Accounts, k, m int, seed uint64) Control {
	chosen := candidates(h, k+m, rand.New(rand.NewPCG(seed, 0x6e656761)))
	if len(chosen) < k+m { // a short history
		k = (len(chosen) + 1) / 2
	}
	e := edit{drop: map[Order]bool{}, repeat: map[Order]bool{}}
	for i, o := range chosen {
		if i < k {
			e.drop[o] = true
		} else if i < k+m {
			e.repeat[o] = true
		}
	}
	got := take(h, e)
	return Control{Dropped: int64(len(e.drop)), Repeated: int64(len(e.repeat)), Lost: int64(len(got.Lost) - len(real.Lost)),
		Duplicated: got.Duplicated - real.Duplicated, Gaps: got.Gaps - real.Gaps}
}

// candidates draws n orders, fewer if there are not enough.
func candidates(h *history.History, n int, rng *rand.Rand) (out []Order) {
	usable := everywhereOnce(h)
	total := 0
	for s := range usable {
		for _, ok := range usable[s] {
			if ok {
				total++
			}
		}
	}
	// One pass, each order with the probability that fills the remainder.
	left := min(n, total)
	for s := range usable {
		for i, ok := range usable[s] {
			if !ok {
				continue
			}
			if rng.IntN(total) < left {
				out, left = append(out, Order{s, int64(i)}), left-1
			}
			total--
		}
	}
	rng.Shuffle(len(out), func(i, j int) { out[i], out[j] = out[j], out[i] })
	return out
}

// once counts, for every order of the history, the copies that have it at its place; never is an
// order that is duplicated or misplaced anywhere. The first and the last entry of a log are
// excluded, so that a removed order leaves a gap.
const never = 1 << 15

func once(h *history.History) (have [][]uint16, copies map[wire.PartitionID]uint16) {
	copies, have = map[wire.PartitionID]uint16{}, make([][]uint16, len(h.Streams))
	for s := range h.Streams {
		have[s] = make([]uint16, len(h.Streams[s].Orders))
	}
	for i := range h.Logs {
		l := &h.Logs[i]
		if l.Error != "" || len(l.Entries) == 0 {
			continue
		}
		copies[l.Partition]++
		for k := range l.Entries {
			e := &l.Entries[k]
			if e.Stream < 0 || e.Index >= int64(len(have[e.Stream])) {
				continue
			}
			if of := &have[e.Stream][e.Index]; e.Corrupt || h.Streams[e.Stream].Orders[e.Index].Seq != e.Seq || k == 0 || k == len(l.Entries)-1 {
				*of = never
			} else {
				*of++
			}
		}
	}
	return have, copies
}

// everywhereOnce marks the acknowledged orders that are at their place in every copy
// that has anything, and downstream, and nowhere else.
func everywhereOnce(h *history.History) [][]bool {
	have, copies := once(h)
	sunk, highest, judged := seen(h), map[wire.PartitionID]uint64{}, map[wire.PartitionID]bool{}
	for i := range h.Sinks {
		for k := range h.Sinks[i].Entries {
			highest[h.Sinks[i].Partition] = max(highest[h.Sinks[i].Partition], h.Sinks[i].Entries[k].Seq)
		}
	}
	for _, p := range h.Partitions {
		judged[p] = h.NoHolder(p) || slices.ContainsFunc(h.Logs, func(l history.Log) bool { return l.Partition == p && l.Error == "" && l.InSync })
	}
	out := make([][]bool, len(h.Streams))
	for s := range h.Streams {
		stream := &h.Streams[s]
		n, down := copies[stream.Partition], sunk[s] != nil
		out[s] = make([]bool, len(stream.Orders))
		for i := range stream.Orders {
			o := &stream.Orders[i]
			// Where no process holds the log any more, only the downstream orders are left.
			out[s][i] = o.Fate == load.Acked && judged[stream.Partition] && (n > 0 || down) && have[s][i] == n && (!down || sunk[s][i] && o.Seq < highest[stream.Partition])
		}
	}
	return out
}

// seen marks what is downstream, of streams whose partition has something there.
func seen(h *history.History) [][]bool {
	out := make([][]bool, len(h.Streams))
	for i := range h.Sinks {
		f := &h.Sinks[i]
		for s := range h.Streams {
			if h.Streams[s].Partition == f.Partition && out[s] == nil {
				out[s] = make([]bool, len(h.Streams[s].Orders))
			}
		}
		for j := range f.Entries {
			if e := &f.Entries[j]; e.Stream >= 0 && out[e.Stream] != nil && e.Index < int64(len(out[e.Stream])) {
				out[e.Stream][e.Index] = true
			}
		}
	}
	return out
}
