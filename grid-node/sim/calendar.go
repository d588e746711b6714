package sim

import (
	"bytes"
	"fmt"
	"math/rand/v2"

	"github.com/ordergrid/ordergrid/grid-node/machine"
	"github.com/ordergrid/ordergrid/grid-node/match"
	"github.com/ordergrid/ordergrid/grid-node/order"
	"github.com/ordergrid/ordergrid/grid-node/replica"
)

// A calendar of sessions (docs/adr/0106) in a third of the worlds match: phases during all the faults, which call auctions, end
// them, close books and open them. It is changed some times, and each pod reads the change at a time of its own.

// schedules decides whether there is a calendar, with a random source of its own.
func schedules(p *profile, seed uint64) {
	if rng := rand.New(rand.NewPCG(seed, 0x63616c656e646172)); rng.IntN(3) == 0 {
		p.calendar = rng
	}
}

const calendarContents = 4

// makeCalendars makes the contents of the file, oldest first: those to come differ in the phases that are still to come.
func (w *world) makeCalendars() {
	rng := w.profile.calendar
	if rng == nil {
		return
	}
	var phases []replica.Phase
	for n := range calendarContents {
		from := w.profile.chaos * int64(n) / calendarContents
		for len(phases) > 0 && phases[len(phases)-1].At > wallStart+from {
			phases = phases[:len(phases)-1]
		}
		for at := from + rng.Int64N(200*millisecond); at < w.profile.chaos; at += 20*millisecond + rng.Int64N(400*millisecond) {
			state := []match.State{match.Open, match.Call, match.Open, match.Call, match.Closed}[rng.IntN(5)]
			phases = append(phases, replica.Phase{At: wallStart + at + 1, State: state})
		}
		// Books that nothing can be done in would show little.
		phases = append(phases, replica.Phase{At: wallStart + w.profile.chaos + int64(n) + 1, State: match.Open})
		w.calendars = append(w.calendars, &replica.Calendar{Phases: append([]replica.Phase{}, phases...),
			Source: fmt.Appendf(nil, `{"grid":"g","object":"s","sinceMs":1000,"generation":%d}`, n+1)})
	}
}

// scheduleCalendars has every pod read every content, some later than others.
func (w *world) scheduleCalendars() {
	rng := w.profile.calendar
	if rng == nil {
		return
	}
	for n := 1; n < calendarContents; n++ {
		at := w.profile.chaos * int64(n) / calendarContents
		for _, p := range w.pods {
			w.after(at+rng.Int64N(second), func() {
				if p.calendar < n {
					p.calendar = n
					w.logf("%s has calendar %d", p.name, n)
					if p.proc != nil {
						p.proc.deliver(p.proc.readCalendar)
					}
				}
			})
		}
	}
}

// calendarOf is the one that the processes of a pod have.
func (p *pod) calendarOf() *replica.Calendar {
	if p.w.profile.calendar == nil {
		return nil
	}
	return p.w.calendars[p.calendar]
}

func (p *process) readCalendar() {
	if p.alive && !p.w.stopped {
		p.r.SetCalendar(p.pod.calendarOf())
		p.step(&replica.Event{Kind: replica.EventTick})
	}
}

// calendarAwaited returns which copy has not the last calendar, or a book that it has not brought into its phase, as far as
// the clock of the primary has come.
func (w *world) calendarAwaited() (why string) {
	if w.profile.calendar == nil {
		return ""
	}
	p := w.processOf(w.api.rec.Primary.Boot)
	if p == nil {
		return "there is no primary"
	}
	if !p.r.SameCalendar() {
		return p.name + " has not the last calendar in its log"
	}
	p.r.OutOfPhase(p.pod.clock.time(w.now).Wall, func(in *machine.Instrument, s match.State) {
		why = fmt.Sprintf("%s is in state %d, and not in its phase", in.Symbol, s)
	})
	return why
}

