package client

import (
	"context"
	"io"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// TestOutagesAreReported: what the session, the client, the callback and the counters report of one
// outage of each kind.
func TestOutagesAreReported(t *testing.T) {
	for name, tc := range map[string]struct {
		strike func(g *fakeGrid)
		cause  OutageCause
		moved  bool // another primary
	}{
		"cut":       {func(g *fakeGrid) { g.primary.cut() }, OutageReset, false},
		"killed":    {func(g *fakeGrid) { old := g.primary; g.promote(g.nodes[1]); old.kill() }, OutageReset, true},
		"hand-over": {func(g *fakeGrid) { g.promote(g.nodes[1]) }, OutageMoved, true},
		"draining":  {func(g *fakeGrid) { g.primary.setHook(rejectWith(wire.CodeDraining, 1)) }, OutageMoved, false},
		"silent": {func(g *fakeGrid) {
			g.primary.setHook(func(*fakeConn, []byte) bool { return true })
			g.promote(g.nodes[1])
		}, OutageSilent, true},
		"garbage": {func(g *fakeGrid) {
			g.primary.setHook(func(c *fakeConn, frame []byte) bool {
				c.node.setHook(nil)
				c.Write([]byte("\xff\xff\xff\xff\xff\xff\xff\xff"))
				return true
			})
		}, OutageProtocol, false},
	} {
		t.Run(name, func(t *testing.T) {
			g := newFakeGrid(t, 2)
			called := make(chan Outage, 10)
			c := g.dial(t, func(c *Config) {
				c.SuspectAfter = 10 * time.Millisecond
				c.OnOutage = func(o Outage) { called <- o }
			})
			s := openTest(t, c)
			if _, err := s.Submit(t.Context(), testOrder(0)); err != nil {
				t.Fatal(err)
			}
			before := time.Now()
			old := g.primary.name
			tc.strike(g)
			for i := range 3 {
				if _, err := s.Submit(t.Context(), testOrder(1+i)); err != nil {
					t.Fatal(err)
				}
			}
			o := <-called
			t.Log(o)
			// An attempt has a time limit, so a starved machine may need another.
			if o.Cause != tc.cause || o.Partition != testPartition || o.Attempts < 1 || o.Err == nil {
				t.Errorf("outage %+v, want cause %s", o, tc.cause)
			}
			if o.OldEpoch != 1 || o.OldPrimary != old || (o.NewPrimary != old) != tc.moved || (o.NewEpoch == 2) != tc.moved {
				t.Errorf("outage %s, want epoch 1 and %s before, another one after: %t", o, old, tc.moved)
			}
			if !o.LastAnswer.Before(before) || o.From.Before(o.LastAnswer) || !o.To.After(before) || o.Duration() <= 0 {
				t.Errorf("outage from %s to %s, last answer %s, struck at %s", o.From, o.To, o.LastAnswer, before)
			}
			st := c.Stats()
			if st.Outages != 1 || st.LastOutage != o || st.LongestOutage != o || st.OutageTotal != o.Duration() {
				t.Errorf("stats %+v", st)
			}
			if list := c.Outages(); len(list) != 1 || list[0] != o || len(s.Outages()) != 1 {
				t.Errorf("outages %v", list)
			}
			counted := uint64(0)
			for i, n := range st.OutageCounts {
				if counted += n; n == 1 && i < len(OutageBounds) && o.Duration() > OutageBounds[i] {
					t.Errorf("an outage of %s is counted among those of at most %s", o.Duration(), OutageBounds[i])
				}
			}
			if counted != 1 || len(called) != 0 {
				t.Errorf("%d outages counted, %d more reported", counted, len(called))
			}
		})
	}
}

func TestIdleSessionsHaveNoOutage(t *testing.T) {
	g := newFakeGrid(t, 1)
	s := openTest(t, g.dial(t))
	for i := range 3 {
		if _, err := s.Submit(t.Context(), testOrder(i)); err != nil {
			t.Fatal(err)
		}
		g.primary.cut()
		s.p.mu.Lock() // what a reader would see, if one were there while nothing is owed
		if c := s.p.conn; c != nil {
			s.p.fail(c, io.EOF)
		}
		s.p.mu.Unlock()
	}
	if _, err := s.Submit(t.Context(), testOrder(9)); err != nil {
		t.Fatal(err)
	}
	for _, o := range s.Outages() {
		if o.From.Before(o.LastAnswer) || o.Duration() > time.Since(o.From) {
			t.Errorf("outage %s, last answer %s", o, o.LastAnswer)
		}
	}
}

func TestOutageListsAreBounded(t *testing.T) {
	var l outageLog
	for i := range 100 {
		l.add(Outage{Attempts: i}, sessionOutages)
	}
	if got := l.copy(); len(got) != sessionOutages || got[0].Attempts != 100-sessionOutages || got[sessionOutages-1].Attempts != 99 {
		t.Errorf("%d outages, from %d", len(got), got[0].Attempts)
	}
}

func TestOutageMayUseTheClient(t *testing.T) {
	g := newFakeGrid(t, 1)
	var c *Client
	done := make(chan error, 1)
	c = g.dial(t, func(cfg *Config) {
		cfg.OnOutage = func(Outage) {
			c.Stats()
			_, err := c.Submit(context.Background(), testOrder(99))
			done <- err
		}
	})
	s := openTest(t, c)
	var once sync.Once
	g.primary.setHook(func(fc *fakeConn, frame []byte) bool {
		if wire.FrameType(frame) == wire.TypeSubmit {
			once.Do(func() { fc.Close() })
		}
		return false
	})
	if _, err := s.Submit(t.Context(), testOrder(1)); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Fatal(err)
	}
}

func TestCauses(t *testing.T) {
	for _, tc := range []struct {
		err  error
		want OutageCause
	}{
		{io.EOF, OutageReset},
		{syscall.ECONNREFUSED, OutageReset},
		{context.DeadlineExceeded, OutageSilent},
		{&silentError{"a:1", time.Second, "and"}, OutageSilent},
		{&notPrimaryError{}, OutageMoved},
		{&GoawayError{Code: wire.GoawayDraining}, OutageMoved},
		{&GoawayError{Code: wire.GoawayLimit}, OutageRefused},
		{&RejectError{Code: wire.CodeSessionMoved}, OutageMoved},
		{&RejectError{Code: wire.CodeOverloaded}, OutageRefused},
		{errEvicted, OutageRefused},
		{&ProtocolError{Cause: &RejectError{Code: wire.CodeSequenceGap}}, OutageProtocol},
	} {
		if got := causeOf(tc.err); got != tc.want {
			t.Errorf("%v: cause %s, want %s", tc.err, got, tc.want)
		}
	}
}
