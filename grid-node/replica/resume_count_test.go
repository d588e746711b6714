package replica

import (
	"testing"

	"github.com/ordergrid/ordergrid/grid-node/machine"
	"github.com/ordergrid/ordergrid/grid-node/match"
	"github.com/ordergrid/ordergrid/grid-node/order"
	"github.com/ordergrid/ordergrid/grid-node/store"
)

// TestResumedEntriesAreNotCounted: a primary that was restarted in its place commits the entries of
// its journal again. What they did was counted before; what comes behind them is.
func TestResumedEntriesAreNotCounted(t *testing.T) {
	alone := func() *Replica {
		t.Helper()
		st, err := store.New(store.Options{})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(st.Close)
		self := memberOf(t, "a", 1)
		r, err := New(Options{Self: self, Store: st, Replicas: 1, MinInSync: 1, Journal: &Journal{}, Execution: &Execution{Orders: 16, Books: 1, Work: 4, Instruments: []machine.Instrument{
			{Instrument: match.Instrument{Low: 1, High: 100, Ref: 50, Tick: 1, Lot: 1}, Symbol: "IBM", State: match.Open}}}})
		if err != nil {
			t.Fatal(err)
		}
		r.out = &Outbox{}
		r.epoch, r.cfg = 1, &Config{Epoch: 1, Primary: self, InSync: []Member{self}}
		return r
	}
	commit := func(r *Replica) {
		r.journal.Seq, _ = r.store.Last()
		r.advance()
	}
	halt := func(r *Replica) {
		t.Helper()
		r.role = RolePrimary
		for _, s := range []match.State{match.Halted, match.Open} {
			if err := r.logMarket(&order.Market{Op: order.MarketApply, Kind: uint8(match.SetState), State: uint8(s)}, pending{}); err != nil {
				t.Fatal(err)
			}
			commit(r)
		}
	}
	first := alone()
	first.role = RolePrimary
	first.logExecution()
	halt(first)
	changed := func(r *Replica) uint64 { return r.count.Executions.Kinds[match.StateChanged] }
	if changed(first) < 2 {
		t.Fatalf("%d changes of a state were counted, want 2 or more", changed(first))
	}

	second := alone()
	last, _ := first.store.Last()
	var log []byte
	for seq := uint64(1); seq <= last; seq++ {
		e := first.store.Get(seq)
		log = append(log, e...)
		log = append(log, make([]byte, order.Padded(len(e))-len(e))...)
	}
	if err := second.ResumeEntries(log); err != nil {
		t.Fatal(err)
	}
	cfg := second.cfg
	second.Resume(Heritage{Config: cfg, Life: 1, Heir: true})
	second.role = RolePrimary
	commit(second)
	if second.commit != last || changed(second) != 0 {
		t.Errorf("%d entries of %d are committed again, and %d changes of a state counted, want none", second.commit, last, changed(second))
	}
	halt(second)
	if changed(second) != 2 {
		t.Errorf("%d changes of a state are counted behind the journal, want 2", changed(second))
	}
}

// TestAcceptedAreOrders: a mass cancel that is accepted is no order, which the alert CollarHits
// divides by.
func TestAcceptedAreOrders(t *testing.T) {
	var c ExecutionCounters
	for _, r := range []match.Record{
		{Kind: match.Accepted},
		{Kind: match.Accepted, Reason: match.MassCancelling, Book: match.All},
		{Kind: match.Accepted, Reason: match.Killed},
		{Kind: match.Accepted, Reason: match.Disconnected, Book: match.All},
		{Kind: match.MassCancelled, Book: match.All},
	} {
		c.add(&r, 0)
	}
	if c.Kinds[match.Accepted] != 1 || c.Kinds[match.MassCancelled] != 1 {
		t.Errorf("%d accepted and %d mass cancels, want 1 and 1", c.Kinds[match.Accepted], c.Kinds[match.MassCancelled])
	}
}
