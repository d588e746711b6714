package cli

import (
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ordergrid/ordergrid/internal/version"
	"github.com/ordergrid/ordergrid/probe/published"
	"github.com/ordergrid/ordergrid/probe/report"
	"github.com/ordergrid/ordergrid/probe/scenario"
)

// saved writes the result of a quick run with a number of its steps.
func saved(t *testing.T, dir, name, program string, steps int) {
	t.Helper()
	d, err := published.Load()
	if err != nil {
		t.Fatal(err)
	}
	plan, err := scenario.New(d, name, scenario.Options{Mode: scenario.Quick})
	if err != nil {
		t.Fatal(err)
	}
	r := report.Result{Schema: report.ResultSchema, RunID: "1", StartedAt: "2026-01-02T03:04:05Z", Plan: plan, Manifests: []report.Manifest{{Version: program}}}
	p := report.Probe{Name: "A"}
	for _, s := range plan.Steps[:min(steps, len(plan.Steps))] {
		p.Steps = append(p.Steps, report.ProbeStep{Step: s.ID})
	}
	r.Probes = []report.Probe{p}
	text, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Join(dir, name), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, name, "result.json"), text, 0o644); err != nil {
		t.Fatal(err)
	}
}

// A suite goes on from results that are whole, and of this program; a budget of a second leaves no time to run others.
func TestSuiteGoesOn(t *testing.T) {
	for name, c := range map[string]struct {
		program string
		steps   int
		args    []string
		kept    bool
	}{
		"whole":           {version.String(), 99, nil, true},
		"cut short":       {version.String(), 1, nil, false},
		"another version": {"v0", 99, nil, false},
		"fresh":           {version.String(), 99, []string{"--fresh"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			saved(t, dir, "stac-single", c.program, c.steps)
			_, _, stderr := call(append([]string{"suite", "--out", dir, "--only", "^stac-single$", "--budget", "1s"}, c.args...)...)
			if kept := strings.Contains(stderr, "stac-single: quick results are there"); kept != c.kept {
				t.Errorf("results kept: %v, want %v\n%s", kept, c.kept, stderr)
			}
			if skipped := strings.Contains(stderr, "it takes 27s at the least, and --budget 1s had no more time for it"); skipped == c.kept {
				t.Errorf("skipped: %v\n%s", skipped, stderr)
			}
			for _, file := range []string{"suite.txt", "suite.md", "suite.csv", "suite.json", "suite.html"} {
				if text, err := os.ReadFile(filepath.Join(dir, file)); err != nil || !strings.Contains(string(text), "stac-single") {
					t.Errorf("%s: %d bytes, %v", file, len(text), err)
				}
			}
		})
	}
}

// With a budget each scenario gets the longest plan that leaves time for the quick ones after it.
func TestSuiteKeepsToItsBudget(t *testing.T) {
	d, err := published.Load()
	if err != nil {
		t.Fatal(err)
	}
	later := []string{"stac-pair", "gs-write"} // 39 s and 63 s, quick
	for _, c := range []struct {
		budget time.Duration
		want   scenario.Mode
	}{
		{10 * time.Second, ""},
		{40 * time.Second, scenario.Quick},   // those after it are not run
		{160 * time.Second, scenario.Quick},  // scaled takes 75 s
		{180 * time.Second, scenario.Scaled}, // and 102 s for the others
	} {
		f := &suiteFlags{budget: c.budget}
		f.out = t.TempDir()
		cmd := suiteCommand()
		f.plan.set = cmd.Flags()
		s := &sitting{f: f, d: d, cmd: cmd, began: time.Now(), outcomes: map[string]*report.Outcome{}}
		sizes, err := s.sizes("stac-single")
		if err != nil {
			t.Fatal(err)
		}
		chosen, _ := s.choose(sizes, later)
		if chosen.mode != c.want {
			t.Errorf("budget %v: %q, want %q", c.budget, chosen.mode, c.want)
		}
	}
}

// A run that was INVALID is run again, as often as asked; one that was judged is not, whatever it said.
func TestSuiteRepeatsDisturbedRuns(t *testing.T) {
	d, err := published.Load()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name     string
		budget   time.Duration
		verdicts []string // of the runs, the first one before the suite repeats any
		want     string
		earlier  int
	}{
		{"judged", 0, []string{report.Fail}, report.Fail, 0},
		{"repeated", 0, []string{report.Invalid, report.Pass}, report.Pass, 1},
		{"contended", 0, []string{report.Contended, report.Contended, report.Fail}, report.Fail, 2},
		{"not for ever", 0, []string{report.Invalid, report.Invalid, report.Invalid, report.Pass}, report.Invalid, 2},
		{"no time", time.Second, []string{report.Invalid, report.Pass}, report.Invalid, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := &suiteFlags{budget: c.budget, again: 2}
			f.out = t.TempDir()
			cmd := suiteCommand()
			cmd.SetErr(io.Discard)
			cmd.SetContext(t.Context())
			f.plan.set = cmd.Flags()
			s := &sitting{f: f, d: d, cmd: cmd, began: time.Now(), outcomes: map[string]*report.Outcome{}, ends: map[string]error{}, earlier: map[string][]string{}}
			runs := 0
			s.run = func(name string, chosen size) (ended, err error) {
				s.outcomes[name] = &report.Outcome{Run: report.SuiteRun{Scenario: name, Mode: string(chosen.mode), Verdict: c.verdicts[runs], Reason: "a reason"}}
				runs++
				return nil, nil
			}
			if _, err := s.run("stac-single", size{mode: scenario.Scaled}); err != nil {
				t.Fatal(err)
			}
			if err := s.retry([]string{"stac-single"}); err != nil {
				t.Fatal(err)
			}
			if got := s.outcomes["stac-single"].Run; got.Verdict != c.want || len(s.suite().Runs[0].Earlier) != c.earlier {
				t.Errorf("%s after %d runs, earlier %q; want %s and %d", got.Verdict, runs, s.suite().Runs[0].Earlier, c.want, c.earlier)
			}
		})
	}
}
