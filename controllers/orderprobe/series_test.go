package orderprobe

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/ordergrid/ordergrid/api/v1alpha1"
)

// ended makes a run of a series with a verdict and a p50 and p99.
func ended(name string, verdict api.Verdict, p50, p99 float64) api.OrderProbe {
	m := api.OrderProbe{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: api.OrderProbeSpec{Scenario: api.ScenarioPair}}
	m.Status.Conditions = []metav1.Condition{{Type: api.ConditionComplete, Status: metav1.ConditionTrue}}
	m.Status.Verdict = verdict
	for rate, factor := range map[string]float64{"100": 3, "6000": 1} { // 6,000 is compared
		m.Status.Rows = append(m.Status.Rows, api.ProbeRow{Rate: rate, Metric: "c2e p50", Unit: "us", Here: decimal(p50 * factor)},
			api.ProbeRow{Rate: rate, Metric: "c2e p99", Unit: "us", Here: decimal(p99 * factor)})
	}
	return m
}

func TestRegression(t *testing.T) {
	steady := []float64{100, 104, 98, 101, 99, 103, 97, 102}
	for name, c := range map[string]struct {
		latest  []float64
		before  []float64
		invalid int // of the latest
		want    metav1.ConditionStatus
		text    string
	}{
		"steady":          {[]float64{101, 99, 102}, steady, 0, metav1.ConditionFalse, "c2e p50 at 6000/s: median 101 us of the latest 3, 100 us of 8 before them"},
		"slower":          {[]float64{131, 129, 140}, steady, 0, metav1.ConditionTrue, "median 131 us of the latest 3"},
		"slower by noise": {[]float64{105, 104.5, 104.6}, steady, 0, metav1.ConditionFalse, "+4 %"},
		"one slow run":    {[]float64{300, 100, 99}, steady, 0, metav1.ConditionFalse, ""},
		"faster":          {[]float64{60, 61, 59}, steady, 0, metav1.ConditionFalse, ""},
		"few":             {[]float64{131, 129, 140}, steady[:4], 0, metav1.ConditionUnknown, "7 valid runs; a comparison needs 8"},
		"invalid":         {[]float64{131, 129, 140}, steady[:6], 2, metav1.ConditionUnknown, "7 valid runs"},
		"all the same":    {[]float64{100, 100, 100}, []float64{100, 100, 100, 100, 100}, 0, metav1.ConditionFalse, "2 figures are the same in all runs"},
	} {
		t.Run(name, func(t *testing.T) {
			var members []api.OrderProbe
			for i, v := range append(c.latest, c.before...) {
				verdict := api.VerdictValid
				if i < c.invalid {
					verdict = api.VerdictInvalid
				}
				members = append(members, ended(fmt.Sprint(i), verdict, v, 3*v))
			}
			got := regressed(members)
			if got.Status != c.want || !strings.Contains(got.Message, c.text) {
				t.Errorf("%s %s: %s, want %s %q", got.Status, got.Reason, got.Message, c.want, c.text)
			}
		})
	}
}

func TestPlanOfASeries(t *testing.T) {
	at := func(text string) time.Time {
		x, err := time.Parse(time.RFC3339, text)
		if err != nil {
			t.Fatal(err)
		}
		return x
	}
	under := []api.OrderProbe{{ObjectMeta: metav1.ObjectMeta{Name: "night-1"}}}
	for name, c := range map[string]struct {
		schedule api.ProbeSchedule
		last     string
		now      string
		members  []api.OrderProbe
		begins   bool
		leftOut  string
		next     string
		wrong    string
	}{
		"not yet":      {api.ProbeSchedule{Cron: "0 3 * * *"}, "", "2026-01-02T02:59:59Z", nil, false, "", "2026-01-02T03:00:00Z", ""},
		"due":          {api.ProbeSchedule{Cron: "0 3 * * *"}, "", "2026-01-02T03:00:00Z", nil, true, "", "2026-01-03T03:00:00Z", ""},
		"once only":    {api.ProbeSchedule{Cron: "0 3 * * *"}, "2026-01-02T03:00:00Z", "2026-01-02T03:00:01Z", nil, false, "", "2026-01-03T03:00:00Z", ""},
		"a bit late":   {api.ProbeSchedule{Cron: "0 3 * * *"}, "", "2026-01-02T03:09:00Z", nil, true, "", "2026-01-03T03:00:00Z", ""},
		"too late":     {api.ProbeSchedule{Cron: "0 3 * * *"}, "", "2026-01-02T03:11:00Z", nil, false, "the operator was away until 11m0s after it", "2026-01-03T03:00:00Z", ""},
		"a week late":  {api.ProbeSchedule{Cron: "* * * * *"}, "", "2026-01-09T03:11:00Z", nil, true, "", "2026-01-09T03:12:00Z", ""},
		"under way":    {api.ProbeSchedule{Cron: "@hourly"}, "2026-01-02T02:00:00Z", "2026-01-02T03:00:00Z", under, false, "night-1 has not ended", "2026-01-02T04:00:00Z", ""},
		"zone":         {api.ProbeSchedule{Cron: "0 3 * * *", TimeZone: "Europe/Zurich"}, "", "2026-01-02T01:59:59Z", nil, false, "", "2026-01-02T02:00:00Z", ""},
		"no such zone": {api.ProbeSchedule{Cron: "0 3 * * *", TimeZone: "Mars/Olympus"}, "", "2026-01-02T01:59:59Z", nil, false, "", "", `spec.schedule.timeZone "Mars/Olympus"`},
		"no such hour": {api.ProbeSchedule{Cron: "0 25 * * *"}, "", "2026-01-02T01:59:59Z", nil, false, "", "", `spec.schedule.cron "0 25 * * *": end of range (25) above maximum (23)`},
		"never":        {api.ProbeSchedule{Cron: "0 0 30 2 *"}, "", "2026-01-02T01:59:59Z", nil, false, "", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			probe := &api.OrderProbe{ObjectMeta: metav1.ObjectMeta{Name: "night", CreationTimestamp: metav1.NewTime(at("2026-01-01T12:00:00Z"))}, Spec: api.OrderProbeSpec{Schedule: &c.schedule}}
			c.schedule.Keep = 8
			if c.last != "" {
				probe.Status.LastTime = &metav1.Time{Time: at(c.last)}
			}
			s := planSeries(probe, c.members, at(c.now))
			next := ""
			if !s.next.IsZero() {
				next = s.next.UTC().Format(time.RFC3339)
			}
			if (s.begin != "") != c.begins || next != c.next || (s.leftOut == "") != (c.leftOut == "") || !strings.Contains(s.leftOut, c.leftOut) {
				t.Errorf("%+v, next %s", s, next)
			}
			if (s.wrong == nil) != (c.wrong == "") || s.wrong != nil && !strings.Contains(s.wrong.Error(), c.wrong) {
				t.Errorf("%v, want %q", s.wrong, c.wrong)
			}
		})
	}
}

