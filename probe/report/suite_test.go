package report

import (
	"bytes"
	"io"
	"slices"
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
	reports := map[string]*Report{
		"stac-single": build(t, fixture(t, "stac-single", quick)),
		"stac-pair":   build(t, noisy),
		"gs-write":    build(t, lost),
	}
	s := NewSuite(data(t), reports, map[string]string{"stac-scale": "it takes 51s at the least, and --budget 30s had no more time for it"})
	s.StartedAt, s.Command = "2026-01-02T03:04:05Z", "order-probe suite --quick"
	if len(s.Rows) != 35 {
		t.Errorf("%d rows, want one for each of 35 published tables", len(s.Rows))
	}
	for name, write := range map[string]func(io.Writer) error{
		"suite.txt": func(w io.Writer) error { return s.Text(w, false) }, "suite.csv": s.CSV, "suite.md": s.Markdown,
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
