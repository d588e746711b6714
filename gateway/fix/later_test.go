package fix

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/ordergrid/ordergrid/internal/race"
)

// later is a Store that answers when it is told to, as one in a log does.
type later struct {
	*Memory
	asked []func(now Now)
	ready bool // the next Read finds what there is
	here  []bool
}

func (s *later) Open(_ Now, o Opening) {
	s.asked = append(s.asked, func(now Now) { s.Memory.Open(now, o) })
}
func (s *later) Closed()        { s.asked, s.ready = nil, false }
func (s *later) Busy() bool     { return len(s.asked) > 16 }
func (s *later) Here(here bool) { s.here = append(s.here, here) }
func (s *later) Take(_ Now, m Sent) {
	m.Body = bytes.Clone(m.Body)
	s.asked = append(s.asked, func(now Now) { s.Memory.Take(now, m) })
}

func (s *later) Read(now Now, n, to uint64) (uint64, Sent, Found) {
	if s.ready {
		s.ready = false
		return s.Memory.Read(now, n, to)
	}
	s.asked = append(s.asked, func(now Now) { s.ready = true; s.session.Continue(now) })
	return 0, Sent{}, FoundLater
}

// answer answers up to n requests.
func (s *later) answer(now Now, n int) {
	for ; n > 0 && len(s.asked) > 0; n-- {
		f := s.asked[0]
		s.asked = s.asked[1:]
		f(now)
	}
}

func laterWorld(t testing.TB, v Version) (*world, *later) {
	w := newWorld(t, Profile{ID: ID{Version: v}, ResendChunk: 3}, Config{Limits: Limits{GapMessages: 8, GapBytes: 2000, Unsent: 16 << 10}})
	s := &later{Memory: NewMemory(4 << 10)}
	w.store, w.session.store = s.Memory, s
	s.Bind(w.session)
	return w, s
}

// Nothing is sent before it has a number, and a Logon is answered when the store has the session.
func TestAnswersComeLater(t *testing.T) {
	w, s := laterWorld(t, FIX44)
	expect(t, w.send("A", "98=0|108=30|"))
	if !w.link.Busy() || w.link.LoggedOn() {
		t.Fatal("before the store has the session the link is not busy")
	}
	more := append(w.message(2, "1", "112=x|"), w.message(3, "D", w.order("o1"))...)
	if n := w.link.Receive(w.now, more); n != 0 {
		t.Fatalf("%d bytes were consumed before the Logon was answered", n)
	}
	s.answer(w.now, 1)
	expect(t, w.received())
	s.answer(w.now, 1)
	expect(t, w.received(), "|35=A|34=1|")
	w.seq = 4
	expect(t, w.raw(more))
	s.answer(w.now, 1)
	expect(t, w.received(), "|35=0|34=2|")
	expect(t, w.send("5", "")) // its answer is behind the report
	s.answer(w.now, 2)
	expect(t, w.received(), "|35=8|34=3|", "|35=5|34=4|")
	if !errors.Is(w.link.Err(), ErrLogout) {
		t.Errorf("the link ended with %v", w.link.Err())
	}
}

// A Logon that is not answered in time ends with what the store said last.
func TestLogonSaysWhyItWaited(t *testing.T) {
	for _, c := range []struct {
		why  error
		want string
	}{{nil, "the grid has not answered in 5s"}, {errors.New("the partition is full"), "was not opened in 5s: the partition is full"}} {
		w, _ := laterWorld(t, FIX44)
		w.send("A", "98=0|108=30|")
		if w.session.Waits(c.why); w.link.Err() != nil {
			t.Fatal(w.link.Err())
		}
		w.pass(6 * time.Second)
		if why, _ := LogonFailure(w.link.Err()); why != LogonNoGrid || !strings.Contains(w.link.Err().Error(), c.want) {
			t.Errorf("ended with %s, %v, want %s", why, w.link.Err(), c.want)
		}
	}
}

// Without numbers a connection ends after two heartbeat intervals and a second, without a message.
func TestNoNumbers(t *testing.T) {
	w, s := laterWorld(t, FIX44)
	w.send("A", "98=0|108=5|")
	s.answer(w.now, 2)
	w.received()
	for range 3 {
		if got := w.pass(3 * time.Second); len(got) > 0 || w.link.Err() != nil {
			t.Fatalf("received %q, the link ended with %v", got, w.link.Err())
		}
		w.send("0", "")
	}
	w.pass(4 * time.Second)
	if err := w.link.Err(); !errors.Is(err, ErrNoGrid) {
		t.Errorf("the link ended with %v", err)
	}
	if len(w.received()) > 0 {
		t.Error("something was sent")
	}
}

// A second connection is refused after its password, and the first one is asked whether it is there: if it is not, it ends.
func TestProbe(t *testing.T) {
	w, s := laterWorld(t, FIX44)
	w.send("A", "98=0|108=30|")
	s.answer(w.now, 2)
	w.received()
	w.session.Probe(w.now)
	if len(s.here) != 1 || !s.here[0] {
		t.Fatalf("just heard: %v", s.here)
	}
	w.pass(2 * time.Second)
	w.session.Probe(w.now)
	s.answer(w.now, 1)
	expect(t, w.received(), "|35=1|34=2|")
	w.send("0", "112=PROBE|")
	if len(s.here) != 2 || !s.here[1] {
		t.Fatalf("after its answer: %v", s.here)
	}
	w.pass(2 * time.Second)
	first := w.link
	w.out = &output{}
	second := w.acceptor.Open(w.now, w.out)
	second.Receive(w.now, w.message(w.seq, "A", "98=0|108=30|"))
	if why, _ := LogonFailure(second.Err()); why != LogonInUse {
		t.Errorf("the second connection ended with %v", second.Err())
	}
	w.pass(2 * time.Second)
	if err := first.Err(); !errors.Is(err, ErrTimeout) || !strings.Contains(err.Error(), "another connection wants it") {
		t.Errorf("the first connection ended with %v", err)
	}
}

// The fuzzer's sample with answers that come later, or never.
func TestSessionSampleLater(t *testing.T) {
	runs := 1000
	if race.Enabled {
		runs = 150
	}
	sample(t, runs, 0, func(t *testing.T, seed uint64) {
		w, s := laterWorld(t, FIX42+Version(seed%3))
		w.send("A", "98=0|108=30|"+map[bool]string{true: "1137=9|"}[seed%3 == 2])
		s.answer(w.now, 2)
		w.received()
		w.after = func(op byte) { s.answer(w.now, int(op%5)) }
		play(t, w, random(seed, 300))
	})
}
