package client

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ordergrid/ordergrid/grid-node/wire"
)

func eachIO(t *testing.T, f func(t *testing.T, io func(*Config))) {
	modes := []IO{IONet}
	if haveRawIO {
		modes = append(modes, IOBlocking, IOPinned)
	}
	for _, m := range modes {
		t.Run(m.String(), func(t *testing.T) { f(t, func(c *Config) { c.IO = m }) })
	}
}

func openTest(t testing.TB, c *Client) *Session {
	t.Helper()
	s, err := c.Session(testPartition)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestSubmitGivesDenseReceipts(t *testing.T) {
	eachIO(t, func(t *testing.T, io func(*Config)) {
		g := newFakeGrid(t, 2)
		s := openTest(t, g.dial(t, io))
		last := uint64(0)
		for i := range 100 {
			r, err := s.Submit(t.Context(), testOrder(i))
			if err != nil {
				t.Fatal(err)
			}
			if r.Seq <= last || r.Copies != 2 || r.Epoch != 1 || r.Duplicate {
				t.Fatalf("receipt %+v after seq %d", r, last)
			}
			last = r.Seq
		}
		if st := s.Stats(); st.Accepted != 100 || st.Submitted != 100 || st.Violations != 0 || st.Outages != 0 {
			t.Fatalf("stats %+v", st)
		}
	})
}

func TestConcurrentSubmittersShareOneSession(t *testing.T) {
	eachIO(t, func(t *testing.T, io func(*Config)) {
		g := newFakeGrid(t, 1)
		c := g.dial(t, io)
		var wg sync.WaitGroup
		for w := range 16 {
			wg.Go(func() {
				for i := range 200 {
					if _, err := c.Submit(t.Context(), testOrder(w*1000+i)); err != nil {
						t.Error(err)
						return
					}
				}
			})
		}
		wg.Wait()
		checkOnce(t, g, 16*200)
		if st := c.Stats(); st.Connects != 1 || st.Accepted != 3200 {
			t.Fatalf("stats %+v", st)
		}
	})
}

// checkOnce asserts that the grid accepted want orders, none of them twice.
func checkOnce(t *testing.T, g *fakeGrid, want int) {
	t.Helper()
	seen := map[string]bool{}
	for _, o := range g.accepted() {
		if seen[o.payload] {
			t.Fatalf("order %q was accepted twice", o.payload)
		}
		seen[o.payload] = true
	}
	if len(seen) != want {
		t.Fatalf("%d orders accepted, want %d", len(seen), want)
	}
}

func TestAsyncPipelinesInOrder(t *testing.T) {
	eachIO(t, func(t *testing.T, io func(*Config)) {
		g := newFakeGrid(t, 1)
		s := openTest(t, g.dial(t, io))
		const n = 5000
		var mu sync.Mutex
		var got []uint64
		full := 0
		for i := 0; i < n; {
			err := s.SubmitAsync(testOrder(i), func(r Receipt, err error) {
				mu.Lock()
				defer mu.Unlock()
				if err != nil {
					t.Error(err)
				}
				got = append(got, r.Seq)
			})
			switch {
			case err == nil:
				i++
			case errors.Is(err, ErrWindowFull):
				full++
				time.Sleep(100 * time.Microsecond)
			default:
				t.Fatal(err)
			}
		}
		if err := s.Drain(t.Context()); err != nil {
			t.Fatal(err)
		}
		waitFor(t, func() bool { mu.Lock(); defer mu.Unlock(); return len(got) == n })
		for i := 1; i < n; i++ {
			if got[i] <= got[i-1] {
				t.Fatalf("callback %d has seq %d after %d", i, got[i], got[i-1])
			}
		}
		if full == 0 {
			t.Error("the window of 64 never filled: the test proves nothing about it")
		}
		checkOnce(t, g, n)
	})
}

// waitFor polls for another goroutine's effect; 20 s is a hang, not a measurement.
func waitFor(t testing.TB, f func() bool) {
	t.Helper()
	for end := time.Now().Add(5 * time.Minute); !f(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("it did not happen")
		}
	}
}

func TestCallbackMaySubmitAgain(t *testing.T) {
	g := newFakeGrid(t, 1)
	s := openTest(t, g.dial(t))
	var left atomic.Int64
	left.Store(2000)
	done := make(chan struct{})
	var next func(Receipt, error)
	next = func(_ Receipt, err error) {
		if err != nil {
			t.Error(err)
		}
		i := left.Add(-1)
		if i == 0 {
			close(done)
		}
		if i > 15 {
			if err := s.Enqueue(testOrder(int(i)), next); err != nil {
				t.Error(err)
			}
		}
	}
	for i := range 16 {
		if err := s.Enqueue(testOrder(10000+i), next); err != nil {
			t.Fatal(err)
		}
	}
	s.Push()
	<-done
	checkOnce(t, g, 2000)
}

