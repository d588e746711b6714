package ordergrid

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/ordergrid/ordergrid/api/v1alpha1"
	"github.com/ordergrid/ordergrid/grid-node/instrument"
	"github.com/ordergrid/ordergrid/grid-node/nodestatus"
)

func tradingDay() *api.TradingCalendar {
	return &api.TradingCalendar{TimeZone: "Europe/Berlin", Days: []api.Weekday{"Monday"}, Holidays: []string{"2026-12-25"},
		Phases: []api.TradingPhase{{At: "08:50", State: api.InstrumentCall}, {At: "09:00", State: api.InstrumentOpen}}}
}

func calendarSet(c *api.TradingCalendar, generation int64) *api.InstrumentSet {
	set := setOf(tradable("IBM", "0.05"))
	set.UID, set.Generation, set.Spec.Calendar = "s1", generation, c
	return set
}

// TestPlanCalendar: the nodes are given what they accept, with its source; one that is taken out ends, and what is wrong, or read
// from a cache that is behind, changes nothing.
func TestPlanCalendar(t *testing.T) {
	grid := matchingGrid()
	first := planCalendar("", grid, calendarSet(tradingDay(), 3), time.UnixMilli(5000))
	c, err := instrument.ParseCalendar([]byte(first.text))
	if err != nil || !first.begins || first.ended || first.zone.String() != "Europe/Berlin" || c.Text.Source.SinceMs != 5000 || c.Text.Source.Generation != 3 || c.Text.Source.Object != "s1" || len(c.Text.Phases) != 2 || c.Text.Phases[0].State != "call" {
		t.Fatalf("%+v, %v", first, err)
	}
	later, wrong := tradingDay(), tradingDay()
	later.Phases[1].At, wrong.TimeZone = "09:30", "Europe/Nowhere"
	for name, v := range map[string]struct {
		set                 *api.InstrumentSet
		same, ended, begins bool
		generation, since   int64
		invalid             string
	}{
		"the same":         {calendarSet(tradingDay(), 3), true, false, false, 3, 5000, ""},
		"instruments only": {calendarSet(tradingDay(), 4), false, false, false, 4, 5000, ""},
		"changed":          {calendarSet(later, 4), false, false, false, 4, 5000, ""},
		"taken out":        {calendarSet(nil, 4), false, true, false, 4, 5000, ""},
		"wrong":            {calendarSet(wrong, 4), true, false, false, 3, 5000, `timeZone is "Europe/Nowhere"`},
		"cache is behind":  {calendarSet(later, 2), true, false, false, 3, 5000, ""},
		"no set":           {nil, true, false, false, 3, 5000, ""},
		"another text":     {calendarSet(later, 3), false, false, true, 3, 9000, ""},
	} {
		t.Run(name, func(t *testing.T) {
			g := planCalendar(first.text, grid, v.set, time.UnixMilli(9000))
			c, err := instrument.ParseCalendar([]byte(g.text))
			if err != nil || (g.text == first.text) != v.same || g.ended != v.ended || g.begins != v.begins || c.Text.Source.Generation != v.generation || c.Text.Source.SinceMs != v.since || !strings.Contains(g.invalid, v.invalid) || (v.invalid == "") != (g.invalid == "") {
				t.Errorf("%+v, %v", g, err)
			}
		})
	}
	for name, set := range map[string]*api.InstrumentSet{"no calendar": calendarSet(nil, 1), "no set": nil} {
		if g := planCalendar("", grid, set, time.UnixMilli(9000)); g != (givenCalendar{}) {
			t.Errorf("%s: %+v", name, g)
		}
	}
}

