package replica

import (
	"fmt"
	"sort"

	"github.com/ordergrid/ordergrid/grid-node/limits"
	"github.com/ordergrid/ordergrid/grid-node/machine"
	"github.com/ordergrid/ordergrid/grid-node/match"
	"github.com/ordergrid/ordergrid/grid-node/order"
	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// The calendar of sessions, docs/adr/0106: the primary brings each book into the state of a phase
// when its clock has reached it, by an entry that also says which phase that was. Copies read no
// clock, and the next primary goes on behind what the log has.

// Calendar is what is to happen in all books.
type Calendar struct {
	// Source is that of the calendar, as limits.Source writes it; nil: of a file that a person keeps.
	Source []byte
	// Phases, earliest first, of some days before the present and some behind it.
	Phases []Phase
}

// Phase is the state of books from a time on.
type Phase struct {
	At    int64       // Unix ns
	State match.State // Open, Call or Closed
}

// Bounds of what the calendar does.
const (
	phasesKept   = 24 * 3600 * 1_000_000_000 // ns: a phase that is overdue by more is left out for a later one
	phasesAtOnce = 64                        // entries of a wake-up
	phaseLook    = 1_000_000_000             // ns between looks at books that are not in their phase
)

// schedule is the state of a replica with a calendar.
type schedule struct {
	calendar *Calendar // nil: none
	source   *limits.Source
	lookAt   int64            // Mono: nothing is due before
	own      map[uint16]int64 // for a mutant
}

// SetCalendar changes what this replica does as a primary. c is not changed afterwards; nil: nothing is done.
func (r *Replica) SetCalendar(c *Calendar) {
	r.schedule, r.restTill = schedule{calendar: c}, 0
	if c != nil && c.Source != nil {
		r.schedule.source, _ = machine.SourceOf(c.Source) // the log refuses what is none
	}
}

// CalendarWaits returns why this primary does nothing by its calendar, empty if it does.
func (r *Replica) CalendarWaits() string {
	s := &r.schedule
	if r.role != RolePrimary || s.calendar == nil || r.live.Books == nil {
		return ""
	}
	switch of := r.live.Books.CalendarSource(); {
	case of == nil || s.source != nil && *s.source == *of:
		return ""
	case s.source.Supersedes(of):
		return "the calendar is not in the log yet"
	default:
		return fmt.Sprintf("the file has %v, and the log %v: nothing is done by it until the file has a later one", s.source, of)
	}
}

// calendarDue reports whether this primary may have something to do by its calendar.
func (r *Replica) calendarDue() bool {
	s := &r.schedule
	return s.calendar != nil && r.role == RolePrimary && r.live.Books.Ready() && r.now.Mono >= s.lookAt
}

// logCalendar does what is due, as a primary.
func (r *Replica) logCalendar() {
	if !r.calendarDue() || !r.mayLogExecution() || mutant(mutCalendarForgotten) && r.epoch > 1 {
		return
	}
	s, b := &r.schedule, r.live.Books
	s.lookAt = r.now.Mono + r.nextLook()
	if !b.Scheduled() && !r.allHere(wire.FeatureCalendar) {
		s.lookAt = r.now.Mono + min(phaseLook, int64(r.opt.Timing.Resend)) // when they have answered
		return
	}
	if of := b.CalendarSource(); of != nil && (s.source == nil || *s.source != *of) || of == nil && s.source != nil {
		if back := mutant(mutCalendarBack) && !s.source.Supersedes(of); !back && (!s.source.Supersedes(of) || r.logMarket(&order.Market{Op: order.MarketCalendar, Symbol: s.calendar.Source}, pending{}) != nil) {
			return
		}
	}
	n := 0
	for book := range b.Instruments() {
		for {
			if n == phasesAtOnce || b.Pending() {
				s.lookAt = r.now.Mono // an auction, or a mass cancel, is still under way
				return
			}
			p := s.calendar.due(r.doneOf(uint16(book)), r.now.Wall)
			if p == nil {
				break
			}
			if !r.enter(uint16(book), p) {
				if !r.mayLogExecution() {
					s.lookAt = r.now.Mono // its window is full
					return
				}
				break
			}
			n++
		}
	}
}

// nextLook is the time until something may be due.
func (r *Replica) nextLook() int64 {
	list := r.schedule.calendar.Phases
	at := sort.Search(len(list), func(i int) bool { return list[i].At > r.now.Wall })
	if at == len(list) {
		return phaseLook
	}
	return min(phaseLook, list[at].At-r.now.Wall)
}

// due returns the phase that a book is to enter next, nil for none. What was missed is made up in
// order; but of a book that has entered none, and of what is overdue by more than a day, only the
// last one counts.
func (c *Calendar) due(done, now int64) *Phase {
	list := c.Phases
	end := sort.Search(len(list), func(i int) bool { return list[i].At > now })
	if end == 0 || list[end-1].At <= done {
		return nil
	}
	from := max(done+1, now-phasesKept)
	first := sort.Search(end, func(i int) bool { return list[i].At >= from })
	if done == 0 || first == end {
		first = end - 1
	}
	return &list[first]
}

// enter brings a book into a phase; false: it cannot be now. A book that is halted stays so until
// the halt ends, and enters then.
func (r *Replica) enter(book uint16, to *Phase) bool {
	b := r.live.Books
	p := b.Phase(book)
	state := p.State
	if state == match.Halted && p.Until != 0 && r.now.Wall >= p.Until {
		state = p.Resume // by the next operation on the book
	}
	m := order.Market{Op: order.MarketScheduled, Book: book, State: uint8(to.State), Values: [5]uint64{4: uint64(to.At)}}
	switch {
	case state == match.Halted || state == match.Uncrossing:
		return false
	case state == to.State:
	case state == match.Call && to.State != match.Call:
		m.Kind = uint8(match.Uncross)
	case to.State == match.Open && p.Crossed: // it was closed in the middle of a call
		again := order.Market{Op: order.MarketApply, Kind: uint8(match.SetState), Book: book, State: uint8(match.Call)}
		if r.logMarket(&again, pending{}) != nil {
			return false
		}
		m.Kind = uint8(match.Uncross)
	default:
		m.Kind = uint8(match.SetState)
	}
	if match.OpKind(m.Kind) == match.Uncross && !p.Traded {
		m.Values[0] = uint64(referenceWithin(b.Instruments()[book].Ref, &p))
	}
	if mutant(mutCalendarTwice) {
		if r.schedule.own == nil {
			r.schedule.own = map[uint16]int64{}
		}
		r.schedule.own[book] = to.At
		return r.mayLogExecution() && r.append(&order.Entry{Kind: order.KindMarket}, m.Append(nil), 0, pending{}) == nil
	}
	return r.logMarket(&m, pending{}) == nil
}

// referenceWithin returns the reference price of an auction before the first trade where the band was
// moved away from that of the instrument: the nearest in the band. 0 is that of the instrument.
func referenceWithin(of int64, p *match.Phase) int64 {
	switch {
	case of >= p.Low && of <= p.Top:
		return 0
	case of > p.Top && p.Top != 0 || p.Low == 0:
		return p.Top
	}
	return p.Low
}

// doneOf returns when the last phase was due that a book has entered.
func (r *Replica) doneOf(book uint16) int64 {
	if mutant(mutCalendarTwice) {
		return r.schedule.own[book] // what this process did as a primary
	}
	return r.live.Books.Done(book)
}

// At returns the phase that books are to be in at a time, and the one behind it; nil for none that is known.
func (c *Calendar) At(now int64) (present, next *Phase) {
	list := c.Phases
	end := sort.Search(len(list), func(i int) bool { return list[i].At > now })
	if end > 0 {
		present = &list[end-1]
	}
	if end < len(list) {
		next = &list[end]
	}
	return present, next
}

// OutOfPhase calls f with each book that has not entered the phase that it is to be in at a time, by what
// is stored.
func (r *Replica) OutOfPhase(now int64, f func(in *machine.Instrument, s match.State)) {
	c, b := r.schedule.calendar, r.live.Books
	if c == nil || b == nil || !b.Ready() {
		return
	}
	for book := range b.Instruments() {
		if c.due(b.Done(uint16(book)), now) != nil {
			f(&b.Instruments()[book], b.Phase(uint16(book)).State)
		}
	}
}

// EnteredPhase returns when the last phase was due (Unix ns) that a book has entered, 0 for none, and
// whether it has not entered the one of a time.
func (r *Replica) EnteredPhase(book uint16, now int64) (due int64, behind bool) {
	c, b := r.schedule.calendar, r.live.Books
	if b == nil {
		return 0, false
	}
	due = b.Done(book)
	return due, c != nil && b.Ready() && c.due(due, now) != nil
}

// SameCalendar reports whether the log goes by the calendar of this replica.
func (r *Replica) SameCalendar() bool {
	s, b := &r.schedule, r.live.Books
	if s.calendar == nil || b == nil {
		return s.calendar == nil
	}
	of := b.CalendarSource()
	return of == nil && s.source == nil || of != nil && s.source != nil && *of == *s.source
}