func TestUnknownOutcomeWithoutAnswer(t *testing.T) {
	eachIO(t, func(t *testing.T, io func(*Config)) {
		g := newFakeGrid(t, 1)
		s := openTest(t, g.dial(t, io))
		ctx := newExpiring(t)
		g.primary.setHook(func(c *fakeConn, frame []byte) bool {
			ctx.at(frame)
			return dropAnswers(c, frame)
		})
		_, err := s.Submit(ctx, testOrder(1))
		var unknown *UnknownOutcomeError
		if !errors.As(err, &unknown) || !errors.Is(err, ErrUnknownOutcome) || FateOf(err) != FateUnknown || unknown.ClientSeq != 1 {
			t.Fatalf("error %v (%T), want an UnknownOutcomeError of order 1", err, err)
		}
		// The connection breaks: the order is not sent again, its number is used up, and the grid's
		// stored reply is counted.
		g.primary.setHook(nil)
		g.primary.cut()
		if _, err := s.Submit(t.Context(), testOrder(2)); err != nil {
			t.Fatal(err)
		}
		checkOnce(t, g, 2)
		if st := s.Stats(); st.Unknown != 1 || st.LateAccepted != 1 || st.Accepted != 1 {
			t.Fatalf("stats %+v", st)
		}
	})
}

func TestAnOrderGivenUpIsNeverSentAgain(t *testing.T) {
	g := newFakeGrid(t, 1)
	s := openTest(t, g.dial(t))
	// The order is lost before the node reads it.
	ctx := newExpiring(t)
	g.primary.setHook(func(c *fakeConn, frame []byte) bool { return ctx.at(frame) })
	if _, err := s.Submit(ctx, testOrder(1)); !errors.Is(err, ErrUnknownOutcome) || !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("error %v", err)
	}
	g.primary.setHook(nil)
	g.primary.cut()
	for i := 2; i < 5; i++ {
		if _, err := s.Submit(t.Context(), testOrder(i)); err != nil {
			t.Fatal(err)
		}
	}
	for _, o := range g.accepted() {
		if o.payload == string(testOrder(1)) {
			t.Fatal("the order was accepted after its submitter got an unknown outcome")
		}
	}
	if st := s.Stats(); st.LateRefused != 1 {
		t.Fatalf("stats %+v, want one late refusal", st)
	}
}

func TestNothingIsSentWithoutAPrimary(t *testing.T) {
	g := newFakeGrid(t, 1)
	s := openTest(t, g.dial(t, func(c *Config) { c.RequestTimeout = 60 * time.Millisecond }))
	g.primary.kill()
	waitFor(t, func() bool { // until the client has noticed, the first order may go into the socket
		_, err := s.Submit(t.Context(), testOrder(1))
		if err == nil {
			t.Fatal("accepted without a node")
		}
		return errors.Is(err, ErrNotSent) && FateOf(err) == FateRefused
	})
	if got := s.win.inFlight(); got > 1 {
		t.Fatalf("%d numbers in the window: unsent ones are not given back", got)
	}
}

func TestTypedRejects(t *testing.T) {
	for code, want := range codeErrors {
		switch code {
		case wire.CodeSequenceGap, wire.CodeDraining, wire.CodeSessionUnknown, wire.CodeSessionWindow, wire.CodeSessionMoved, wire.CodeVersionAwaited:
			continue // not final answers; tested on their own
		}
		t.Run(code.String(), func(t *testing.T) {
			g := newFakeGrid(t, 1)
			s := openTest(t, g.dial(t))
			g.primary.setHook(rejectWith(code, 1))
			_, err := s.Submit(t.Context(), testOrder(1))
			var reject *RejectError
			if !errors.Is(err, want) || !errors.As(err, &reject) || reject.Tag != 55 || reject.Detail != 7 || FateOf(err) != FateRefused {
				t.Fatalf("error %v", err)
			}
			if _, err := s.Submit(t.Context(), testOrder(2)); err != nil {
				t.Fatal(err)
			}
			checkOnce(t, g, 1)
		})
	}
}

// rejectWith answers the next n Submits with code, then serves. As a node does,
// it looks first whether the session is bound to the connection and whether the
// order was applied before.
func rejectWith(code wire.Code, n int64) func(c *fakeConn, frame []byte) bool {
	var left atomic.Int64
	left.Store(n)
	return func(c *fakeConn, frame []byte) bool {
		if wire.FrameType(frame) != wire.TypeSubmit || left.Load() <= 0 {
			return false
		}
		var m wire.Submit
		wire.DecodeSubmit(frame, &m)
		g, s := c.node.grid, c.session
		g.mu.Lock()
		defer g.mu.Unlock()
		if s.conn != c || s.epoch != g.epoch || g.primary != c.node || s.applied[m.ClientSeq] != 0 || left.Add(-1) < 0 {
			return false // handle takes the lock when this one is gone
		}
		c.expected = max(c.expected, m.ClientSeq+1)
		s.expected = c.expected
		c.Write(wire.AppendReject(nil, testPartition, &wire.Reject{RequestID: m.ClientSeq, Slot: m.Slot, Code: code, ForType: wire.TypeSubmit, Tag: 55, Detail: 7, Text: []byte("as told\x00")}))
		return true
	}
}

