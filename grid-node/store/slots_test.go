package store

import (
	"testing"

	"github.com/ordergrid/ordergrid/grid-node/order"
)

// What the replica keeps for FIX sessions is charged: slots once, and the number of a
// report as long as its entry is there.
func TestFixSessionsAreCharged(t *testing.T) {
	s := open(t, Options{Block: 4096, FixBytes: 1000})
	opening := func(slot uint32) []byte {
		o := order.FixOpening{ID: [2]uint64{1, 2}}
		return order.AppendFixRecord(nil, &order.FixRecord{Slot: slot, In: 1, Op: order.FixOpen, Outs: 1, Body: o.Append(nil)})
	}
	step := order.AppendFixRecord(nil, &order.FixRecord{Slot: 9, In: 1, Op: order.FixStep, Outs: 1})
	for _, c := range []struct {
		name    string
		e       order.Entry
		payload []byte
		beside  int64
	}{
		{"the first session", order.Entry{Kind: order.KindFix}, opening(0), 1000 + fixNumber},
		{"it is opened again", order.Entry{Kind: order.KindFix}, opening(0), fixNumber},
		{"another one", order.Entry{Kind: order.KindFix}, opening(1), 1000 + fixNumber},
		{"a step", order.Entry{Kind: order.KindFix}, step, fixNumber},
		{"a noop", order.Entry{Kind: order.KindNoop}, make([]byte, 16), 0},
	} {
		before := s.Used()
		if err := s.Append(&c.e, c.payload); err != nil {
			t.Fatal(err)
		}
		if got := s.Used() - before - int64(order.Padded(order.HeaderSize+len(c.payload))) - 4; got != c.beside {
			t.Errorf("%s: %d bytes beside the entry, want %d", c.name, got, c.beside)
		}
	}
	last, _ := s.Last()
	s.SetCommitted(last)
	before := s.Used()
	freeOne(s)
	freeOne(s)
	if got := before - s.Used(); got != 2*fixNumber {
		t.Errorf("two freed entries return %d bytes, want %d", got, 2*fixNumber)
	}
	restored := open(t, Options{Block: 4096, SessionBytes: 10, FixBytes: 1000})
	before = restored.Used()
	if err := restored.SetBase(7, 7, 3, 2); err != nil {
		t.Fatal(err)
	}
	if got := restored.Used() - before; got != 2030 {
		t.Errorf("a base with 3 sessions and 2 FIX sessions takes %d bytes, want 2030", got)
	}
}
