package transport

import (
	"io"
	"net"
	"strings"
	"testing"
	"time"
)

// Endless deferrable work gets its share of the time while there are orders, all of it
// when there are none, and work below its share never rests.
func TestShareOfWhatCanWait(t *testing.T) {
	const piece, second = int64(100 * time.Microsecond), int64(time.Second)
	for _, c := range []struct {
		name     string
		orders   int64 // one every so many nanoseconds; 0: none
		pause    int64 // between two pieces of deferrable work
		min, max int64 // of a second
		rests    bool
	}{
		{"no orders", 0, 0, second, second, false},
		{"orders", int64(2 * time.Millisecond), 0, second / 5, second/shareOf + 2*maxCredit, true},
		{"orders, and little else", int64(2 * time.Millisecond), 4 * piece, second / 5, second / 5, false},
		{"an order now and then", 10 * urgentFor, 0, second * 4 / 5, second * 19 / 20, true},
	} {
		var s share
		worked, begin := int64(0), int64(time.Hour)
		for now := begin; now < begin+second; {
			if c.orders != 0 {
				s.urgent = now - (now-begin)%c.orders
			}
			if d := s.rest(now); d > 0 {
				now += d
				continue
			}
			s.spent(now, now+piece)
			worked += piece
			now += piece + c.pause
		}
		if worked < c.min || worked > c.max {
			t.Errorf("%s: what can wait had %v of a second, want %v to %v", c.name, time.Duration(worked), time.Duration(c.min), time.Duration(c.max))
		}
		if rested := s.rests > 0; rested != c.rests {
			t.Errorf("%s: %d rests, want some: %v", c.name, s.rests, c.rests)
		}
	}
}

// A loop that was suspended for long within a piece of deferrable work owes no more than a
// bounded rest.
func TestRestIsBounded(t *testing.T) {
	s := share{urgent: int64(time.Hour)}
	now := s.urgent + int64(50*time.Millisecond)
	s.spent(s.urgent, now)
	if d, limit := s.rest(now), (maxCredit+restUntil)*shareOf; d == 0 || d > limit {
		t.Errorf("a rest of %v, want up to %v", time.Duration(d), time.Duration(limit))
	}
}

// Of the input that arrived while the loop was busy, that of a connection with an earlier
// order is served first, then that of others; until it requests so much that it has to
// wait for its turn.
func TestPromptConnectionsGoFirst(t *testing.T) {
	forEach(t, func(t *testing.T, kind Kind) {
		d := &desk{answer: 1 << 10, inTurns: true}
		addr, hold := serveDesk(t, kind, Config{Work: 16 << 10, SoftOut: 8 << 20}, d)
		others := make([]net.Conn, 50)
		for i := range others {
			others[i] = dial(t, addr)
		}
		prompt := dial(t, addr)
		say := func(what string, answers int) {
			if _, err := prompt.Write([]byte(what)); err != nil {
				t.Fatal(err)
			}
			if _, err := io.ReadFull(prompt, make([]byte, answers)); err != nil {
				t.Fatal(err)
			}
		}
		say("u", 1)
		isPrompt := func() bool {
			return onLoop(t, d.loop, func() (n int) {
				for _, c := range connsOf(d.loop).conns {
					if c.prompt {
						n++
					}
				}
				return n
			}) == 1
		}
		eventually(t, "the connection with an order is prompt", isPrompt)
		eventually(t, "all are accepted", func() bool { return onLoop(t, d.loop, d.loop.Stats).Conns == len(others)+1 })
		release := hold()
		for _, c := range others {
			if _, err := c.Write([]byte("r")); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := prompt.Write([]byte("u")); err != nil {
			t.Fatal(err)
		}
		if l, ok := d.loop.(*netLoop); ok { // a goroutine reads it
			eventually(t, "it is read", func() bool { return len(l.events) > 0 })
		}
		release()
		if _, err := io.ReadFull(prompt, make([]byte, 1)); err != nil {
			t.Fatal(err)
		}
		for _, c := range others {
			if _, err := io.CopyN(io.Discard, c, int64(d.answer)); err != nil {
				t.Fatal(err)
			}
		}
		if n := onLoop(t, d.loop, func() int { return d.atUrgent[1] }); n > 0 {
			t.Errorf("%d bytes were answered to others before what cannot wait, want none", n)
		}
		say(strings.Repeat("r", 100), 100*d.answer)
		eventually(t, "a connection that had to wait is not prompt any more", func() bool { return !isPrompt() })
	})
}

// A connection that reads its answers repeatedly is prompt too.
func TestWhoTakesItsAnswersIsPrompt(t *testing.T) {
	forEach(t, func(t *testing.T, kind Kind) {
		d := &desk{answer: 1 << 10, inTurns: true}
		addr, _ := serveDesk(t, kind, Config{}, d)
		c := dial(t, addr)
		eventually(t, "it is prompt", func() bool {
			if _, err := c.Write([]byte("r")); err != nil {
				t.Fatal(err)
			}
			if _, err := io.CopyN(io.Discard, c, int64(d.answer)); err != nil {
				t.Fatal(err)
			}
			return onLoop(t, d.loop, func() bool {
				for _, c := range connsOf(d.loop).conns {
					return c.prompt
				}
				return false
			})
		})
	})
}

// The buffer of an unfinished frame is at most about twice as long as its received part,
// whatever length was announced.
func TestUnfinishedFramesHoldWhatCame(t *testing.T) {
	const clients, first, sent = 20, 17 << 10, 20 << 10
	forEach(t, func(t *testing.T, kind Kind) {
		e := &echo{maxBody: 1 << 20}
		addr := serve(t, kind, Config{}, e)
		came := func() (n int) {
			for _, c := range connsOf(e.loop).conns {
				n += len(c.in)
			}
			return n
		}
		begun := frame(strings.Repeat("f", 1<<20))
		conns := make([]net.Conn, clients)
		for i := range conns {
			conns[i] = dial(t, addr)
		}
		for from, to := 0, first; from < sent; from, to = to, sent {
			for _, c := range conns {
				if _, err := c.Write(begun[from:to]); err != nil {
					t.Fatal(err)
				}
			}
			eventually(t, "it is read", func() bool { return onLoop(t, e.loop, came) == clients*to })
		}
		if n := onLoop(t, e.loop, e.loop.Stats).InputHeld; n < clients*sent || n > 5*clients*sent/2 {
			t.Errorf("%d bytes of buffers for %d received", n, clients*sent)
		}
	})
}

// Connections past their deadline are closed a few at a time, all of them in the end.
func TestSweepIsBounded(t *testing.T) {
	l := newCore(Config{MaxConns: 1}.withDefaults(), &echo{})
	for range 3*sweptAtOnce + 1 {
		c := &Conn{sock: noSocketOfTest{}, partialAt: 1}
		l.add(c)
	}
	for i, want := range []int{2*sweptAtOnce + 1, sweptAtOnce + 1, 1, 0} {
		if done := l.sweep(int64(time.Hour)); done != (want == 0) {
			t.Errorf("sweep %d is done: %v", i, done)
		}
		if l.reap(); len(l.conns) != want {
			t.Errorf("%d connections after sweep %d, want %d", len(l.conns), i, want)
		}
	}
}

type noSocketOfTest struct{ connSocket }

func (noSocketOfTest) unsent() int         { return 0 }
func (noSocketOfTest) dead() bool          { return false }
func (noSocketOfTest) release(*Conn, bool) {}

func (l *core) itself() *core { return l }

func connsOf(l Loop) *core { return l.(interface{ itself() *core }).itself() }