func TestOutsideTheWindowIsUnknown(t *testing.T) {
	g := newFakeGrid(t, 1)
	s := openTest(t, g.dial(t))
	g.primary.setHook(rejectWith(wire.CodeSessionWindow, 1))
	if _, err := s.Submit(t.Context(), testOrder(1)); !errors.Is(err, ErrUnknownOutcome) || !errors.Is(err, ErrSessionWindow) {
		t.Fatalf("error %v", err)
	}
}

func TestWindowFull(t *testing.T) {
	g := newFakeGrid(t, 1)
	g.window = 4
	s := openTest(t, g.dial(t, func(c *Config) { c.RequestTimeout = 10 * time.Second }))
	var release atomic.Bool
	g.primary.setHook(func(c *fakeConn, frame []byte) bool {
		for wire.FrameType(frame) == wire.TypeSubmit && !release.Load() {
			time.Sleep(time.Millisecond)
		}
		return false
	})
	var answered atomic.Int64
	for i := range 4 {
		if err := s.SubmitAsync(testOrder(i), func(_ Receipt, err error) { answered.Add(1) }); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.SubmitAsync(testOrder(9), func(Receipt, error) { t.Error("ran") }); !errors.Is(err, ErrWindowFull) {
		t.Fatalf("error %v", err)
	}
	if _, err := s.TrySubmit(t.Context(), testOrder(9)); !errors.Is(err, ErrWindowFull) {
		t.Fatalf("error %v", err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Millisecond)
	defer cancel()
	if _, err := s.Submit(ctx, testOrder(9)); !errors.Is(err, ErrNotSent) || !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("error %v", err)
	}
	release.Store(true)
	if _, err := s.Submit(t.Context(), testOrder(5)); err != nil {
		t.Fatal(err)
	}
	waitFor(t, func() bool { return answered.Load() == 4 })
	checkOnce(t, g, 5)
}

func TestCloseReportsTheFate(t *testing.T) {
	g := newFakeGrid(t, 1)
	c := g.dial(t)
	s := openTest(t, c)
	g.primary.setHook(dropAnswers)
	done := make(chan error, 1)
	go func() { _, err := s.Submit(t.Context(), testOrder(1)); done <- err }()
	waitFor(t, func() bool { return len(g.accepted()) == 1 })
	c.Close()
	if err := <-done; !errors.Is(err, ErrUnknownOutcome) || !errors.Is(err, ErrClosed) {
		t.Fatalf("error %v", err)
	}
	if _, err := s.Submit(t.Context(), testOrder(2)); !errors.Is(err, ErrNotSent) || !errors.Is(err, ErrClosed) {
		t.Fatalf("error %v", err)
	}
	if _, err := c.Submit(t.Context(), testOrder(2)); !errors.Is(err, ErrNotSent) || !errors.Is(err, ErrClosed) {
		t.Fatalf("error %v", err)
	}
}

func TestCancelledContextEndsLeaderAndFollowers(t *testing.T) {
	g := newFakeGrid(t, 1)
	s := openTest(t, g.dial(t))
	g.primary.setHook(func(c *fakeConn, frame []byte) bool { return wire.FrameType(frame) == wire.TypeSubmit })
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 8)
	for i := range 8 {
		go func() { _, err := s.Submit(ctx, testOrder(i)); done <- err }()
	}
	waitFor(t, func() bool { return s.Stats().Submitted == 8 })
	cancel()
	for range 8 {
		if err := <-done; !errors.Is(err, context.Canceled) || !errors.Is(err, ErrUnknownOutcome) {
			t.Fatalf("error %v", err)
		}
	}
}

func TestCancelledContextSendsNothing(t *testing.T) {
	g := newFakeGrid(t, 1)
	s := openTest(t, g.dial(t))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.Submit(ctx, testOrder(1)); !errors.Is(err, ErrNotSent) || !errors.Is(err, context.Canceled) {
		t.Fatalf("error %v", err)
	}
	checkOnce(t, g, 0)
}

func ExampleFateOf() {
	fmt.Println(FateOf(nil), FateOf(&RejectError{Code: wire.CodeBadFIX}), FateOf(&UnknownOutcomeError{Cause: context.DeadlineExceeded}))
	// Output: accepted refused unknown
}
