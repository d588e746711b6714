//go:build linux

package limits

import (
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ordergrid/ordergrid/internal/race"
)

// benchConfig is a partition of an exchange.
var benchConfig = Config{Orders: 200_000, Recent: 100_000, Parties: 2000, Sessions: 1000, Traders: 2000, Desks: 200, Algorithms: 500, Clients: 1000, Symbols: 500, Profiles: 20, Partitions: 16, Kills: 64, Seed: 3}

// newBench returns limits with every rule on, and n orders that pass.
func newBench(t testing.TB, n int) (*Limits, []Op) {
	t.Helper()
	l, err := New(benchConfig)
	if err != nil {
		t.Fatal(err)
	}
	do := func(c Change) {
		c.Who = 7
		if why := l.Change(&c); why != None {
			t.Fatalf("%+v: %v", c, why)
		}
	}
	for p := range uint32(20) {
		do(Change{Kind: SetProfile, N: p + 1, Rules: Rules{CollarReference: 2000, CollarLast: 1000, MaxVolume: 1 << 20, MaxValue: 1 << 40, Rate: 1 << 20, Burst: 1 << 20,
			Reserve: 10, Repeats: 1 << 30, DuplicateWindow: second}})
		for trader := range uint32(2000) {
			do(Change{Kind: Authorise, N: p + 1, Other: trader + 1})
		}
		do(Change{Kind: Restrict, N: p + 1, Other: 499})
	}
	for n := range uint32(1000) {
		do(Change{Kind: SetClient, N: n + 1, Profile: n%20 + 1})
		do(Change{Kind: SetSession, N: n + 1, Profile: n%20 + 1})
		do(Change{Kind: SetCredit, N: n + 1, Amount: 1 << 50})
	}
	do(Change{Kind: SetCredit, Amount: 1 << 60})
	for n := range uint32(499) {
		do(Change{Kind: SetSymbol, N: n, Multiplier: 1, Price: 10_000})
	}
	for n := range uint32(2000) {
		do(Change{Kind: SetParty, N: n + 1, Party: Party{Session: n/2 + 1, Trader: n + 1, Desk: n/10 + 1, Algorithm: n/4 + 1, Client: n/2 + 1}})
	}
	random := rand.New(rand.NewPCG(1, 2))
	ops := make([]Op, n)
	for i := range ops {
		ops[i] = Op{Time: int64(i) * 100_000, Kind: Enter, ID: uint64(i + 1), Party: 1 + uint32(random.IntN(2000)), Symbol: uint16(random.IntN(499)),
			Side: Buy + Side(random.IntN(2)), Price: 9_500 + int64(random.IntN(1000)), Qty: 1 + int64(random.IntN(5000))}
	}
	return l, ops
}

// nothing is what a call costs.
type nothing struct{ sum uint64 }

//go:noinline
func (e *nothing) apply(op *Op) Reason {
	e.sum += op.ID
	return None
}

// BenchmarkLimits reports what an order costs, beside an empty call, in turns: the medians
// of what Check takes, what Apply takes for Enter, and for what the book does with the
// order. An order that enters costs Check on the primary and Apply everywhere.
func BenchmarkLimits(b *testing.B) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	const n = 100_000
	names := []string{"empty", "check", "enter", "fill", "done"}
	took := make([][]float64, len(names))
	for b.Loop() {
		l, ops := newBench(b, n)
		var e nothing
		steps := []func(*Op) Reason{e.apply, l.Check, l.Apply,
			func(op *Op) Reason {
				return l.Apply(&Op{Time: op.Time, Kind: Filled, ID: op.ID, Price: op.Price, Qty: 1})
			},
			func(op *Op) Reason { return l.Apply(&Op{Time: op.Time, Kind: Done, ID: op.ID}) }}
		runtime.GC()
		for i, f := range steps {
			refused := 0
			start := cpuTime()
			for j := range ops {
				if f(&ops[j]) != None {
					refused++
				}
			}
			took[i] = append(took[i], float64(cpuTime()-start)/n)
			if refused > n/10 {
				b.Fatalf("%s: %d of %d refused", names[i], refused, n)
			}
		}
	}
	for i, name := range names {
		slices.Sort(took[i])
		b.ReportMetric(took[i][len(took[i])/2], name+"-ns")
	}
	b.ReportMetric(0, "ns/op")
}

// cpuTime returns what this thread has used: other processes of the machine do not count.
func cpuTime() time.Duration {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &t); err != nil {
		panic(err)
	}
	return time.Duration(t.Nano())
}

// TestAllocsNothing: no operation or change of any kind allocates.
func TestAllocsNothing(t *testing.T) {
	if race.Enabled {
		t.Skip("the race detector allocates")
	}
	l := newFlow(t)
	f := &flow{draw: rand.New(rand.NewPCG(3, 3)).IntN}
	type step struct {
		op *Op
		c  *Change
	}
	var steps []step
	for _, c := range f.setup() {
		steps = append(steps, step{c: &c})
	}
	record := newFlow(t)
	f.run(t, 5000, func(op *Op, c *Change) Reason {
		if c != nil {
			d := *c
			steps = append(steps, step{c: &d})
			return record.Change(c)
		}
		o := *op
		steps = append(steps, step{op: &o})
		return record.Apply(op)
	})
	passed := 0
	if n := testing.AllocsPerRun(1, func() {
		for _, s := range steps {
			why := None
			if s.c != nil {
				why = l.Change(s.c)
			} else {
				l.Check(s.op)
				why = l.Apply(s.op)
			}
			if why == None {
				passed++
			}
		}
		l.Digest()
	}); n != 0 {
		t.Errorf("%v allocations in %d steps, want none", n, len(steps))
	}
	if passed < 500 {
		t.Errorf("%d of %d steps passed, want 500 or more", passed, len(steps))
	}
}

// TestMemoryIsWhatConfigSays: an instance allocates Bytes.
func TestMemoryIsWhatConfigSays(t *testing.T) {
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	l, err := New(benchConfig)
	if err != nil {
		t.Fatal(err)
	}
	runtime.ReadMemStats(&after)
	if want, got := benchConfig.Bytes(), int64(after.TotalAlloc-before.TotalAlloc); got < want || got > want+want/10 {
		t.Errorf("allocated %d bytes, Bytes says %d", got, want)
	}
	runtime.KeepAlive(l)
}
