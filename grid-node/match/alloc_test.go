package match

import (
	"math/rand/v2"
	"runtime"
	"testing"

	"github.com/ordergrid/ordergrid/internal/race"
)

// TestApplyAllocsNothing: no operation of any kind allocates, whatever it does.
func TestApplyAllocsNothing(t *testing.T) {
	if race.Enabled {
		t.Skip("the race detector allocates")
	}
	random := rand.New(rand.NewPCG(3, 3))
	f := &flow{draw: random.IntN}
	ops := make([]Op, 5000)
	for i := range ops {
		ops[i] = f.op()
	}
	e, err := newFlowEngine()
	if err != nil {
		t.Fatal(err)
	}
	out := make([]Record, 0, e.MaxRecords())
	for n := range flowInstruments {
		e.Apply(&Op{Kind: SetState, Book: n, State: Open}, out)
	}
	fills := 0
	if n := testing.AllocsPerRun(1, func() {
		for i := range ops {
			out = e.Apply(&ops[i], out[:0])
			for j := range out {
				fills += int(b2u(out[j].Kind == Filled))
			}
		}
	}); n != 0 {
		t.Errorf("%v allocations in %d operations, want none", n, len(ops))
	}
	if fills == 0 {
		t.Error("no fills, want some")
	}
}

// TestMemoryIsWhatConfigSays: an engine allocates Bytes and BookBytes, and less than
// 2,200 B for an order that has a page of its own.
func TestMemoryIsWhatConfigSays(t *testing.T) {
	c := Config{Orders: 100_000, Pages: 20_000, Books: 10, Work: 100, Tables: 2}
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	e, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	if err := e.Define(1, Instrument{Tick: 1, Lot: 1, Low: 0, High: 1<<20 - 1}); err != nil {
		t.Fatal(err)
	}
	runtime.ReadMemStats(&after)
	defer e.Close()
	want, got := c.Bytes()+BookBytes(1<<20), int64(after.TotalAlloc-before.TotalAlloc)
	if runtime.GOOS == "linux" && len(e.memory) >= hugeFrom {
		got += int64(len(e.memory))
	}
	if got < want || got > want+want/20 {
		t.Errorf("allocated %d bytes, Bytes and BookBytes say %d", got, want)
	}
	per := (Config{Orders: 200_000, Pages: 200_000, Books: 10, Work: 100}.Bytes() - Config{Orders: 100_000, Pages: 100_000, Books: 10, Work: 100}.Bytes()) / 100_000
	if per > 2200 {
		t.Errorf("%d bytes for an order with a page of its own, allowed: 2200", per)
	}
}
