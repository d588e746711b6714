package replica_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/ordergrid/ordergrid/grid-node/machine"
	"github.com/ordergrid/ordergrid/grid-node/match"
	"github.com/ordergrid/ordergrid/grid-node/order"
	"github.com/ordergrid/ordergrid/grid-node/replica"
)

// trading is a pair that matches, whose pods have a calendar.
type trading struct {
	*limited
	began int64 // Unix ns
}

func newTrading(t *testing.T) *trading {
	w := newWorld(t, worldOptions{replicas: 2, minInSync: 1, limits: replica.Limits{Window: 8}, proved: true, matches: true})
	w.quiet = true
	w.faults.cut = map[[2]string]bool{}
	w.deliver()
	w.tick(1000 * ms)
	return &trading{&limited{w, t}, w.now().Wall}
}

// calendar has phases so many milliseconds from the beginning on.
func (x *trading) calendar(generation int, phases ...replica.Phase) *replica.Calendar {
	c := &replica.Calendar{}
	if generation > 0 {
		c.Source = fmt.Appendf(nil, `{"grid":"g","object":"s","sinceMs":1000,"generation":%d}`, generation)
	}
	for _, p := range phases {
		c.Phases = append(c.Phases, replica.Phase{At: x.began + p.At*ms, State: p.State})
	}
	return c
}

func (x *trading) follow(pod string, c *replica.Calendar) { x.node(pod).r.SetCalendar(c) }

// entered lists the phases that the log of a pod has, as milliseconds from the beginning, operation and state.
func (x *trading) entered(pod string) string {
	var all []string
	st := x.node(pod).st
	first, _ := st.Base()
	last, _ := st.Last()
	for seq := first + 1; seq <= last; seq++ {
		var e order.Entry
		b := st.Get(seq)
		if _, err := order.DecodeEntry(b, &e); err != nil {
			x.t.Fatal(err)
		}
		if e.Kind != order.KindMarket {
			continue
		}
		if m := order.MarketOf(order.Payload(b)); m.Op == order.MarketScheduled {
			all = append(all, fmt.Sprintf("%d %d>%d", (int64(m.Values[4])-x.began)/ms, m.Kind, m.State))
		}
	}
	return strings.Join(all, ", ")
}

func (x *trading) wantPhases(when, pod, phases string, state match.State) {
	x.t.Helper()
	if got := x.entered(pod); got != phases {
		x.t.Errorf("%s: the log of %s has the phases %s, want %s", when, pod, got, phases)
	}
	x.node(pod).r.EachBook(x.now().Wall, func(s machine.BookState, _ *machine.Instrument) {
		if s.State != state {
			x.t.Errorf("%s: the book of %s is in state %d, want %d", when, pod, s.State, state)
		}
	})
}

const (
	closed = match.Closed
	call   = match.Call
	open   = match.Open
)

// TestCalendarPhases: phases begin at their time, on all copies; the next primary does none twice, and makes up for those that
// were missed meanwhile, in order.
func TestCalendarPhases(t *testing.T) {
	x := newTrading(t)
	c := x.calendar(1, replica.Phase{At: -2000, State: closed}, replica.Phase{At: -1000, State: open}, replica.Phase{At: 500, State: call}, replica.Phase{At: 900, State: open},
		replica.Phase{At: 1500, State: closed}, replica.Phase{At: 1700, State: call}, replica.Phase{At: 1750, State: open}, replica.Phase{At: 9000, State: call})
	x.follow("a", c)
	x.follow("b", c)
	x.tick(300 * ms)
	x.wantPhases("a book that has entered none", "b", "-1000 0>3", open)
	x.tick(500 * ms)
	x.wantPhases("in the call", "b", "-1000 0>3, 500 5>1", call)
	x.tick(300 * ms)
	x.wantPhases("behind the auction", "a", "-1000 0>3, 500 5>1, 900 6>3", open)
	x.crash(x.node("a"), true) // at 1100, and the take-over is over behind 1750
	x.deliver()
	x.tick(2500 * ms)
	x.wantPhases("behind the take-over", "b", "-1000 0>3, 500 5>1, 900 6>3, 1500 5>0, 1700 5>1, 1750 6>3", open)
	n, b := 0, x.node("b").r
	b.OutOfPhase(x.now().Wall, func(*machine.Instrument, match.State) { n++ })
	if n != 0 || !b.SameCalendar() || b.CalendarWaits() != "" {
		t.Errorf("%d books are out of their phase, %q", n, b.CalendarWaits())
	}
}

