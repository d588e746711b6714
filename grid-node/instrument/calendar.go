package instrument

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"time"
	_ "time/tzdata" // all nodes of a release have the same time zones, whatever their image has

	"github.com/ordergrid/ordergrid/grid-node/limits"
	"github.com/ordergrid/ordergrid/grid-node/match"
)

// CalendarText is the file of a calendar: the state of all books by the time of the day.
type CalendarText struct {
	TimeZone string         `json:"timeZone,omitempty"` // of the IANA database; UTC
	Days     []string       `json:"days,omitempty"`     // Monday to Sunday that have phases; Monday to Friday
	Holidays []string       `json:"holidays,omitempty"` // dates without phases, 2026-12-25
	Phases   []PhaseText    `json:"phases"`             // none: books stay as they are
	Source   *limits.Source `json:"source,omitempty"`   // nil: of a file that a person keeps
}

// PhaseText is the state of all books from a time of the day on.
type PhaseText struct {
	At    string `json:"at"`    // 09:00
	State string `json:"state"` // open, call, closed
}

// Calendar tells which state books are to be in when.
type Calendar struct {
	Text     CalendarText
	Location *time.Location
	days     [7]bool
	holidays map[string]bool
	phases   []phaseOfDay // earliest first
}

type phaseOfDay struct {
	hour, minute int
	state        match.State
}

// Phase is one of a day.
type Phase struct {
	At    time.Time
	State match.State
}

// Bounds of a calendar.
const (
	maxPhases   = 16
	maxHolidays = 366
	dateForm    = "2006-01-02"
)

// ParseCalendar reads the content of the file.
func ParseCalendar(text []byte) (*Calendar, error) {
	c := &Calendar{holidays: map[string]bool{}}
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	err := d.Decode(&c.Text)
	if err == nil {
		if _, more := d.Token(); more != io.EOF {
			err = fmt.Errorf("something follows the calendar")
		}
	}
	if err != nil {
		return nil, fmt.Errorf("%w; allowed: an object with timeZone, days, holidays, phases of at and state, and source", err)
	}
	t := &c.Text
	if err := t.Source.Validate(); err != nil {
		return nil, err
	}
	if c.Location, err = time.LoadLocation(cmp.Or(t.TimeZone, "UTC")); err != nil || t.TimeZone == "Local" {
		return nil, fmt.Errorf("timeZone is %q, allowed: a name of the IANA time zone database, such as Europe/Berlin", t.TimeZone)
	}
	days := t.Days
	if len(days) == 0 {
		days = []string{"Monday", "Tuesday", "Wednesday", "Thursday", "Friday"}
	}
	for _, name := range days {
		day := time.Sunday
		for day <= time.Saturday && day.String() != name {
			day++
		}
		if day > time.Saturday || c.days[day] {
			return nil, fmt.Errorf("days: %q, allowed: Monday to Sunday, each once", name)
		}
		c.days[day] = true
	}
	if len(t.Phases) > maxPhases || len(t.Holidays) > maxHolidays {
		return nil, fmt.Errorf("%d phases and %d holidays, allowed: up to %d and %d", len(t.Phases), len(t.Holidays), maxPhases, maxHolidays)
	}
	for _, date := range t.Holidays {
		if _, err := time.Parse(dateForm, date); err != nil || c.holidays[date] {
			return nil, fmt.Errorf("holidays: %q, allowed: a date such as 2026-12-25, each once", date)
		}
		c.holidays[date] = true
	}
	return c, c.addPhases()
}

// SourceText is the source of the calendar as logs have it, nil without.
func (c *Calendar) SourceText() []byte {
	if c.Text.Source == nil {
		return nil
	}
	b, err := json.Marshal(c.Text.Source)
	if err != nil {
		panic("calendar: " + err.Error()) // it has texts and numbers only
	}
	return b
}

func (c *Calendar) addPhases() error {
	for _, p := range c.Text.Phases {
		at, err := time.Parse("15:04", p.At)
		if err != nil || len(p.At) != len("15:04") {
			return fmt.Errorf("phases: at is %q, allowed: a time of the day from 00:00 to 23:59", p.At)
		}
		state, known := states[p.State]
		if !known || p.State == "" {
			return fmt.Errorf("phases: state at %s is %q, allowed: open, call, closed", p.At, p.State)
		}
		c.phases = append(c.phases, phaseOfDay{at.Hour(), at.Minute(), state})
	}
	slices.SortFunc(c.phases, func(a, b phaseOfDay) int { return cmp.Or(a.hour-b.hour, a.minute-b.minute) })
	for i := 1; i < len(c.phases); i++ {
		if a, b := c.phases[i-1], c.phases[i]; a.hour == b.hour && a.minute == b.minute {
			return fmt.Errorf("phases: two at %02d:%02d, allowed: one", a.hour, a.minute)
		}
	}
	return nil
}

// Phases returns those from a time on and before another one, earliest first. In the hour that a
// change of clocks leaves out or has twice a phase is where time.Date puts it; of two that meet
// there the later one counts.
func (c *Calendar) Phases(from, to time.Time) (list []Phase) {
	if len(c.phases) == 0 {
		return nil
	}
	y, m, d := from.In(c.Location).Date()
	for n := 0; ; n++ {
		noon := time.Date(y, m, d+n, 12, 0, 0, 0, c.Location)
		if midnight := time.Date(y, m, d+n, 0, 0, 0, 0, c.Location); !midnight.Before(to) {
			break
		}
		if !c.days[noon.Weekday()] || c.holidays[noon.Format(dateForm)] {
			continue
		}
		for _, p := range c.phases {
			at := time.Date(y, m, d+n, p.hour, p.minute, 0, 0, c.Location)
			if at.Before(from) || !at.Before(to) {
				continue
			}
			for len(list) > 0 && !list[len(list)-1].At.Before(at) {
				list = list[:len(list)-1]
			}
			list = append(list, Phase{at, p.state})
		}
	}
	return list
}
