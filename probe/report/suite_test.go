package report

import (
	"bytes"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/ordergrid/ordergrid/probe/scenario"
)

func TestSuiteGoldens(t *testing.T) {
	quick := scenario.Options{Mode: scenario.Quick}
	noisy := fixture(t, "stac-pair", quick)
	for i := range noisy.Conditions {
		noisy.Conditions[i].ForeignPct = 31
	}
	lost := fixture(t, "gs-write", quick)
	lost.Probes[0].Steps[1].Ledger.Lost = 2
	outcomes := map[string]*Outcome{}
	for _, r := range []*Result{fixture(t, "stac-single", quick), noisy, lost} {
		outcomes[r.Plan.Scenario] = build(t, r).Outcome(data(t))
	}
	outcomes["bar-load"] = loaded()
	s := NewSuite(data(t), outcomes, map[string]string{"stac-scale": "it takes 51s at the least, and --budget 30s had no more time for it"})
	s.StartedAt, s.Command = "2026-01-02T03:04:05Z", "order-probe suite --quick"
	if len(s.Rows) != 35 {
		t.Errorf("%d rows, want one for each of 35 published tables", len(s.Rows))
	}
	for name, write := range map[string]func(io.Writer) error{
		"suite.txt": func(w io.Writer) error { return s.Text(w, false) }, "suite.csv": s.CSV,
		"suite.md": func(w io.Writer) error { return s.Markdown(w, data(t)) },
	} {
		var b bytes.Buffer
		if err := write(&b); err != nil {
			t.Fatal(err)
		}
		golden(t, name, b.Bytes())
	}
	for _, r := range s.Rows {
		if r.Disturbed && r.Ratio != nil {
			t.Errorf("%s %s: a ratio of a disturbed figure", r.Report, r.Table)
		}
		if i := slices.IndexFunc(s.Notes, func(n string) bool { return n == "" }); r.Verdict != Pass && r.Reason == "" || i >= 0 {
			t.Errorf("%s %s: %s without a reason", r.Report, r.Table, r.Verdict)
		}
	}
}

// TestSuiteSummary: a page of highlights has the figures of its tables and the worst of their verdicts.
func TestSuiteSummary(t *testing.T) {
	summary := func(outcomes map[string]*Outcome) SuiteRow {
		s := NewSuite(data(t), outcomes, nil)
		return s.Rows[slices.IndexFunc(s.Rows, func(r SuiteRow) bool { return r.Table == "Summary" })]
	}
	ran := func(scenario, table, verdict string, values ...float64) *Outcome {
		o := &Outcome{Run: SuiteRun{Scenario: scenario, Verdict: verdict, Reason: "for a test"}}
		for _, v := range values {
			half, ratio := v/2, 0.5
			o.Figures = append(o.Figures, Comparison{Table: table, Metric: "TPS", Published: v, Here: &half, Ratio: &ratio})
		}
		return o
	}
	if r := summary(nil); r.Verdict != NotRun && r.Verdict != NotBuilt || len(r.Figures) != 8 || r.Here != nil {
		t.Errorf("without a run: %+v", r)
	}
	all := map[string]*Outcome{
		"jade-tradeem": ran("jade-tradeem", "TradeEm-TCP", Pass, 4110, 4487), "jade-thin": ran("jade-thin", "TradeEm-thin", Pass, 1508, 2520),
		"jade-skidemo": ran("jade-skidemo", "SkiDemo", Pass, 244, 91), "jade-tpca": ran("jade-tpca", "TPC-A", Pass, 467289), "jade-async": ran("jade-async", "AsyncMethodCalls", Pass),
	}
	r := summary(all)
	found := 0
	for _, f := range r.Figures {
		if f.Here != nil && *f.Here == f.Published/2 && *f.Ratio == 0.5 {
			found++
		}
	}
	if r.Verdict != Pass || found != 6 {
		t.Errorf("%s with %d figures, want PASS with 6: the report contradicts itself about 1,200 users, and async has none: %+v", r.Verdict, found, r.Figures)
	}
	all["jade-skidemo"].Run.Verdict = Invalid
	all["jade-thin"].Run.Verdict = Fail
	if r := summary(all); r.Verdict != Fail || !strings.Contains(r.Reason, "SkiDemo INVALID") {
		t.Errorf("%s (%s), want FAIL, and SkiDemo named", r.Verdict, r.Reason)
	}
}

// loaded is the outcome of a scenario about a system.
func loaded() *Outcome {
	rate, ratio := 50000.0, 50000.0/44409
	return &Outcome{
		Run: SuiteRun{Scenario: "bar-load", Mode: "quick", Command: "order-probe run --scenario bar-load --dev --quick", StartedAt: "2026-01-02T03:05:05Z",
			Version: "v0", Machine: "a CPU, 2 cores", Verdict: Pass, Reason: "every order is right", Control: "a file twice: none is new", Differences: []string{"orders of one type"}},
		Figures: []Comparison{
			{Table: "5.1", Row: "1000000", Metric: "rows/s, mean", At: "5000 rows", Published: 44409, Derived: true, Here: &rate, Ratio: &ratio},
			{Table: "5.2", Row: "JDBC", Metric: "rows/s", Published: 19984, Derived: true, Reason: "not measured"},
			{Table: ProsePrefix + "stac.loss", Metric: "orders lost", Here: new(float64)},
		},
	}
}

// What JSON wrote is read again, and gives the same page; another schema or a field that is not known is refused.
func TestSuiteIsRead(t *testing.T) {
	s := NewSuite(data(t), map[string]*Outcome{"bar-load": loaded()}, nil)
	var object, before, after bytes.Buffer
	if err := s.JSON(&object); err != nil {
		t.Fatal(err)
	}
	again, err := ParseSuite(object.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Markdown(&before, data(t)); err != nil {
		t.Fatal(err)
	}
	if err := again.Markdown(&after, data(t)); err != nil || !bytes.Equal(before.Bytes(), after.Bytes()) {
		t.Errorf("%v: the page differs after reading:\n%s", err, after.String())
	}
	for _, line := range strings.Split(after.String(), "\n") {
		if len([]rune(line)) > mdWidth && !strings.HasPrefix(line, "|") && !strings.HasPrefix(line, "#") {
			t.Errorf("a line of %d characters: %s", len([]rune(line)), line)
		}
	}
	for name, text := range map[string]string{"schema": strings.Replace(object.String(), "/v1", "/v0", 1), "field": strings.Replace(object.String(), `"rows"`, `"lines"`, 1), "end": object.String() + "{}"} {
		if _, err := ParseSuite([]byte(text)); err == nil {
			t.Errorf("%s: was read", name)
		}
	}
}

// A table that repeats the figures of another has them with its own rows: 3-4 counts the rate of six probes.
func TestTwins(t *testing.T) {
	o := build(t, fixture(t, "stac-scale", scenario.Options{Mode: scenario.Quick})).Outcome(data(t))
	found := map[string]int{}
	for _, c := range o.Figures {
		found[c.Table]++
		if c.Table == "3-4" && c.Row == "18000" && c.Metric == "c2e mean" && c.Published != 1017 {
			t.Errorf("%+v", c)
		}
	}
	for _, table := range []string{"3-3", "3-4", "A-2srv-C2E", "A-4srv-C2E", "A-6srv-C2E"} {
		if found[table] == 0 {
			t.Errorf("no figure beside table %s: %v", table, found)
		}
	}
}
