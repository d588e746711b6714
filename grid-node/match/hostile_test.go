package match

import (
	"math"
	"testing"
)

// TestRefused: what an engine has to refuse, by the reason it gives. Nothing rests after it.
func TestRefused(t *testing.T) {
	good := Op{Kind: Enter, ID: 9, Book: 0, Side: Buy, Type: Limit, Price: 16_777_000_350, Qty: 20, Owner: 1}
	with := func(f func(*Op)) Op {
		op := good
		f(&op)
		return op
	}
	cases := []struct {
		name string
		op   Op
		want Reason
	}{
		{"id 0", with(func(o *Op) { o.ID = 0 }), BadID},
		{"no such book", with(func(o *Op) { o.Book = 2 }), UnknownInstrument},
		{"book above all", with(func(o *Op) { o.Book = All }), UnknownInstrument},
		{"price off tick", with(func(o *Op) { o.Price += 3 }), OffTick},
		{"price below band", with(func(o *Op) { o.Price = 16_776_999_995 }), OutsideBand},
		{"price above band", with(func(o *Op) { o.Price = 16_777_000_705 }), OutsideBand},
		{"lowest price there is", with(func(o *Op) { o.Price = math.MinInt64 }), OutsideBand},
		{"highest price there is", with(func(o *Op) { o.Price = math.MaxInt64 }), OutsideBand},
		{"market with price", with(func(o *Op) { o.Type = Market }), OutsideBand},
		{"quantity 0", with(func(o *Op) { o.Qty = 0 }), BadQty},
		{"quantity negative", with(func(o *Op) { o.Qty = -10 }), BadQty},
		{"quantity off lot", with(func(o *Op) { o.Qty = 15 }), BadQty},
		{"lowest quantity there is", with(func(o *Op) { o.Qty = math.MinInt64 }), BadQty},
		{"lots above the largest", with(func(o *Op) { o.Qty = (MaxLots + 1) * 10 }), QtyTooLarge},
		{"price x quantity", with(func(o *Op) { o.Qty = MaxLots * 10 }), Overflow},
		{"display above quantity", with(func(o *Op) { o.Display = 30 }), BadDisplay},
		{"display off lot", with(func(o *Op) { o.Display = 5 }), BadDisplay},
		{"display negative", with(func(o *Op) { o.Display = -10 }), BadDisplay},
		{"side", with(func(o *Op) { o.Side = 3 }), BadField},
		{"type", with(func(o *Op) { o.Type = 0 }), BadField},
		{"time in force", with(func(o *Op) { o.TIF = 7 }), BadField},
		{"post-only IOC", with(func(o *Op) { o.Post, o.TIF = true, IOC }), BadField},
		{"stop price without stop", with(func(o *Op) { o.Stop = 16_777_000_350 }), BadField},
		{"stop off tick", with(func(o *Op) { o.Type, o.Stop = StopLimit, 16_777_000_351 }), OffTick},
		{"stop outside", with(func(o *Op) { o.Type, o.Stop = StopLimit, 1 }), OutsideBand},
		{"cancel unknown", Op{Kind: Cancel, Orig: 77}, UnknownOrder},
		{"cancel 0", Op{Kind: Cancel}, UnknownOrder},
		{"replace unknown", Op{Kind: Replace, Orig: 77, Price: 16_777_000_350, Qty: 10}, UnknownOrder},
		{"kind", Op{Kind: 99}, BadField},
		{"kind 0", Op{}, BadField},
	}
	e, err := newFlowEngine()
	if err != nil {
		t.Fatal(err)
	}
	e.Apply(&Op{Kind: SetState, Book: 0, State: Open}, nil)
	before := e.Digest()
	for _, c := range cases {
		out := e.Apply(&c.op, nil)
		if len(out) != 1 || out[0].Reason != c.want || out[0].Kind != Rejected && out[0].Kind != CancelRejected {
			t.Errorf("%s: %+v, want one refusal: %v", c.name, out, c.want)
		}
		if c.want.String() == "" || e.Resting() != 0 {
			t.Errorf("%s: %d orders rest, want none; reason %q", c.name, e.Resting(), c.want)
		}
	}
	if before == e.Digest() {
		t.Error("the digest does not cover what was written")
	}
	if out := e.Apply(&good, nil); out[0].Kind != Accepted {
		t.Fatalf("good order: %v", out[0].Reason)
	}
	if out := e.Apply(&good, nil); out[0].Reason != DuplicateID {
		t.Errorf("twice: %v, want %v", out[0].Reason, DuplicateID)
	}
	if out := e.Apply(&Op{Kind: Cancel, Orig: 9, Owner: 2}, nil); out[0].Reason != UnknownOrder {
		t.Errorf("another's cancel: %v, want %v", out[0].Reason, UnknownOrder)
	}
}

// TestDefineRefused: what no instrument may be.
func TestDefineRefused(t *testing.T) {
	good := Instrument{Tick: 5, Lot: 1, Low: 0, High: 100, Ref: 50}
	for name, f := range map[string]func(*Instrument){
		"tick 0":           func(i *Instrument) { i.Tick = 0 },
		"lot negative":     func(i *Instrument) { i.Lot = -1 },
		"lot too large":    func(i *Instrument) { i.Lot = math.MaxInt64 / 4 },
		"low off tick":     func(i *Instrument) { i.Low = 3 },
		"high below low":   func(i *Instrument) { i.High = -5 },
		"too many ticks":   func(i *Instrument) { i.High = 5 * MaxTicks },
		"widest":           func(i *Instrument) { i.Low, i.High, i.Tick = math.MinInt64, math.MaxInt64, 1 },
		"reference beyond": func(i *Instrument) { i.Ref = 105 },
	} {
		e, err := New(flowConfig)
		if err != nil {
			t.Fatal(err)
		}
		i := good
		f(&i)
		if e.Define(0, i) == nil {
			t.Errorf("%s: accepted", name)
		}
		if err := e.Define(0, good); err != nil {
			t.Errorf("%s: then %v", name, err)
		}
		if e.Define(0, good) == nil || e.Define(5, good) == nil {
			t.Errorf("%s: a book twice, or one too many, accepted", name)
		}
	}
}