func wantRunning(t *testing.T, probe *api.OrderProbe, status metav1.ConditionStatus, reason, text string) {
	t.Helper()
	c := meta.FindStatusCondition(probe.Status.Conditions, api.ConditionRunning)
	if c == nil || c.Status != status || c.Reason != reason || !strings.Contains(c.Message, text) {
		t.Errorf("Running: %+v, want %s %s %q", c, status, reason, text)
	}
}

// A series on a real API server: its runs begin in time, one at once, and the oldest are removed.
func TestSeries(t *testing.T) {
	b := newBench(t)
	b.grid(2)
	probe := b.probe(api.OrderProbeSpec{Scenario: api.ScenarioPair, Schedule: &api.ProbeSchedule{Cron: "*/5 * * * *", Keep: 8}})
	begin := probe.CreationTimestamp.Time.Truncate(5 * time.Minute)
	clock := func(i int, late time.Duration) { // i steps of the schedule after the creation
		b.reconcile.Clock = clocktesting.NewFakePassiveClock(begin.Add(time.Duration(i)*5*time.Minute + late))
	}
	clock(0, 4*time.Minute+59*time.Second)
	b.run(probe)
	wantRunning(t, probe, metav1.ConditionFalse, reasonScheduled, "the next run is due at "+begin.Add(5*time.Minute).UTC().Format(time.RFC3339))
	runs := func() (names []string, list api.OrderProbeList) {
		if err := b.client.List(t.Context(), &list, client.InNamespace(b.namespace), client.MatchingLabels{api.LabelSeries: probe.Name}); err != nil {
			t.Fatal(err)
		}
		for _, m := range list.Items {
			names = append(names, m.Name)
		}
		return names, list
	}
	for i := 1; i <= 10; i++ {
		clock(i, time.Second)
		b.run(probe)
		wantRunning(t, probe, metav1.ConditionTrue, reasonRunning, "is under way")
		_, list := runs()
		for _, m := range list.Items {
			if done(&m) {
				continue
			}
			if m.Spec.Schedule != nil || m.Spec.Scenario != api.ScenarioPair || !metav1.IsControlledBy(&m, probe) {
				t.Fatalf("run %+v", m)
			}
			if i == 2 { // it is under way when the next one is due
				clock(i+1, time.Second)
				b.run(probe)
				wantRunning(t, probe, metav1.ConditionTrue, reasonLate, m.Name+" has not ended")
				i++
			}
			meta.SetStatusCondition(&m.Status.Conditions, metav1.Condition{Type: api.ConditionComplete, Status: metav1.ConditionTrue, Reason: "Test", Message: "set by the test"})
			m.Status.Verdict, m.Status.Rows = api.VerdictValid, ended("", api.VerdictValid, float64(100+i), 300).Status.Rows
			if err := b.client.Status().Update(t.Context(), &m); err != nil {
				t.Fatal(err)
			}
		}
		b.run(probe)
	}
	if names, _ := runs(); len(names) != 8 || len(probe.Status.Runs) != 8 || probe.Status.Verdict != api.VerdictValid {
		t.Errorf("kept %v, status %+v, want 8", names, probe.Status.Runs)
	}
	c := meta.FindStatusCondition(probe.Status.Conditions, api.ConditionRegressed)
	if c == nil || c.Status == metav1.ConditionUnknown {
		t.Errorf("Regressed: %+v", c)
	}
	b.wantNoWrites(probe, "nothing is due")
}
