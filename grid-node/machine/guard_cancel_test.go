package machine

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ordergrid/ordergrid/grid-node/limits"
	"github.com/ordergrid/ordergrid/grid-node/match"
	"github.com/ordergrid/ordergrid/grid-node/order"
)

func (x *exchange) guard(v order.Guard) []match.Record {
	x.t.Helper()
	if v.Who = []byte("ann"); v.Op == order.GuardKill || v.Op == order.GuardUnkill {
		v.Why = []byte("drill")
	}
	return x.add(order.KindGuard, 0, v.Append(nil))
}

func (x *exchange) kill(s order.GuardScope, name string) []match.Record {
	x.t.Helper()
	return x.guard(order.Guard{Op: order.GuardKill, Scope: s, Name: []byte(name)})
}

// TestKillCancels: from a kill's entry on nothing that it means trades, in each scope; the
// cancels follow in parts, are counted, and take no orders of others.
func TestKillCancels(t *testing.T) {
	p, err := limits.ParseProfile([]byte(`{"traderTag":50,"deskTag":57,"algorithmTag":58}`))
	if err != nil {
		t.Fatal(err)
	}
	for _, traded := range []bool{false, true} { // with a profile, and, for what needs none, without
		for scope, name := range []string{string(SessionName([2]uint64{1, 1})), "ann", "d1", "alg", "acc", ""} {
			s := order.GuardScope(scope)
			if !traded && s != order.GuardSession && s != order.GuardClient && s != order.GuardAll {
				continue
			}
			x := newExchange(t)
			x.guard(order.Guard{Op: order.GuardNames})
			if traded {
				x.guard(order.Guard{Op: order.GuardProfile, Profile: p.Canonical()})
			}
			const meant, others = 11, 5 // more than the three that an entry may visit
			for n := range meant {
				x.send(0, fmt.Sprintf("35=D 11=a%d 1=acc 50=ann 57=d1 58=alg 55=IBM 54=1 38=10 40=2 44=5.%02d", n, 5*(n%3)))
			}
			for n := range others {
				x.send(1, fmt.Sprintf("35=D 11=b%d 1=other 50=bob 57=d2 58=alg2 55=IBM 54=1 38=10 40=2 44=4.90", n))
			}
			// A replace is that of whom it comes from; this one changes nothing of that.
			x.send(0, "35=G 11=r 41=a0 1=acc 50=ann 57=d1 58=alg 55=IBM 54=1 38=20 40=2 44=5.10")
			first := x.kill(s, name)
			if len(first) == 0 || first[0].Kind != match.Accepted || first[0].Reason != match.Killed {
				t.Fatalf("%v: the kill did %v", s, text(first))
			}
			if s != order.GuardAll { // another's order on the other side meets others' alone
				for _, r := range x.send(2, "35=D 11=c 1=third 50=eve 57=d3 58=alg3 55=IBM 54=2 38=1000 40=1 59=3") {
					if r.Kind == match.Filled && r.Price != 490 {
						t.Errorf("%v: a killed order trades: %s", s, text([]match.Record{r}))
					}
				}
			}
			for x.m.Books.Pending() {
				x.add(order.KindContinue, 0, nil)
			}
			total := uint64(meant)
			if s == order.GuardAll {
				total += others
			}
			rest := meant + others - int(total)
			if n := x.m.Books.Resting(); n != rest {
				t.Errorf("%v: %d orders rest, want %d", s, n, rest)
			}
			k := x.m.Guard.Kills()
			if len(k) != 1 || k[0].Complete == 0 || k[0].Cancelled != total {
				t.Errorf("%v: %+v, want %d cancelled", s, k, total)
			}
			if got := x.m.Digest(); got != x.m.Recount() {
				t.Errorf("%v: digest %x, recounted %x", s, got, x.m.Recount())
			}
		}
	}
}

