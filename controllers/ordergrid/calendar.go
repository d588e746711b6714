package ordergrid

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/ordergrid/ordergrid/api/v1alpha1"
	"github.com/ordergrid/ordergrid/grid-node/instrument"
	"github.com/ordergrid/ordergrid/grid-node/limits"
	"github.com/ordergrid/ordergrid/grid-node/nodestatus"
)

// Reasons of the condition CalendarFollowed, beside OnTheWay and RefusedByNode.
const (
	reasonCalendarInvalid = "CalendarInvalid"
	reasonCalendarLater   = "LaterInUse"
	reasonCalendarBehind  = "BooksBehind"
	reasonCalendarInPhase = "InPhase"
)

// givenCalendar is what a pass knows of the calendar of an InstrumentSet.
type givenCalendar struct {
	text    string // that the nodes are given; empty for none
	ended   bool   // it has no phases: the InstrumentSet has no calendar any more
	zone    *time.Location
	invalid string // why that of the InstrumentSet is not given to the nodes
	begins  bool   // it is of another InstrumentSet than before
}

func (g *givenCalendar) sha256() string { return fmt.Sprintf("%x", sha256.Sum256([]byte(g.text))) }

// planCalendar decides what the nodes are given. before is the text that they have been given, "" for none; set is nil if there
// is none: then they keep what they have. A calendar that is taken out of the set is one without phases.
func planCalendar(before string, grid *api.OrderGrid, set *api.InstrumentSet, now time.Time) (g givenCalendar) {
	given, err := instrument.ParseCalendar([]byte(before))
	if err != nil { // there is none, or it was edited
		given, before = nil, ""
	}
	var of *limits.Source
	if given != nil {
		of = given.Text.Source
	}
	if set == nil || set.Spec.Calendar == nil && given == nil || isOlder(set, of) {
		return givenCalendarOf(before, given)
	}
	t := calendarText(set.Spec.Calendar)
	t.Source = of
	same := given != nil && bytes.Equal(written(t), []byte(before))
	t.Source = sourceAfter(of, grid, set, now, same)
	made, err := instrument.ParseCalendar(written(t))
	if err != nil {
		g = givenCalendarOf(before, given)
		g.invalid = err.Error()
		return g
	}
	g = givenCalendarOf(string(written(t)), made)
	g.begins = of == nil || t.Source.SinceMs != of.SinceMs
	return g
}

func givenCalendarOf(text string, c *instrument.Calendar) givenCalendar {
	if c == nil {
		return givenCalendar{}
	}
	return givenCalendar{text: text, ended: len(c.Text.Phases) == 0, zone: c.Location}
}

// calendarText is the file of a calendar; c is nil for one that ended.
func calendarText(c *api.TradingCalendar) *instrument.CalendarText {
	t := &instrument.CalendarText{Phases: []instrument.PhaseText{}}
	if c == nil {
		return t
	}
	t.TimeZone, t.Holidays = c.TimeZone, c.Holidays
	for _, d := range c.Days {
		t.Days = append(t.Days, string(d))
	}
	for _, p := range c.Phases {
		t.Phases = append(t.Phases, instrument.PhaseText{At: p.At, State: strings.ToLower(string(p.State))})
	}
	return t
}

func written(t *instrument.CalendarText) []byte {
	b, err := json.MarshalIndent(t, "", "  ")
	if err != nil {
		panic("calendar: " + err.Error()) // it has texts and numbers only
	}
	return append(b, '\n')
}

// judgeCalendar: every book is in the phase of the calendar.
func judgeCalendar(o *observation) judgement {
	if !o.grid.Spec.Matches() {
		return judgement{}
	}
	name, s := o.grid.Spec.Execution.InstrumentsFrom.Name, o.instruments
	no := func(reason, format string, args ...any) judgement {
		return judgement{metav1.ConditionFalse, reason, fmt.Sprintf(format, args...)}
	}
	switch {
	case s == nil:
		return o.asBefore(api.ConditionCalendarFollowed)
	case s.calendar.invalid != "":
		return no(reasonCalendarInvalid, "the calendar of InstrumentSet %s is not given to the nodes: %s. What they were given before stays", name, s.calendar.invalid)
	case s.calendar.text == "" || s.calendar.ended:
		return judgement{}
	}
	if j, silent := o.notAsked(api.ConditionCalendarFollowed); silent {
		return j
	}
	c := o.followed(s.calendar.sha256())
	switch n := len(o.standbys()); {
	case len(c.refused) > 0:
		return no(reasonInstrumentsRefused, "a node does not take the calendar of InstrumentSet %s%s. What it had before stays", name, some(c.refused))
	case len(c.late) > 0:
		return no(reasonInstrumentsOnTheWay, "the calendar of InstrumentSet %s is on the way to %d of %d pods%s. The kubelet takes about a minute", name, len(c.late), len(o.room.executions), some(c.late))
	case n > 0:
		return no(reasonInstrumentsOnTheWay, "%d of %d partitions are standbys of %s, which has the calendar there; that of this grid is followed when they take orders", n, o.wantPartitions(), o.otherSite())
	case len(c.waits) > 0:
		return no(reasonCalendarLater, "nothing is done by the calendar of InstrumentSet %s%s", name, some(c.waits))
	case c.behind > 0:
		return no(reasonCalendarBehind, "%d of %d books have not entered phase %s%s. One that is halted enters it when the halt ends (kubectl ordergrid market)", c.behind, c.books, c.phase(s.calendar.zone), some(c.names))
	}
	return judgement{metav1.ConditionTrue, reasonCalendarInPhase, fmt.Sprintf("%d books are in phase %s", c.books, c.phase(s.calendar.zone))}
}

// calendarFollowed is what pods report of the calendar.
type calendarFollowed struct {
	nodestatus.Calendar // of the pod with the latest phase
	refused, late       []string
	waits, names        []string
	books, behind       int
}

func (o *observation) followed(digest string) (c calendarFollowed) {
	for _, pod := range o.executing() {
		x := o.room.executions[pod].Calendar
		switch {
		case x == nil:
			c.late = append(c.late, pod)
			continue
		case x.Error != "":
			c.refused = append(c.refused, pod+": "+x.Error)
		case x.SHA256 != digest:
			c.late = append(c.late, pod)
		}
		c.books, c.behind = c.books+x.Books, c.behind+x.Behind
		c.names, c.waits = append(c.names, x.SomeBehind...), append(c.waits, x.Waits...)
		if x.PhaseUnixNs > c.PhaseUnixNs || c.PhaseUnixNs == 0 {
			c.Calendar = *x
		}
	}
	return c
}

// phase tells the present and the next phase, in the time zone of the calendar.
func (c *calendarFollowed) phase(zone *time.Location) string {
	at := func(ns int64) string { return time.Unix(0, ns).In(zone).Format("2006-01-02 15:04 MST") }
	text := "none yet"
	if c.PhaseUnixNs != 0 {
		text = fmt.Sprintf("%s since %s", c.Phase, at(c.PhaseUnixNs))
	}
	if c.NextUnixNs != 0 {
		text += fmt.Sprintf("; the next is %s at %s", c.Next, at(c.NextUnixNs))
	}
	return text
}

// nextPhase is when books change by what pods reported last, zero if that is not known.
func (a *room) nextPhase() (at time.Time) {
	for _, x := range a.executions {
		if x.Calendar != nil && x.Calendar.NextUnixNs != 0 {
			if next := time.Unix(0, x.Calendar.NextUnixNs); at.IsZero() || next.Before(at) {
				at = next
			}
		}
	}
	return at
}
