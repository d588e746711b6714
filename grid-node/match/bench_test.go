//go:build linux

package match

import (
	"fmt"
	"os"
	"runtime"
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func newMixed(t testing.TB, orders int, data Data) *Engine {
	t.Helper()
	e, err := New(Config{Orders: orders, Pages: min(orders, mixedBooks*mixedPrices/32), Books: mixedBooks, Work: 1024, Data: data, Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	for n := range uint16(mixedBooks) {
		if err := e.Define(n, Instrument{Tick: 1, Lot: 1, Low: 0, High: mixedPrices - 1, Ref: mixedPrices / 2}); err != nil {
			t.Fatal(err)
		}
		e.Apply(&Op{Kind: SetState, Book: n, State: Open}, nil)
	}
	return e
}

// TestFloorFills: the floor is no straw man: it trades what the engine trades.
func TestFloorFills(t *testing.T) {
	flow := mixedFlow(60_000)
	e, f := newMixed(t, len(flow), 0), newFloor(mixedBooks, mixedPrices, len(flow), false)
	var fills []floorFill
	var out []Record
	for i := range flow {
		out = e.Apply(&flow[i], out[:0])
		for _, r := range out {
			if r.Kind == Filled && r.Flags == 0 {
				fills = append(fills, floorFill{r.Order, r.Other, uint32(r.Price), uint32(r.Qty)})
			}
		}
		f.apply(&flow[i])
	}
	if len(fills) < 1000 || !slices.Equal(fills, f.fills) {
		t.Errorf("the engine made %d fills, the floor %d, want the same, more than 1000", len(fills), len(f.fills))
	}
}

const mixedOps = 1_000_000

// cpuTime returns what this thread has used: other processes of the machine do not count.
func cpuTime() time.Duration {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &t); err != nil {
		panic(err)
	}
	return time.Duration(t.Nano())
}

// runFloor and runEngine return the time of the flow.
func runFloor(flow []Op, huge bool) time.Duration {
	f := newFloor(mixedBooks, mixedPrices, len(flow), huge)
	defer unmap(f.memory)
	f.fills = make([]floorFill, 0, 4096)
	runtime.GC()
	start := cpuTime()
	for i := range flow {
		f.fills = f.fills[:0]
		f.apply(&flow[i])
	}
	return cpuTime() - start
}

func runEngine(t testing.TB, flow []Op, data Data, hints bool) time.Duration {
	e := newMixed(t, len(flow), data)
	defer e.Close()
	out := make([]Record, 0, e.MaxRecords())
	var near [4]Hint
	runtime.GC()
	start := cpuTime()
	for i := range flow {
		if hints {
			e.hint(flow, i, &near)
		}
		out = e.Apply(&flow[i], out[:0])
	}
	return cpuTime() - start
}

// hint loads ahead, as a caller with a batch of operations does. near has what was found for the four operations that are
// between the two steps.
func (e *Engine) hint(flow []Op, i int, near *[4]Hint) {
	if i+12 < len(flow) {
		e.HintFar(&flow[i+12])
		h := &near[i%4]
		e.HintNext(h)
		*h = e.HintNear(&flow[i+8])
	}
}

// BenchmarkMatch runs floor and engine in turns, and reports the medians of their rates and
// of the ratios. huge is the floor in the engine's kind of memory. With peerEnv=1 exchange-core's book takes turns with them.
func BenchmarkMatch(b *testing.B) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	flow := mixedFlow(mixedOps)
	names := []string{"floor", "floor-huge", "engine", "engine-hints", "engine-data-hints"}
	var other *peer
	if os.Getenv(peerEnv) == "1" {
		other = startPeer(b, flow)
		names = append(names, "exchange-core")
	}
	rates, ratios := make([][]float64, len(names)), make([][]float64, len(names))
	for b.Loop() {
		times := []time.Duration{runFloor(flow, false), runFloor(flow, true), runEngine(b, flow, 0, false), runEngine(b, flow, 0, true), runEngine(b, flow, L1|L2|L3, true)}
		if other != nil {
			took, _ := other.run(b)
			times = append(times, took)
		}
		for i, d := range times {
			rates[i] = append(rates[i], mixedOps/d.Seconds()/1e6)
			ratios[i] = append(ratios[i], times[0].Seconds()/d.Seconds())
		}
	}
	for i, name := range names {
		slices.Sort(rates[i])
		slices.Sort(ratios[i])
		b.ReportMetric(rates[i][len(rates[i])/2], name+"-Mop/s")
		b.ReportMetric(ratios[i][len(ratios[i])/2], name+"-ratio")
	}
	b.ReportMetric(0, "ns/op")
}

// BenchmarkMatchService reports the service time of operations, and what reading the clock
// twice adds to each.
func BenchmarkMatchService(b *testing.B) {
	flow := mixedFlow(mixedOps)
	for _, c := range []struct {
		name  string
		apply func() (apply func(int), end func())
	}{
		{"clock", func() (func(int), func()) { return func(int) {}, func() {} }},
		{"floor", func() (func(int), func()) {
			f := newFloor(mixedBooks, mixedPrices, len(flow), false)
			return func(i int) { f.fills = f.fills[:0]; f.apply(&flow[i]) }, func() {}
		}},
		{"engine", func() (func(int), func()) { return applier(b, 0, flow, false) }},
		{"engine-hints", func() (func(int), func()) { return applier(b, 0, flow, true) }},
		{"engine-data-hints", func() (func(int), func()) { return applier(b, L1|L2|L3, flow, true) }},
	} {
		b.Run(c.name, func(b *testing.B) {
			times := make([]time.Duration, 0, 4*len(flow))
			for b.Loop() {
				apply, end := c.apply()
				runtime.GC()
				for i := range flow {
					start := time.Now()
					apply(i)
					times = append(times, time.Since(start))
				}
				end()
			}
			slices.Sort(times)
			for _, q := range []float64{0.5, 0.99, 0.999} {
				b.ReportMetric(float64(times[int(float64(len(times))*q)]), fmt.Sprintf("p%v-ns", q*100))
			}
			b.ReportMetric(0, "ns/op")
		})
	}
}

func applier(b *testing.B, data Data, flow []Op, hints bool) (apply func(int), end func()) {
	e := newMixed(b, len(flow), data)
	out := make([]Record, 0, e.MaxRecords())
	var near [4]Hint
	return func(i int) {
		if hints {
			e.hint(flow, i, &near)
		}
		out = e.Apply(&flow[i], out[:0])
	}, e.Close
}

// BenchmarkMatchMassCancel reports the longest step of cancelling 100,000 resting orders.
func BenchmarkMatchMassCancel(b *testing.B) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var longest, total time.Duration
	steps := 0
	for b.Loop() {
		e := filled(b, 100_000, 1)
		out := make([]Record, 0, e.MaxRecords())
		runtime.GC()
		op := Op{Kind: MassCancel, ID: 1 << 40, Book: All, Kill: true, Parties: []uint64{1 << 1}}
		for first := true; first || e.Pending(); first = false {
			start := cpuTime()
			out = e.Apply(&op, out[:0])
			d := cpuTime() - start
			longest, total, steps = max(longest, d), total+d, steps+1
			op = Op{Kind: Continue}
		}
		if e.Resting() != 0 {
			b.Fatalf("%d orders rest, want none", e.Resting())
		}
		e.Close()
	}
	b.ReportMetric(float64(longest.Microseconds()), "longest-µs")
	b.ReportMetric(float64(total.Microseconds())/float64(steps), "mean-µs")
	b.ReportMetric(float64(steps)/float64(b.N), "steps")
	b.ReportMetric(0, "ns/op")
}

// BenchmarkMatchGC reports how long a collection takes beside an engine with a million
// orders, and without.
func BenchmarkMatchGC(b *testing.B) {
	collect := func() float64 {
		runtime.GC()
		start := time.Now()
		for range 5 {
			runtime.GC()
		}
		return float64(time.Since(start).Microseconds()) / 5
	}
	empty := collect()
	e := filled(b, 1_000_000, 1)
	for b.Loop() {
		b.ReportMetric(collect(), "with-µs")
	}
	b.ReportMetric(empty, "without-µs")
	b.ReportMetric(0, "ns/op")
	e.Close()
}