// TestCalendarAndPersons: a halted book stays so, and enters its phase when the halt ends; one that was halted in a call opens
// by an auction; one that was closed in a call does, too.
func TestCalendarAndPersons(t *testing.T) {
	x := newTrading(t)
	x.follow("a", x.calendar(0, replica.Phase{At: -1000, State: open}, replica.Phase{At: 300, State: call}, replica.Phase{At: 600, State: open}, replica.Phase{At: 3000, State: call}, replica.Phase{At: 4000, State: open}))
	ask := func(op match.Op) {
		t.Helper()
		n := x.node("a")
		if err := n.r.Market(x.now(), &op, &n.out); err != nil {
			t.Fatal(err)
		}
		n.step(replica.Event{Kind: replica.EventTick})
		x.deliver()
	}
	x.tick(400 * ms)
	x.wantPhases("in the call", "b", "-1000 0>3, 300 5>1", call)
	ask(match.Op{Kind: match.SetState, State: match.Halted})
	x.tick(1600 * ms)
	x.wantPhases("halted", "b", "-1000 0>3, 300 5>1", match.Halted)
	ask(match.Op{Kind: match.SetState, State: match.Call})
	x.tick(1100 * ms)
	x.wantPhases("no longer", "b", "-1000 0>3, 300 5>1, 600 6>3, 3000 5>1", call)
	ask(match.Op{Kind: match.SetState, State: match.Closed})
	x.tick(1200 * ms)
	x.wantPhases("closed in the call", "b", "-1000 0>3, 300 5>1, 600 6>3, 3000 5>1, 4000 6>3", open)
}

// TestCalendarThatIsBehind: a primary whose calendar is an earlier one than that of the log does nothing by it until it has a
// later one.
func TestCalendarThatIsBehind(t *testing.T) {
	x := newTrading(t)
	before := x.calendar(1, replica.Phase{At: -1000, State: open}, replica.Phase{At: 3000, State: closed})
	after := x.calendar(2, replica.Phase{At: -1000, State: open}, replica.Phase{At: 4000, State: call})
	x.follow("a", before)
	x.follow("b", before)
	x.tick(200 * ms)
	x.follow("a", after)
	x.tick(200 * ms)
	x.fail("a")
	x.tick(2000 * ms)
	x.wantPhases("with a calendar that is behind", "b", "-1000 0>3", open)
	if why := x.node("b").r.CalendarWaits(); !strings.Contains(why, "the file has generation 1 of s") || !strings.Contains(why, "the log generation 2") {
		t.Errorf("it waits because of %q", why)
	}
	x.follow("b", after)
	x.tick(1100 * ms)
	x.wantPhases("with that of the log", "b", "-1000 0>3, 4000 5>1", call)
}

// TestCalendarIsAgreedOn: no phase is entered before every copy knows such entries.
func TestCalendarIsAgreedOn(t *testing.T) {
	x := newTrading(t)
	x.older = "b"
	x.follow("a", x.calendar(1, replica.Phase{At: -1000, State: closed}))
	x.tick(1500 * ms)
	x.wantPhases("while a copy is of a release before", "a", "", open)
	x.older = ""
	x.crash(x.node("b"), true)
	x.deliver()
	x.tick(2000 * ms)
	x.wantPhases("while it is away", "a", "", open)
	x.back("b")
	x.tick(2500 * ms)
	x.wantPhases("when it is of this release", "b", "-1000 5>0", closed)
}
