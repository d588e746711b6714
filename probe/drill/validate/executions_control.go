package validate

import (
	"cmp"
	"maps"
	"slices"

	"github.com/ordergrid/ordergrid/grid-node/match"
	"github.com/ordergrid/ordergrid/grid-node/match/replay"
	"github.com/ordergrid/ordergrid/grid-node/wire"
)

func sorted[K cmp.Ordered, V any](m map[K]V) []K { return slices.Sorted(maps.Keys(m)) }

// forgery is what the control does to two trades of an entry, four records from at on. sums tells
// that the account has to find it alone, without the order of price and time.
type forgery struct {
	sums bool
	do   func(did []match.Record, at int) []match.Record
}

var forgeries = []forgery{
	{true, func(did []match.Record, at int) []match.Record { return slices.Delete(did, at, at+2) }},
	{true, func(did []match.Record, at int) []match.Record { return slices.Insert(did, at, did[at], did[at+1]) }},
	{false, func(did []match.Record, at int) []match.Record {
		did[at], did[at+1], did[at+2], did[at+3] = did[at+2], did[at+3], did[at], did[at+1]
		return did
	}},
	{true, func(did []match.Record, at int) []match.Record { did[at].Owner++; return did }},
}

// executionControl keeps an account for each forgery of one copy.
type executionControl struct {
	from   uint64 // the first entry from here on that trades twice is forged
	forged bool
	fills  []*replay.Fills
	seen   []bool // by the order of price and time
}

func newExecutionControl(from uint64) *executionControl {
	c := &executionControl{from: from, seen: make([]bool, len(forgeries))}
	for range forgeries {
		c.fills = append(c.fills, replay.NewFills())
	}
	return c
}

func (c *executionControl) entry(p wire.PartitionID, seq uint64, did, want []match.Record) {
	at := -1
	if !c.forged && seq >= c.from {
		at = twoTrades(did)
	}
	for i, f := range forgeries {
		said := did
		if at >= 0 {
			c.forged = true
			said = f.do(slices.Clone(did), at)
			n, _ := replay.Difference(said, want)
			c.seen[i] = n > 0
		}
		for n := range said {
			r := said[n] // the account keeps it
			c.fills[i].Add(name(p, seq, n+1), &r)
		}
	}
}

// twoTrades finds two trades of one entry, -1 if there are none.
func twoTrades(did []match.Record) int {
	for at := range did {
		if at+3 >= len(did) {
			break
		}
		if !slices.ContainsFunc(did[at:at+4], func(r match.Record) bool { return r.Kind != match.Filled }) {
			return at
		}
	}
	return -1
}

// finish returns how many forgeries there were, and how many were found.
func (c *executionControl) finish(resting []uint64) (done, found int64) {
	if !c.forged {
		return 0, 0
	}
	for i, f := range forgeries {
		done++
		if wrong, _ := c.fills[i].Finish(resting); c.seen[i] && (!f.sums || wrong > 0) {
			found++
		}
	}
	return done, found
}
