package report

import (
	"math"
	"strings"
	"testing"

	"github.com/ordergrid/ordergrid/probe/scenario"
)

// timeplots is a run of stac-timeplot with a spike of each probe, and so many pauses of each server in the three seconds.
func timeplots(t *testing.T, s Spike, pausesOfOne, pausesOfTwo int64) *Result {
	t.Helper()
	r := fixture(t, "stac-timeplot", scenario.Options{Mode: scenario.Quick})
	for i := range r.Probes {
		for k := range r.Probes[i].Steps {
			r.Probes[i].Steps[k].Spikes = []Spike{s}
		}
	}
	for i, step := range r.Plan.Steps {
		c := &r.Conditions[i]
		c.PauseSources = []PauseSource{{Of: "probe", Count: 6, Times: TimesExact}}
		for n := range step.Replicas {
			pauses := pausesOfTwo
			if step.Replicas == 1 {
				pauses = pausesOfOne
			}
			c.PauseSources = append(c.PauseSources, PauseSource{Of: []string{"n0", "n1"}[n], Count: pauses, Times: TimesExact})
		}
	}
	return r
}

// fall is a stall in which so many orders waited, which each of four threads worked off.
func fall(queued int64) Spike {
	s := Spike{CreateToEndUs: 9000, StallFromMs: 100, StallToMs: 108.5, Queued: queued, Pauses: []Pause{{Of: "n0", Us: 800, Cause: "gc"}}}
	for thread := range 4 {
		s.Descents = append(s.Descents, Descent{Thread: thread, Orders: int(queued / 4), SlopeUsPerMs: -900 - 10*float64(thread)})
	}
	return s
}

func TestTimeplotFigures(t *testing.T) {
	rep := build(t, clone(t, timeplots(t, fall(40), 3, 12)))
	if rep.Verdict != ReportValid || len(rep.Failed()) > 0 {
		t.Fatalf("%s: %s, %+v", rep.Verdict, rep.Reason, rep.Judgements)
	}
	row, ok := rep.figureOf(&group{rate: 1000, label: "1 server"}, pausesOfOne)
	if !ok || row.Here == nil || math.Abs(*row.Here-0.25) > 1e-9 || row.Published == nil || row.Published.Value != 0.25 || row.Ratio != nil {
		t.Errorf("pauses of one server by those of one of two: %+v", row)
	}
	var table strings.Builder
	if err := rep.Text(&table, TextOptions{}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"2 servers", "1 server", "the worst moment"} {
		if !strings.Contains(table.String(), want) {
			t.Errorf("no %q in\n%s", want, table.String())
		}
	}
	rows := rep.worstTable().Rows
	if len(rows) != 3 {
		t.Fatalf("%d rows, want one for each rate", len(rows))
	}
	want := [][]string{ // total, probe, servers, pauses of probe and servers, spikes, c2e, stall, waited, pauses near, threads, orders, slope
		{"500", "250", "2 servers", "2.0", "8.0", "2", "9,000", "8.50", "40", "1", "4", "40", "-910"},
		{"2,000", "1,000", "2 servers", "2.0", "8.0", "2", "9,000", "8.50", "40", "1", "4", "40", "-910"},
		{"1,000", "1,000", "1 server", "2.0", "1.0", "1", "9,000", "8.50", "40", "1", "4", "40", "-910"},
	}
	for i, cells := range rows {
		for k, c := range cells {
			if c.Text != want[i][k] {
				t.Errorf("row %d, column %s: %q, want %q", i, rep.worstTable().Columns[k].Name, c.Text, want[i][k])
			}
		}
	}
}

func TestTimeplotShape(t *testing.T) {
	torn := fall(40)
	torn.Descents = torn.Descents[:3]
	level := fall(40)
	for i := range level.Descents {
		level.Descents[i].Orders = 4
	}
	for name, c := range map[string]struct {
		of   Spike
		want string
	}{"four descents": {fall(40), Pass}, "three": {torn, Fail}, "of few orders": {level, Fail}, "few waited": {fall(15), NotJudged}} {
		rep := build(t, clone(t, timeplots(t, c.of, 3, 12)))
		if j := rep.Judgements[len(rep.Judgements)-1]; j.Name != "SHAPE" || j.Status != c.want {
			t.Errorf("%s: %+v, want %s", name, j, c.want)
		}
	}
	// Runtimes that are not known to have paused have no ratio.
	for _, pauses := range [][2]int64{{0, 0}, {-1, 12}, {3, -1}} {
		rep := build(t, clone(t, timeplots(t, fall(40), pauses[0], pauses[1])))
		if row, ok := rep.figureOf(&group{rate: 1000, label: "1 server"}, pausesOfOne); ok {
			t.Errorf("%v pauses: %+v", pauses, row)
		}
	}
}
