package sim

import (
	"strings"
	"testing"

	"github.com/ordergrid/ordergrid/grid-node/match"
	"github.com/ordergrid/ordergrid/grid-node/order"
	"github.com/ordergrid/ordergrid/internal/race"
)

// TestMatchSeeds runs the world match: some seeds that are the same each time, some new
// ones.
func TestMatchSeeds(t *testing.T) {
	m := Many{World: WorldMatch, Seeds: uint64(len(shapes)), FreshFrom: NewFrom(), Fresh: uint64(len(shapes)), StopAfter: 3}
	switch {
	case race.Enabled:
		m.Seeds, m.Fresh = 4, 0
	case testing.Short():
		m.Fresh = 0
	}
	sum := m.Run()
	for _, r := range sum.Failed {
		t.Errorf("seed %d (%s): %v\nreplay: %s", r.Seed, r.Profile, r.Violation, ReplayMatch(r.Seed))
	}
	if s := &sum.Stats; !race.Enabled && (s.Fills == 0 || s.FixMasses == 0 || s.FixCopies == 0 || s.FixSwept == 0 || s.Lapses == 0 || s.LapsesAwaited == 0 || s.Executions == 0 || s.Taped == 0 || s.Books == 0 || s.BookOrders == 0 || s.BookStates == 0 || s.Snapshots == 0 || s.Freed == 0 || s.Failovers == 0 || s.Killed == 0 || s.KillCounts == 0 || s.Bands == 0 || s.Banned == 0) {
		t.Errorf("no work was done in %d seeds: %+v", sum.Seeds, *s)
	}
}

// TestMatchSeedsThatFailed runs seeds that once found a bug, and the bug.
func TestMatchSeedsThatFailed(t *testing.T) {
	notUnderRace(t)
	for seed, bug := range map[uint64]string{
		61629843: "a record that the simulator had spoiled books make was none of those that are held",
		80094084: "a process of the release before alone held the orders when faults ended, and was never updated",
	} {
		if r := RunMatch(seed, nil); r.Violation != nil {
			t.Errorf("seed %d (%s): %v\nreplay: %s", seed, bug, r.Violation, ReplayMatch(seed))
		}
	}
}

// TestJudge: the judge sees a trade that is not with the best order, and one at another
// price.
func TestJudge(t *testing.T) {
	var j judge
	seq := uint64(0)
	do := func(i order.Instruction, records ...match.Record) string {
		seq++
		for n := range records {
			if records[n].Order == 0 {
				records[n].Order = seq
			}
		}
		return j.entry(&order.Entry{Kind: order.KindExecute, Seq: seq}, i.Append(nil), records)
	}
	define := order.Market{Op: order.MarketDefine, Symbol: []byte("A"), Values: [5]uint64{1, 1, 0, 100}}
	seq++
	if text := j.entry(&order.Entry{Kind: order.KindMarket, Seq: seq}, define.Append(nil), []match.Record{{Kind: match.StateChanged, Flags: uint8(match.Open)}}); text != "" {
		t.Fatal(text)
	}
	sell := order.Instruction{Op: order.InstructEnter, Side: 2, Type: 1, Price: 5, Qty: 10, Owner: 1}
	for range 2 {
		if text := do(sell, match.Record{Kind: match.Accepted}); text != "" {
			t.Fatal(text)
		}
	}
	buy := order.Instruction{Op: order.InstructEnter, Side: 1, Type: 1, Price: 6, Qty: 10, Owner: 2}
	trade := func(maker uint64, price int64) []match.Record {
		return []match.Record{
			{Kind: match.Accepted}, {Kind: match.Filled, Other: maker, Price: price, Qty: 10, Cum: 10},
			{Kind: match.Filled, Order: maker, Other: seq + 1, Price: price, Qty: 10, Cum: 10, Flags: match.Passive},
		}
	}
	before := j.orders
	for want, records := range map[string][]match.Record{
		"the best by price":      trade(3, 5),
		"want 10 at 5":           trade(2, 6),
		"rests, and could trade": {{Kind: match.Accepted}},
	} {
		j.orders = map[uint64]*judged{}
		for id, o := range before {
			kept := *o
			j.orders[id] = &kept
		}
		at := seq
		if text := do(buy, records...); !strings.Contains(text, want) {
			t.Errorf("%s, want %q", text, want)
		}
		seq = at
	}
}
