package node

import (
	"time"

	"github.com/ordergrid/ordergrid/grid-node/machine"
	"github.com/ordergrid/ordergrid/grid-node/match"
	"github.com/ordergrid/ordergrid/grid-node/nodestatus"
	"github.com/ordergrid/ordergrid/grid-node/replica"
)

// What primaries are given of the calendar: its phases from so long before the present to so long behind it, renewed so often.
const (
	calendarBehind = 8 * 24 * time.Hour
	calendarAhead  = 3 * 24 * time.Hour
	calendarEvery  = time.Hour
)

// bookStates are the states of books in words.
var bookStates = [...]string{match.Closed: "closed", match.Call: "call", match.Uncrossing: "uncrossing", match.Open: "open", match.Halted: "halted"}

// phases are those of the calendar around a time; nil without one.
func (x *Execution) phases(now time.Time) *replica.Calendar {
	if x == nil || x.Calendar == nil || x.Calendar.Calendar() == nil {
		return nil
	}
	of := x.Calendar.Calendar()
	c := &replica.Calendar{Source: of.SourceText()}
	for _, p := range of.Phases(now.Add(-calendarBehind), now.Add(calendarAhead)) {
		c.Phases = append(c.Phases, replica.Phase{At: p.At.UnixNano(), State: p.State})
	}
	return c
}

// watchCalendar follows the file, and gives primaries the phases of the days to come.
func (n *Node) watchCalendar() {
	x := n.cfg.Execution
	renew := func() {
		c := x.phases(time.Now())
		n.loop.Post(func() { n.data.parts.setCalendar(c) })
	}
	n.wg.Go(func() {
		x.Calendar.Watch(n.ctx, instrumentsEvery, func() {
			if err := x.Calendar.Err(); err != nil {
				n.log.Error("the calendar is not taken; what it had before is done", "reason", err)
			} else {
				n.log.Info("the calendar was read", "sha256", x.Calendar.SHA256())
			}
			renew()
		})
	})
	n.wg.Go(func() {
		t := time.NewTicker(calendarEvery)
		defer t.Stop()
		for {
			select {
			case <-n.ctx.Done():
				return
			case <-t.C:
				renew()
			}
		}
	})
}

// setCalendar gives all partitions what their primaries do.
func (ps *partitions) setCalendar(c *replica.Calendar) {
	ps.calendar = c
	for _, p := range ps.list {
		if !p.ended {
			p.replica.SetCalendar(c)
			p.step(&replica.Event{Kind: replica.EventTick})
		}
	}
	ps.flush()
}

// calendarFollowed is the state of the calendar for the page of the memory; nil without one. On the loop.
func (ps *partitions) calendarFollowed() *nodestatus.Calendar {
	f := ps.cfg.Execution.Calendar
	if f == nil || f.Calendar() == nil && f.Err() == nil {
		return nil
	}
	s := &nodestatus.Calendar{SHA256: f.SHA256()}
	if err := f.Err(); err != nil {
		s.Error = err.Error()
	}
	now := ps.loop.Clock().Wall()
	if ps.calendar != nil {
		present, next := ps.calendar.At(now)
		if present != nil {
			s.PhaseUnixNs, s.Phase = present.At, bookStates[present.State]
		}
		if next != nil {
			s.NextUnixNs, s.Next = next.At, bookStates[next.State]
		}
	}
	for _, p := range ps.list {
		if p.status.Role != replica.RolePrimary {
			continue
		}
		if why := p.replica.CalendarWaits(); why != "" {
			s.Waits = append(s.Waits, p.id.String()+": "+why)
		}
		p.replica.EachBook(now, func(machine.BookState, *machine.Instrument) { s.Books++ })
		p.replica.OutOfPhase(now, func(in *machine.Instrument, state match.State) {
			if s.Behind++; s.Behind <= mostDiffer {
				s.SomeBehind = append(s.SomeBehind, in.Symbol+" ("+bookStates[state]+")")
			}
		})
	}
	return s
}