// schedule is what committed entries say of the calendar.
type schedule struct {
	calendar int     // which of world.calendars, from 1; 0 before the first
	done     []int64 // by book
	entered  int
}

// scheduled: I56, a phase of a book is one of the calendar in use, begins not before its time, once, and in order; and no
// earlier calendar comes into use again.
func (j *judge) scheduled(w *world) string {
	m, s := &j.m, &j.schedule
	switch m.Op {
	case order.MarketCalendar:
		n := 0
		for i, c := range w.calendars {
			if bytes.Equal(c.Source, m.Symbol) {
				n = i + 1
			}
		}
		if n <= s.calendar {
			return fmt.Sprintf("I56: calendar %d is in use again, behind %d", n, s.calendar)
		}
		s.calendar = n
	case order.MarketScheduled:
		at, to := int64(m.Values[4]), match.State(m.State)
		for len(s.done) <= int(m.Book) {
			s.done = append(s.done, 0)
		}
		switch {
		case s.calendar == 0 || !hasPhase(w.calendars[s.calendar-1], at, to):
			return fmt.Sprintf("I56: a phase of book %d, to state %d at %d, that calendar %d has not", m.Book, to, at, s.calendar)
		case at > j.e.TimeNs:
			return fmt.Sprintf("I56: a phase that is due at %d, at %d", at, j.e.TimeNs)
		case at <= s.done[m.Book]:
			return fmt.Sprintf("I56: a phase that is due at %d behind that of %d", at, s.done[m.Book])
		}
		s.done[m.Book] = at
		s.entered++
	}
	return ""
}

func hasPhase(c *replica.Calendar, at int64, state match.State) bool {
	for _, p := range c.Phases {
		if p.At == at && p.State == state {
			return true
		}
	}
	return false
}

// inPhase: behind the entry of a phase its book is in it, or on its way out of a call.
func (j *judge) inPhase(records []match.Record) string {
	m := &j.m
	if j.e.Kind != order.KindMarket || m.Op != order.MarketScheduled {
		return ""
	}
	now, to := j.states[m.Book], match.State(m.State)
	if now == to || now == match.Uncrossing && match.OpKind(m.Kind) == match.Uncross || now == match.Halted && m.Kind == 0 {
		return ""
	}
	return fmt.Sprintf("I56: book %d is in state %d behind the entry of a phase of state %d, by operation %d, which did %+v", m.Book, now, to, m.Kind, records)
}

// auctioned judges a trade of an auction: of orders that were collected, at its price. Which of them trade is judged by the
// naive matcher.
func (j *judge) auctioned(buy, sell *match.Record) string {
	b, s := j.orders[buy.Order], j.orders[sell.Order]
	switch {
	case b == nil || s == nil || b.side != match.Buy || s.side != match.Sell || buy.Other != s.id || sell.Other != b.id:
		return "a trade in an auction of others than a buy and a sell that were collected"
	case b.doomed || s.doomed:
		return fmt.Sprintf("I49: a trade of %d with %d in an auction, one of which a mass cancel includes", b.id, s.id)
	case b.gone || s.gone:
		return fmt.Sprintf("I50: a trade of %d with %d in an auction, one of which is of a session that has lapsed", b.id, s.id)
	case buy.Price != j.price[b.book] || sell.Price != buy.Price || !b.market && b.price < buy.Price || !s.market && s.price > buy.Price:
		return fmt.Sprintf("a trade at %d in an auction at %d, of %+v with %+v", buy.Price, j.price[b.book], b, s)
	case buy.Qty != sell.Qty || buy.Qty > min(b.leaves, s.leaves):
		return fmt.Sprintf("a trade of %d and %d in an auction, of %+v with %+v", buy.Qty, sell.Qty, b, s)
	}
	j.auctions++
	j.traded[b.book][match.Buy] += buy.Qty
	j.traded[b.book][match.Sell] += sell.Qty
	return j.fill(b, buy, buy.Qty) + j.fill(s, sell, buy.Qty)
}
