package match_test

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"testing"

	"pgregory.net/rapid"

	"github.com/ordergrid/ordergrid/grid-node/match"
	"github.com/ordergrid/ordergrid/grid-node/match/naive"
	"github.com/ordergrid/ordergrid/internal/race"
)

// TestOracleEveryByte compares the bytes that the engine writes with those of the naive matcher, for
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
		if err := compare(match.NewFlow(random.IntN), 300, saw); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
	}
	if race.Enabled {
		return
	}
	for k := match.Accepted; k <= match.OrderRemoved; k++ {
		if saw[fmt.Sprint("kind ", k)] == 0 {
			t.Errorf("no record of kind %d in %d seeds", k, seeds)
		}
	}
	for r := match.Requested; r < match.Reasons; r++ {
		if saw[fmt.Sprint("reason ", r)] == 0 {
			t.Errorf("no record with reason %d (%v) in %d seeds", r, r, seeds)
		}
	}
}

// TestOracleProperty is the same under a generator that shrinks what fails.
func TestOracleProperty(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := match.NewFlow(func(n int) int { return rapid.IntRange(0, n-1).Draw(t, "n") })
		if err := compare(f, rapid.IntRange(1, 80).Draw(t, "operations"), map[string]int{}); err != nil {
			t.Fatal(err)
		}
	})
}

// compare runs engine and naive matcher side by side.
func compare(f *match.Flow, n int, saw map[string]int) error {
	e, err := match.NewFlowEngine()
	if err != nil {
		return err
	}
	x := naive.New(match.FlowConfig)
	for n, i := range match.FlowInstruments {
		x.Define(n, i)
	}
	var out []match.Record
	var at match.Position
	for i := range n {
		op := f.Op()
		if i < 3 {
			op = match.Op{Kind: match.SetState, Book: []uint16{0, 1, 3}[i], State: []match.State{match.Open, match.Open, match.Call}[i]}
		}
		out = e.Apply(&op, out[:0])
		want := x.Apply(op)
		if err := match.Same(out, want); err != nil {
			return fmt.Errorf("operation %d %+v: %w", i, op, err)
		}
		if len(out) > e.MaxRecords() {
			return fmt.Errorf("operation %d wrote %d records, allowed: %d", i, len(out), e.MaxRecords())
		}
		for j := range want {
			at.Add(&want[j])
			saw[fmt.Sprint("kind ", want[j].Kind)]++
			saw[fmt.Sprint("reason ", want[j].Reason)]++
		}
		switch {
		case e.Position() != at:
			return fmt.Errorf("operation %d: position %v, want %v", i, e.Position(), at)
		case e.Pending() != x.Pending():
			return fmt.Errorf("operation %d: pending is %v, want %v", i, e.Pending(), x.Pending())
		case e.Resting() != len(x.Resting()):
			return fmt.Errorf("operation %d: %d orders, want %d", i, e.Resting(), len(x.Resting()))
		case e.Entered() != entered(e, &op, want):
			return fmt.Errorf("operation %d %+v: that its order rests is %v, want %v", i, op, e.Entered(), !e.Entered())
		}
		if i%16 == 0 {
			if err := e.Check(); err != nil {
				return fmt.Errorf("operation %d %+v: %w", i, op, err)
			}
		}
	}
	return nil
}

// entered finds out whether the order of an operation is in a book.
func entered(e *match.Engine, op *match.Op, records []match.Record) bool {
	_, rests := e.Find(op.ID)
	return rests && op.Kind == match.Enter && slices.ContainsFunc(records, func(r match.Record) bool { return r.Kind == match.Accepted && r.Order == op.ID })
}

// FuzzApply: whatever the operations are, engine and naive matcher agree.
func FuzzApply(f *testing.F) {
	f.Add([]byte("an order, a cancel"))
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) > 8000 {
			return
		}
		draw := func(n int) int {
			if len(data) < 2 {
				return 0
			}
			v := int(binary.LittleEndian.Uint16(data)) % n
			data = data[2:]
			return v
		}
		if err := compare(match.NewFlow(draw), min(len(data)/16, 400), map[string]int{}); err != nil {
			t.Fatal(err)
		}
	})
}
