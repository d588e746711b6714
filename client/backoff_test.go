package client

import (
	"context"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// TestBackoffSpreads: 5,000 clients of one session each lose their primary at the same moment, on a
// simulated clock. It checks how often each one tries until a new primary serves, and how close
// together the successful tries arrive.
func TestBackoffSpreads(t *testing.T) {
	const sessions = 5000
	for _, away := range []time.Duration{20 * time.Millisecond, 300 * time.Millisecond, 5 * time.Second} {
		rng := rand.New(rand.NewPCG(1, 2))
		arrivals := map[time.Duration]int{} // by millisecond after the new primary serves
		most, total, late := 0, 0, time.Duration(0)
		for range sessions {
			var b backoff
			at := time.Duration(0)
			for at += b.pause(250*time.Millisecond, rng.Int64N); at < away; {
				at += b.pause(250*time.Millisecond, rng.Int64N)
			}
			most, total = max(most, b.attempts), total+b.attempts
			late = max(late, at-away)
			arrivals[(at-away)/time.Millisecond]++
		}
		busiest := 0
		for _, n := range arrivals {
			busiest = max(busiest, n)
		}
		t.Logf("outage %s: %.1f attempts per session, at most %d; the last comes %s after the first could; busiest millisecond %d of %d sessions",
			away, float64(total)/sessions, most, late.Round(100*time.Microsecond), busiest, sessions)
		// Geometric up to 250 ms (about a dozen tries), then 125 ms apart on average.
		if limit := 30 + 3*int(away/(125*time.Millisecond)); most > limit {
			t.Errorf("outage %s: a session tried %d times, want at most %d", away, most, limit)
		}
		if late > 250*time.Millisecond {
			t.Errorf("outage %s: a session reconnected %s late", away, late)
		}
		if away >= 300*time.Millisecond && busiest > sessions/20 {
			t.Errorf("outage %s: %d of %d sessions reconnect within one millisecond", away, busiest, sessions)
		}
	}
}

func TestBackoffFirstAttemptIsImmediate(t *testing.T) {
	var b backoff
	highest := func(n int64) int64 { return n - 1 }
	var pauses []time.Duration
	for range 20 {
		pauses = append(pauses, b.pause(100*time.Millisecond, highest))
	}
	if pauses[0] != 0 {
		t.Errorf("the first attempt waits %s", pauses[0])
	}
	for i := 2; i < len(pauses); i++ {
		if pauses[i] < pauses[i-1] || pauses[i] > 100*time.Millisecond {
			t.Errorf("pause %d is %s after %s, want it to grow up to the limit", i, pauses[i], pauses[i-1])
		}
	}
	if pauses[19] != 100*time.Millisecond-1 {
		t.Errorf("the longest pause ends at %s, want the limit", pauses[19])
	}
}

// TestGatesBoundOpens: sessions open a few at a time per node, the queue of one node does not delay
// that of another, and every session is opened.
func TestGatesBoundOpens(t *testing.T) {
	var g gates
	var inside, most atomic.Int64
	var wg sync.WaitGroup
	for range 200 {
		wg.Go(func() {
			leave, err := g.enter(t.Context(), "a:1")
			if err != nil {
				t.Error(err)
				return
			}
			n := inside.Add(1)
			for m := most.Load(); n > m && !most.CompareAndSwap(m, n); m = most.Load() {
			}
			time.Sleep(100 * time.Microsecond)
			inside.Add(-1)
			leave()
		})
	}
	wg.Wait()
	if n := most.Load(); n != openAtOnce {
		t.Errorf("%d were inside at the same time, want %d", n, openAtOnce)
	}
	var leave []func()
	for range openAtOnce {
		f, err := g.enter(t.Context(), "hangs:1")
		if err != nil {
			t.Fatal(err)
		}
		leave = append(leave, f)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Millisecond)
	defer cancel()
	if _, err := g.enter(ctx, "hangs:1"); err == nil {
		t.Error("one more entered")
	}
	f, err := g.enter(t.Context(), "other:1")
	if err != nil {
		t.Fatal(err)
	}
	f()
	for _, f := range leave {
		f()
	}
	if len(g.gate) != 0 {
		t.Errorf("%d gates are kept without users", len(g.gate))
	}
}