// TestKillsOfBefore: a kill that was made while a copy of a release before was there cancels
// nothing until all know how; orders of that time have no known sender.
func TestKillsOfBefore(t *testing.T) {
	x := newExchange(t)
	x.send(0, "35=D 11=a 1=acc 55=IBM 54=1 38=10 40=2 44=5.00")
	if got := x.kill(order.GuardClient, "acc"); len(got) != 0 {
		t.Errorf("it did %s", text(got))
	}
	x.kill(order.GuardSession, string(SessionName([2]uint64{1, 1})))
	if n := x.m.Books.Resting(); n != 1 {
		t.Fatalf("%d orders rest, want 1", n)
	}
	x.send(1, "35=D 11=b 1=other 55=IBM 54=1 38=10 40=2 44=5.00")
	x.guard(order.Guard{Op: order.GuardNames})
	for x.m.Books.Pending() {
		x.add(order.KindContinue, 0, nil)
	}
	if n := x.m.Books.Resting(); n != 1 || x.m.Books.Unnamed() != 1 {
		t.Errorf("%d orders rest, %d without a known sender, want 1 and 1", n, x.m.Books.Unnamed())
	}
}

// TestKillSnapshot: a copy that is restored in the middle of cancels goes on alike.
func TestKillSnapshot(t *testing.T) {
	sweeping := 0
	for seed := range uint64(4) {
		x := newExchange(t)
		x.guard(order.Guard{Op: order.GuardNames})
		rnd := rand.New(rand.NewPCG(seed, 74))
		for n := range 150 {
			switch k := rnd.IntN(20); {
			case k < 2:
				x.guard(order.Guard{Op: order.GuardKill + order.GuardOp(rnd.IntN(2)), Scope: order.GuardClient, Name: []byte(fmt.Sprint("acc", rnd.IntN(3)))})
			case k < 3 && x.m.Books.Pending():
				x.add(order.KindContinue, 0, nil)
			default:
				x.send(uint32(rnd.IntN(3)), fmt.Sprintf("35=D 11=o%d 1=acc%d 55=IBM 54=%d 38=10 40=2 44=5.%02d", n, rnd.IntN(3), 1+rnd.IntN(2), 5*rnd.IntN(4)))
			}
			if rnd.IntN(5) > 0 {
				continue
			}
			if x.m.Books.Pending() {
				sweeping++
			}
			m := restored(t, &x.m, uint64(len(x.log)))
			if m.Digest() != x.m.Digest() || m.Recount() != x.m.Digest() {
				t.Fatalf("seed %d entry %d: digest %x, restored %x, recounted %x", seed, len(x.log), x.m.Digest(), m.Digest(), m.Recount())
			}
			x.m = *m
		}
	}
	if sweeping == 0 {
		t.Error("no snapshot in the middle of cancels")
	}
}

// BenchmarkKillCancels reports the longest entry, in CPU time of the thread, of a kill of a
// client whose 100,000 orders rest: engine, names, limits and ClOrdIDs, as a copy applies it.
func BenchmarkKillCancels(b *testing.B) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	const orders = 100_000
	var longest, total time.Duration
	steps := 0
	for range b.N {
		b.StopTimer()
		x := &exchange{t: b, at: map[uint32]uint64{}}
		x.m.Begin(16, 0)
		x.m.Match()
		x.add(order.KindNoop, 0, le.AppendUint64(le.AppendUint64(nil, 1), 7))
		c := order.Market{Op: order.MarketConfig, Values: [5]uint64{orders, orders, 4, 256, 99}}
		x.add(order.KindMarket, 0, c.Append(nil))
		i := someInstruments[0].Market(0)
		x.add(order.KindMarket, 0, i.Append(nil))
		x.open(0)
		x.guard(order.Guard{Op: order.GuardNames})
		for n := range orders {
			x.send(0, fmt.Sprintf("35=D 11=a%d 1=acc 55=IBM 54=1 38=10 40=2 44=%d.05", n, n%900))
		}
		runtime.GC()
		b.StartTimer()
		for first := true; first || x.m.Books.Pending(); first = false {
			start := cpuTime()
			if first {
				x.kill(order.GuardClient, "acc")
			} else {
				x.add(order.KindContinue, 0, nil)
			}
			d := cpuTime() - start
			longest, total, steps = max(longest, d), total+d, steps+1
		}
		if n := x.m.Books.Resting(); n != 0 {
			b.Fatalf("%d orders rest, want none", n)
		}
	}
	b.ReportMetric(float64(longest.Microseconds()), "longest-µs")
	b.ReportMetric(float64(total.Microseconds())/float64(steps), "mean-µs")
	b.ReportMetric(float64(steps)/float64(b.N), "steps")
}

// cpuTime returns what this thread has used of a processor.
func cpuTime() time.Duration {
	var t unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &t)
	return time.Duration(t.Nano())
}
