package client

import (
	"bytes"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ordergrid/ordergrid/grid-node/wire"
)

func laterOrder(i int) []byte {
	return bytes.Replace(testOrder(i), []byte("8=FIX.4.2"), []byte("8=FIXT.1.1"), 1)
}

// An order of a version that the copies are asked about is sent again, and taken once.
func TestVersionIsAwaited(t *testing.T) {
	eachIO(t, func(t *testing.T, io func(*Config)) {
		g := newFakeGrid(t, 1)
		s := openTest(t, g.dial(t, io))
		ways := map[string]func(fix []byte) error{
			"Submit":    func(fix []byte) error { _, err := s.Submit(t.Context(), fix); return err },
			"TrySubmit": func(fix []byte) error { _, err := s.TrySubmit(t.Context(), fix); return err },
			"SubmitAsync": func(fix []byte) error {
				out := make(chan error, 1)
				if err := s.SubmitAsync(fix, func(_ Receipt, err error) { out <- err }); err != nil {
					return err
				}
				return <-out
			},
		}
		for i, way := range []string{"Submit", "TrySubmit", "SubmitAsync"} {
			g.primary.setHook(rejectWith(wire.CodeVersionAwaited, 3))
			if err := ways[way](laterOrder(i)); err != nil {
				t.Fatalf("%s: %v", way, err)
			}
			checkOnce(t, g, i+1)
		}
		for _, way := range []string{"Submit", "SubmitAsync"} {
			g.primary.setHook(rejectWith(wire.CodeVersionAwaited, 1<<40)) // a copy of a release before stays
			began := time.Now()
			err := ways[way](laterOrder(9))
			if took := time.Since(began); !errors.Is(err, ErrVersionAwaited) || FateOf(err) != FateRefused || took < versionPatience*9/10 {
				t.Fatalf("%s: error %v after %s", way, err, took)
			}
		}
		checkOnce(t, g, 3)
		if st := s.Stats(); st.Submitted != 5 || st.Accepted != 3 || st.Refused != 2 || st.Violations != 0 {
			t.Errorf("stats %+v", st)
		}
	})
}

// refusing refuses orders of the later version until it is told not to, as a primary does.
type refusing struct {
	mu   sync.Mutex
	over bool
	got  map[string]int // refusals by order
}

func refuseLater(n *fakeNode) *refusing {
	r := &refusing{got: map[string]int{}}
	refuse := rejectWith(wire.CodeVersionAwaited, 1<<40)
	n.setHook(func(c *fakeConn, frame []byte) bool {
		var m wire.Submit
		if wire.FrameType(frame) != wire.TypeSubmit || wire.DecodeSubmit(frame, &m) != nil || !bytes.HasPrefix(m.Payload, laterVersion) {
			return false
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		if r.over || !refuse(c, frame) {
			return false
		}
		r.got[string(m.Payload)]++
		return true
	})
	return r
}

func (r *refusing) end() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.over = true
}

func (r *refusing) of(fix []byte) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.got[string(fix)]
}

