package client

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// TestChaosKeepsExactlyOnce: synchronous and asynchronous submitters with short and long deadlines,
// while connections are cut, answers are lost, primaries move and go silent, and orders are refused
// because of load. At the end every receipt is one accepted order, every refused order is absent,
// and no order is there twice.
//
// CHAOS_SEED repeats a run as far as goroutine scheduling allows.
func TestChaosKeepsExactlyOnce(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	if s := os.Getenv("CHAOS_SEED"); s != "" {
		seed, _ = strconv.ParseUint(s, 10, 64)
	}
	t.Logf("CHAOS_SEED=%d", seed)
	eachIO(t, func(t *testing.T, io func(*Config)) {
		before := runtime.NumGoroutine()
		g := newFakeGrid(t, 3)
		g.window = 32
		c := g.dial(t, io, func(c *Config) {
			c.RequestTimeout, c.SuspectAfter, c.RetryMax = 20*time.Second, 10*time.Millisecond, 20*time.Millisecond
			c.Logger = slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelError}))
		})
		own := openTest(t, c)
		var outcomes sync.Map // payload -> error
		note := func(fix []byte, r Receipt, err error) {
			if _, twice := outcomes.LoadOrStore(string(fix), err); twice {
				t.Errorf("two outcomes for %q", fix)
			}
		}
		var stop atomic.Bool
		var wg, asynchronous sync.WaitGroup
		for w := range 6 {
			wg.Go(func() { chaosSubmitter(c, own, w, seed, &stop, &asynchronous, note) })
		}
		chaosMonkey(g, rand.New(rand.NewPCG(seed, 99)), 40)
		calm(g)
		stop.Store(true)
		wg.Wait()
		asynchronous.Wait()
		checkFates(t, g, &outcomes)
		st := c.Stats()
		t.Logf("%d submitted, %d accepted (%d duplicates), %d refused, %d unknown (%d late accepted, %d late refused), %d not sent, %d connects, %d resent",
			st.Submitted, st.Accepted, st.Duplicates, st.Refused, st.Unknown, st.LateAccepted, st.LateRefused, st.NotSent, st.Connects, st.Resent)
		if st.Violations != 0 {
			t.Errorf("%d violations by a correct node", st.Violations)
		}
		c.Close()
		for _, n := range g.nodes {
			n.kill()
		}
		waitFor(t, func() bool { return runtime.NumGoroutine() <= before+2 })
	})
}

func chaosSubmitter(c *Client, own *Session, w int, seed uint64, stop *atomic.Bool, pending *sync.WaitGroup, note func([]byte, Receipt, error)) {
	r := rand.New(rand.NewPCG(seed, uint64(w)))
	for i := 0; !stop.Load(); i++ {
		fix := testOrder(w*1_000_000 + i)
		ctx, cancel := context.WithCancel(context.Background())
		if r.IntN(10) == 0 { // sometimes too short to succeed except by luck
			ctx, cancel = context.WithTimeout(ctx, time.Duration(r.IntN(3000))*time.Microsecond)
		}
		submit := c.SubmitTo
		if w%2 == 0 {
			submit = func(ctx context.Context, _ wire.PartitionID, fix []byte) (Receipt, error) {
				return own.Submit(ctx, fix)
			}
		}
		if w == 5 {
			pending.Add(1)
			err := own.SubmitAsync(fix, func(receipt Receipt, err error) { note(fix, receipt, err); pending.Done() })
			if err != nil {
				pending.Done()
				note(fix, Receipt{}, err)
				runtime.Gosched()
			}
		} else {
			receipt, err := submit(ctx, testPartition, fix)
			note(fix, receipt, err)
		}
		cancel()
	}
}

// chaosMonkey injects one fault after the other. All of them can happen to a grid that keeps its
// guarantees.
func chaosMonkey(g *fakeGrid, r *rand.Rand, rounds int) {
	for range rounds {
		g.mu.Lock()
		primary := g.primary
		g.mu.Unlock()
		other := g.nodes[r.IntN(len(g.nodes))]
		switch r.IntN(8) {
		case 0:
			primary.cut()
		case 1: // applies, does not answer, loses the connection
			primary.setHook(dropAnswers)
			time.Sleep(time.Duration(r.IntN(3000)) * time.Microsecond)
			primary.setHook(nil)
			primary.cut()
		case 2:
			g.promote(other)
		case 3: // silent, another takes over, the old one comes back
			primary.setHook(func(*fakeConn, []byte) bool { return true })
			time.Sleep(time.Duration(r.IntN(5000)) * time.Microsecond)
			g.promote(other)
			time.Sleep(time.Duration(r.IntN(20000)) * time.Microsecond)
			primary.cut()
			primary.setHook(nil)
		case 4:
			primary.setHook(rejectWith(wire.CodeOverloaded, int64(r.IntN(20))))
		case 5:
			primary.setHook(rejectWith(wire.CodeDraining, int64(1+r.IntN(3))))
		case 7: // frames in flight arrive after the clients have left the connections
			primary.setHook(delaySubmits(time.Duration(r.IntN(5000)) * time.Microsecond))
			time.Sleep(time.Duration(r.IntN(3000)) * time.Microsecond)
			primary.setHook(rejectWith(wire.CodeOverloaded, int64(r.IntN(20))))
		case 6: // no primary for a while
			g.mu.Lock()
			g.epoch++
			g.primary = nil
			g.mu.Unlock()
			time.Sleep(time.Duration(r.IntN(10000)) * time.Microsecond)
			g.promote(other)
		}
		time.Sleep(time.Duration(r.IntN(10000)) * time.Microsecond)
	}
}

// delaySubmits loses a connection for its client at the first Submit on it; the
// Submits that were sent are handled later.
func delaySubmits(by time.Duration) func(*fakeConn, []byte) bool {
	return func(c *fakeConn, frame []byte) bool {
		if wire.FrameType(frame) != wire.TypeSubmit {
			return false
		}
		c.CloseWrite()
		frame = slices.Clone(frame)
		time.AfterFunc(by, func() { c.handle(frame) })
		return true
	}
}

func calm(g *fakeGrid) {
	for _, n := range g.nodes {
		n.setHook(nil)
		n.cut() // a connection on which an answer was swallowed is not usable
	}
	g.promote(g.nodes[0])
	time.Sleep(50 * time.Millisecond)
}

func checkFates(t *testing.T, g *fakeGrid, outcomes *sync.Map) {
	t.Helper()
	accepted := map[string]int{}
	for _, o := range g.accepted() {
		accepted[o.payload]++
	}
	for payload, n := range accepted {
		if n > 1 {
			t.Errorf("accepted %d times: %q", n, payload)
		}
		if _, known := outcomes.Load(payload); !known {
			t.Errorf("accepted, but its submitter has no outcome: %q", payload)
		}
	}
	fates := map[Fate]int{}
	outcomes.Range(func(payload, v any) bool {
		err, _ := v.(error)
		fate := FateOf(err)
		fates[fate]++
		n := accepted[payload.(string)]
		if fate == FateAccepted && n != 1 || fate == FateRefused && n != 0 {
			t.Errorf("%s (%v), and it is in the log %d times: %q", fate, err, n, payload)
		}
		if fate == FateUnknown && !errors.Is(err, ErrUnknownOutcome) {
			t.Errorf("an error of unknown kind: %v", err)
		}
		return true
	})
	if fates[FateAccepted] == 0 {
		t.Errorf("outcomes %s: nothing was accepted", fmt.Sprint(fates))
	}
}