// TestCalendarCondition: the condition is of what the nodes report, with the times of the calendar's zone.
func TestCalendarCondition(t *testing.T) {
	type nodes = map[string]*nodestatus.Execution
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	given := givenCalendar{text: "the calendar", zone: berlin}
	at := func(hour int) int64 { return time.Date(2026, 11, 30, hour, 0, 0, 0, time.UTC).UnixNano() }
	for name, c := range map[string]struct {
		change     func(*observation, nodes)
		want, text string
	}{
		"stores":        {func(o *observation, _ nodes) { o.grid.Spec.Execution = nil }, "/", ""},
		"no calendar":   {func(o *observation, _ nodes) { o.instruments.calendar = givenCalendar{} }, "/", ""},
		"taken out":     {func(o *observation, _ nodes) { o.instruments.calendar.ended = true }, "/", ""},
		"in phase":      {func(*observation, nodes) {}, "True/InPhase", "3 books are in phase open since 2026-11-30 09:00 CET; the next is closed at 2026-11-30 18:00 CET"},
		"not asked":     {func(o *observation, _ nodes) { o.roomAsked = false }, "Unknown/NodesSilent", ""},
		"not looked at": {func(o *observation, _ nodes) { o.instruments = nil }, "Unknown/NotLooked", ""},
		"invalid":       {func(o *observation, _ nodes) { o.instruments.calendar.invalid = "timeZone is wrong" }, "False/CalendarInvalid", "is not given to the nodes: timeZone is wrong. What they were given before stays"},
		"late":          {func(_ *observation, n nodes) { n["rtd-s0-1"].Calendar.SHA256 = "old" }, "False/OnTheWay", "1 of 2 pods: rtd-s0-1"},
		"older release": {func(_ *observation, n nodes) { n["rtd-s0-1"].Calendar = nil }, "False/OnTheWay", "1 of 2 pods: rtd-s0-1"},
		"refused":       {func(_ *observation, n nodes) { n["rtd-s0-0"].Calendar.Error = "no phases" }, "False/RefusedByNode", "rtd-s0-0: no phases"},
		"log is later": {func(_ *observation, n nodes) {
			n["rtd-s0-0"].Calendar.Waits = []string{"p1: the file has generation 1"}
		}, "False/LaterInUse", "p1: the file has generation 1"},
		"behind": {func(_ *observation, n nodes) {
			n["rtd-s0-0"].Calendar.Behind, n["rtd-s0-0"].Calendar.SomeBehind = 1, []string{"IBM (halted)"}
		}, "False/BooksBehind", "1 of 3 books have not entered phase open since 2026-11-30 09:00 CET; the next is closed at 2026-11-30 18:00 CET: IBM (halted)"},
	} {
		t.Run(name, func(t *testing.T) {
			o := healthy()
			o.grid.Spec.Execution = matchingGrid().Spec.Execution
			o.instruments, o.roomAsked = &instruments{sha256: "new", n: 3, calendar: given}, true
			n := nodes{}
			for pod, books := range map[string]int{"rtd-s0-0": 3, "rtd-s0-1": 0} {
				n[pod] = &nodestatus.Execution{SHA256: "new", Calendar: &nodestatus.Calendar{SHA256: given.sha256(), Books: books,
					PhaseUnixNs: at(8), Phase: "open", NextUnixNs: at(17), Next: "closed"}}
			}
			c.change(o, n)
			answers := executing(n)
			o.room = roomOf(answers, len(answers))
			j := judgeCalendar(o)
			if got := string(j.status) + "/" + j.reason; got != c.want || !strings.Contains(j.message, c.text) {
				t.Errorf("%s: %s\nwant %s: … %s", got, j.message, c.want, c.text)
			}
			again := roomOf(answers, len(answers))
			if !o.room.equal(&again) {
				t.Error("equal answers are another room")
			}
		})
	}
}

// TestCalendarReachesNodes: the calendar of an InstrumentSet is a file beside that of its instruments.
func TestCalendarReachesNodes(t *testing.T) {
	b := newBench(t)
	set := setOf(tradable("IBM", "0.05"))
	set.Namespace, set.Spec.Calendar = b.namespace, tradingDay()
	if err := b.client.Create(t.Context(), set); err != nil {
		t.Fatal(err)
	}
	grid := b.create("rtd", api.OrderGridSpec{PartitionBy: api.PartitionBySymbol, Execution: matchingGrid().Spec.Execution})
	b.run(grid)
	file := func() string {
		m := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: b.namespace, Name: api.InstrumentsConfigMap("rtd")}}
		b.get(m)
		return m.Data["instruments.json.calendar"]
	}
	c, err := instrument.ParseCalendar([]byte(file()))
	if err != nil || c.Text.Source == nil || c.Text.Source.Grid != string(grid.UID) || c.Text.Source.Object != string(set.UID) || len(c.Text.Phases) != 2 {
		t.Fatalf("%s: %v", file(), err)
	}
	if again := b.run(grid); len(again) > 0 {
		t.Errorf("a second pass writes %v", again)
	}
	if err := b.client.Get(t.Context(), client.ObjectKeyFromObject(set), set); err != nil {
		t.Fatal(err)
	}
	set.Spec.Calendar = nil
	if err := b.client.Update(t.Context(), set); err != nil {
		t.Fatal(err)
	}
	b.run(grid)
	after, err := instrument.ParseCalendar([]byte(file()))
	if err != nil || len(after.Text.Phases) != 0 || !after.Text.Source.Supersedes(c.Text.Source) {
		t.Errorf("taken out: %s: %v", file(), err)
	}
}