// Pipelined orders that wait keep their order, also behind a lost connection; one of them at a time is
// sent again, and orders of other versions do not wait.
func TestAwaitedOrdersKeepTheirOrder(t *testing.T) {
	eachIO(t, func(t *testing.T, io func(*Config)) {
		g := newFakeGrid(t, 1)
		s := openTest(t, g.dial(t, io, func(c *Config) { c.RetryMax = 5 * time.Millisecond }))
		if _, err := s.Submit(t.Context(), testOrder(0)); err != nil {
			t.Fatal(err)
		}
		s.patience = time.Minute
		r := refuseLater(g.primary)
		var want []string
		add := func(fix []byte) {
			want = append(want, string(fix))
			if err := s.Enqueue(fix, func(_ Receipt, err error) {
				if err != nil {
					t.Error(err)
				}
			}); err != nil {
				t.Fatal(err)
			}
		}
		for i := range 10 {
			add(laterOrder(1 + i))
		}
		s.Push()
		waitFor(t, func() bool { return r.of(laterOrder(1)) > 3 })
		for i := range 10 {
			add(laterOrder(11 + i))
		}
		if _, err := s.Submit(t.Context(), testOrder(99)); err != nil { // of the version before
			t.Fatal(err)
		}
		seen := r.of(laterOrder(1))
		g.primary.cut()
		waitFor(t, func() bool { return r.of(laterOrder(1)) > seen+3 })
		r.end()
		if err := s.Drain(t.Context()); err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, o := range g.accepted() {
			if strings.HasPrefix(o.payload, string(laterVersion)) {
				got = append(got, o.payload)
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("accepted %q, want %q", got, want)
		}
		for i := range 19 {
			if n := r.of(laterOrder(2 + i)); n > 0 {
				t.Errorf("order %d was refused %d times, although the first one was not taken", 2+i, n)
			}
		}
		if st := s.Stats(); st.Submitted != 22 || st.Accepted != 22 || st.Violations != 0 {
			t.Errorf("stats %+v", st)
		}
	})
}

// An order that is refused for another reason does not keep those behind it, and the next one goes alone.
func TestAwaitedOrdersGoOn(t *testing.T) {
	g := newFakeGrid(t, 1)
	s := openTest(t, g.dial(t))
	g.primary.setHook(rejectWith(wire.CodeBadFIX, 1))
	out := make(chan error, 3)
	for i := range 3 {
		if err := s.Enqueue(laterOrder(i), func(_ Receipt, err error) { out <- err }); err != nil {
			t.Fatal(err)
		}
	}
	s.Push()
	for i := range 3 {
		if err := <-out; (i == 0) != errors.Is(err, ErrBadFIX) || i > 0 && err != nil {
			t.Errorf("order %d: %v", i, err)
		}
	}
	checkOnce(t, g, 2)
}

// Orders that wait take up room, and are refused when the session is closed.
func TestAwaitedOrdersAreBounded(t *testing.T) {
	g := newFakeGrid(t, 1)
	s := openTest(t, g.dial(t, func(c *Config) { c.MaxInFlight = 4 }))
	s.patience = time.Minute
	r := refuseLater(g.primary)
	out := make(chan error, 4)
	for i := range 4 {
		if err := s.SubmitAsync(laterOrder(i), func(_ Receipt, err error) { out <- err }); err != nil {
			t.Fatal(err)
		}
	}
	waitFor(t, func() bool { return r.of(laterOrder(0)) > 3 })
	if err := s.SubmitAsync(laterOrder(9), func(Receipt, error) { t.Error("called") }); !errors.Is(err, ErrWindowFull) {
		t.Errorf("error %v, want %v", err, ErrWindowFull)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	refused := 0
	for range 4 {
		if err := <-out; errors.Is(err, ErrVersionAwaited) {
			refused++
		} else if !errors.Is(err, ErrClosed) { // the one that is asked with
			t.Errorf("error %v", err)
		}
	}
	if refused < 3 {
		t.Errorf("%d of 4 orders were refused, want at least 3", refused)
	}
	checkOnce(t, g, 0)
}

// A caller that leaves, or whose time is over, is told that its order is refused.
func TestAwaitedOrderIsLeft(t *testing.T) {
	g := newFakeGrid(t, 1)
	s := openTest(t, g.dial(t, func(c *Config) { c.RequestTimeout = 100 * time.Millisecond }))
	if err := s.open(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.patience = time.Minute
	r := refuseLater(g.primary)
	var asked sync.WaitGroup
	for i := range 8 {
		asked.Go(func() { // unknown is the one that was asked with
			if _, err := s.Submit(t.Context(), laterOrder(i)); !errors.Is(err, ErrVersionAwaited) && !errors.Is(err, ErrUnknownOutcome) {
				t.Errorf("order %d: %v", i, err)
			}
		})
	}
	asked.Wait()
	r.end()
	if err := s.Drain(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := len(s.awaited.orders); n != 0 || s.awaited.probe != nil {
		t.Errorf("%d orders wait, and %v", n, s.awaited.probe)
	}
}
