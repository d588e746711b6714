package match

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"

	"pgregory.net/rapid"

	"github.com/ordergrid/ordergrid/internal/race"
)

// TestOracleEveryByte compares the bytes that the engine writes with those of the oracle, for
// operations of 100 seeds (ORDERGRID_MATCH_SEEDS for more), 300 each; of some of them
// under the race detector.
func TestOracleEveryByte(t *testing.T) {
	seeds := 100
	if n, err := strconv.Atoi(os.Getenv("ORDERGRID_MATCH_SEEDS")); err == nil {
		seeds = n
	}
	if race.Enabled {
		seeds = 5
	}
	saw := map[string]int{}
	for seed := range seeds {
		random := rand.New(rand.NewPCG(uint64(seed), 23))
		if err := compare(&flow{draw: random.IntN}, 300, saw); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
	}
	if race.Enabled {
		return
	}
	for k := Accepted; k <= OrderRemoved; k++ {
		if saw[fmt.Sprint("kind ", k)] == 0 {
			t.Errorf("no record of kind %d in %d seeds", k, seeds)
		}
	}
	for r := Requested; r < reasons; r++ {
		if saw[fmt.Sprint("reason ", r)] == 0 {
			t.Errorf("no record with reason %d (%v) in %d seeds", r, r, seeds)
		}
	}
}

// TestOracleProperty is the same under a generator that shrinks what fails.
func TestOracleProperty(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := &flow{draw: func(n int) int { return rapid.IntRange(0, n-1).Draw(t, "n") }}
		if err := compare(f, rapid.IntRange(1, 80).Draw(t, "operations"), map[string]int{}); err != nil {
			t.Fatal(err)
		}
	})
}

// compare runs engine and oracle side by side.
func compare(f *flow, n int, saw map[string]int) error {
	e, err := newFlowEngine()
	if err != nil {
		return err
	}
	x := newOracle(flowConfig)
	for n, i := range flowInstruments {
		x.define(n, i)
	}
	var out []Record
	var want Position
	for i := range n {
		op := f.op()
		if i < 3 {
			op = Op{Kind: SetState, Book: []uint16{0, 1, 3}[i], State: []State{Open, Open, Call}[i]}
		}
		out = e.Apply(&op, out[:0])
		naive := x.apply(op)
		if err := same(out, naive); err != nil {
			return fmt.Errorf("operation %d %+v: %w", i, op, err)
		}
		if len(out) > e.MaxRecords() {
			return fmt.Errorf("operation %d wrote %d records, allowed: %d", i, len(out), e.MaxRecords())
		}
		for j := range naive {
			want.Add(&naive[j])
			saw[fmt.Sprint("kind ", naive[j].Kind)]++
			saw[fmt.Sprint("reason ", naive[j].Reason)]++
		}
		switch {
		case e.Position() != want:
			return fmt.Errorf("operation %d: position %v, want %v", i, e.Position(), want)
		case e.Pending() != x.pending():
			return fmt.Errorf("operation %d: pending is %v, want %v", i, e.Pending(), x.pending())
		case e.Resting() != len(x.orders):
			return fmt.Errorf("operation %d: %d orders, want %d", i, e.Resting(), len(x.orders))
		}
		if i%16 == 0 {
			if err := e.check(); err != nil {
				return fmt.Errorf("operation %d %+v: %w", i, op, err)
			}
		}
	}
	return nil
}

func newFlowEngine() (*Engine, error) {
	e, err := New(flowConfig)
	for n, i := range flowInstruments {
		if err == nil {
			err = e.Define(n, i)
		}
	}
	return e, err
}

func same(got, want []Record) error {
	for i := range max(len(got), len(want)) {
		switch {
		case i >= len(got):
			return fmt.Errorf("record %d is missing: %+v", i, want[i])
		case i >= len(want):
			return fmt.Errorf("record %d is too much: %+v", i, got[i])
		case !bytes.Equal(got[i].AppendTo(nil), want[i].AppendTo(nil)):
			return fmt.Errorf("record %d is %+v, want %+v", i, got[i], want[i])
		}
	}
	return nil
}

// check compares what the engine maintains with what it holds.
func (e *Engine) check() error {
	if e.Digest() != e.Recount() {
		return fmt.Errorf("digest %x, recount %x", e.Digest(), e.Recount())
	}
	resting, pages, unnamed := 0, 0, 0
	for n := range e.books {
		b := &e.books[n]
		for p := range b.ladders {
			for _, ref := range b.ladders[p].refs {
				if ref.page != 0 {
					pages++
				}
			}
		}
		if b.state == Open && b.ladders[0].best != none && b.ladders[1].best != none && b.mirror(b.ladders[0].best) >= b.ladders[1].best {
			return fmt.Errorf("book %d is open and crossed", n)
		}
		for place := range uint8(places) {
			var err error
			e.queues(b, place, func(lev *level, vol *volume) {
				if e2 := e.checkQueue(lev, vol); e2 != nil {
					err = e2
				}
				resting += int(vol.count)
				for slot := lev.head; slot != 0; slot = e.orders[slot].next {
					unnamed += int(b2u(e.orders[slot].party == 0))
				}
			})
			if err != nil {
				return fmt.Errorf("book %d place %d: %w", n, place, err)
			}
		}
	}
	if unnamed != e.Unnamed() {
		return fmt.Errorf("%d orders without a party, counted %d", e.Unnamed(), unnamed)
	}
	if resting != e.resting || pages != e.paged {
		return fmt.Errorf("%d orders and %d pages, counted %d and %d", e.resting, e.paged, resting, pages)
	}
	return nil
}

func (e *Engine) checkQueue(lev *level, vol *volume) error {
	var sum volume
	tail := uint32(0)
	prio := uint64(0)
	for slot := lev.head; slot != 0; slot = e.orders[slot].next {
		o := &e.orders[slot]
		if o.prio <= prio || o.shown == 0 || o.shown > o.leaves || e.ids.find(e.orders, o.id) != slot {
			return fmt.Errorf("order %+v behind priority %d", *o, prio)
		}
		prio = o.prio
		sum.count, sum.shown, sum.total, tail = sum.count+1, sum.shown+uint64(o.shown), sum.total+uint64(o.leaves), slot
	}
	if sum != *vol || tail != lev.tail {
		return fmt.Errorf("level %+v %+v, counted %+v to %d", *lev, *vol, sum, tail)
	}
	return nil
}
