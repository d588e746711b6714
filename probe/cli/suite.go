package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/ordergrid/ordergrid/internal/version"
	"github.com/ordergrid/ordergrid/probe/htmlreport"
	"github.com/ordergrid/ordergrid/probe/published"
	"github.com/ordergrid/ordergrid/probe/report"
	"github.com/ordergrid/ordergrid/probe/scenario"
)

type suiteFlags struct {
	runFlags
	budget time.Duration
	only   string
	fresh  bool
}

func suiteCommand() *cobra.Command {
	var f suiteFlags
	cmd := &cobra.Command{
		Use:   "suite --out DIR",
		Short: "Run every scenario, and print all published tables beside what was measured here",
		Long: `Runs the scenarios one after the other, each on a grid of its own on this machine, and makes one
page of them: a row for each published table, with the figure that stands for it, the ratio and
the verdict, and a link to the scenario's own page.

A suite that was interrupted goes on where it ended: what is in --out already, of this version of
order-probe and with the same parameters, is not run again. With --budget a scenario gets the
longest parameters (scaled, or exact with --exact) that leave time for the quick ones of those
after it; what does not fit is in the page as not run.`,
		Example: `  order-probe suite --out suite --quick            all of them, a minute each
  order-probe suite --out suite --budget 30m       scaled where the time allows it
  order-probe suite --out suite --only '^stac'     some; the page has the others as not run`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return f.run(cmd) },
	}
	set := cmd.Flags()
	set.StringVar(&f.out, "out", "", "directory for the pages, tables and results; required")
	set.DurationVar(&f.budget, "budget", 0, "how long all may take, such as 30m; 0: as long as their parameters say")
	set.StringVar(&f.only, "only", "", "regular expression: only scenarios with such names")
	set.BoolVar(&f.fresh, "fresh", false, "run again what --out has results of")
	f.plan.registerModes(set)
	f.print.register(set)
	set.StringVar(&f.gridNode, "grid-node", "", "the grid-node program (default: next to this one, then PATH)")
	set.DurationVar(&f.quiet, "quiet-wait", 10*time.Second, "how long to wait, in all, for a busy machine to calm down before a rate")
	f.dev, f.grid.fix, f.grid.timeout = true, "4.2", 10*time.Second
	return cmd
}

func (f *suiteFlags) run(cmd *cobra.Command) error {
	d, err := published.Load()
	if err != nil {
		return err
	}
	names, err := f.names(d)
	if err != nil {
		return usage(err)
	}
	s := &sitting{f: f, d: d, cmd: cmd, start: time.Now(), reports: map[string]*report.Report{}, skipped: map[string]string{}}
	var end error
	for i, name := range names {
		err := s.scenario(name, names[i+1:])
		if err != nil && codeOf(err) == ExitUsage {
			return err
		}
		if err != nil {
			fmt.Fprintf(cmd.ErrOrStderr(), "order-probe: %s: %v\n", name, err)
			s.skipped[name] = "it could not be run: " + err.Error()
			end = worse(end, &codeError{code: ExitFailed})
		}
		if rep := s.reports[name]; rep != nil {
			end = worse(end, outcome(rep))
		}
		// The page is there after each, so that it survives whatever stops the suite.
		if err := s.save(); err != nil {
			return err
		}
		if cmd.Context().Err() != nil {
			break
		}
	}
	return errors.Join(s.print(), end)
}

// names are the scenarios of the suite, those with published tables first.
func (f *suiteFlags) names(d *published.Data) (out []string, err error) {
	if f.out == "" {
		return nil, errors.New("--out: name a directory; an interrupted suite goes on from what is there")
	}
	if _, err := f.plan.mode(); err != nil {
		return nil, err
	}
	if f.budget < 0 {
		return nil, fmt.Errorf("--budget %v: must be more than 0, or left out", f.budget)
	}
	only, err := regexp.Compile(f.only)
	if err != nil {
		return nil, fmt.Errorf("--only: %w", err)
	}
	var rest []string
	for _, name := range scenario.Names(d) {
		s, _ := d.Scenario(name)
		switch {
		case !only.MatchString(name):
		case name == "flow-replay": // it needs a recording
		case len(s.PublishedTables) > 0:
			out = append(out, name)
		default:
			rest = append(rest, name)
		}
	}
	out = append(out, rest...)
	if len(out) == 0 {
		return nil, fmt.Errorf("--only %q: no scenario has such a name; there are %s", f.only, strings.Join(scenario.Names(d), ", "))
	}
	return out, f.print.check()
}

// sitting is one run of a suite.
type sitting struct {
	f       *suiteFlags
	d       *published.Data
	cmd     *cobra.Command
	start   time.Time
	reports map[string]*report.Report
	skipped map[string]string
}

// around is what a scenario takes besides its steps: starting the grid, reading the logs back. It is generous.
const around = 15 * time.Second

// scenario runs one, unless its results are there or the budget is used up. later are those after it.
func (s *sitting) scenario(name string, later []string) error {
	sizes, err := s.sizes(name)
	if err != nil {
		return usage(err)
	}
	if rep := s.kept(name, sizes); rep != nil {
		s.say("%s: %s results are there", name, rep.Result.Plan.Mode)
		s.reports[name] = rep
		return nil
	}
	plan, ok := s.choose(sizes, later)
	if !ok {
		s.skipped[name] = fmt.Sprintf("it takes %v at the least, and --budget %v had no more time for it", sizes[len(sizes)-1].Length()+around, s.f.budget)
		s.say("%s: %s", name, s.skipped[name])
		return nil
	}
	if err := s.f.fits(plan); err != nil {
		s.skipped[name] = err.Error()
		s.say("%s: %s", name, err)
		return nil
	}
	s.say("%s (%s): takes about %v, with %d scenarios after it", name, plan.Mode, plan.Length()+around, len(later))
	s.f.scenarios = []string{name, "of several"} // each has a directory of its own
	rep, err := s.f.one(s.cmd, s.d, plan)
	if rep != nil {
		s.reports[name] = rep
	}
	return err
}

// sizes are the plans that a scenario may have, the longest first.
func (s *sitting) sizes(name string) (plans []scenario.Plan, err error) {
	f := s.f.plan // a copy: the modes are chosen here
	for _, m := range []struct{ allowed, exact, scaled, quick bool }{
		{allowed: f.exact, exact: true}, {allowed: !f.quick, scaled: true}, {allowed: true, quick: true},
	} {
		if !m.allowed || s.f.budget == 0 && len(plans) > 0 {
			continue
		}
		f.exact, f.scaled, f.quick = m.exact, m.scaled, m.quick
		p, err := f.plan(s.d, name)
		if err != nil {
			return nil, err
		}
		plans = append(plans, p)
	}
	return plans, nil
}

// choose returns the longest plan that leaves time for the shortest of those later.
func (s *sitting) choose(sizes []scenario.Plan, later []string) (scenario.Plan, bool) {
	if s.f.budget == 0 {
		return sizes[0], true
	}
	left := s.f.budget - time.Since(s.start)
	reserved := time.Duration(0)
	for _, name := range later {
		if plans, err := s.sizes(name); err == nil && s.kept(name, plans) == nil {
			reserved += plans[len(plans)-1].Length() + around
		}
	}
	for i, p := range sizes {
		need := p.Length() + around
		if last := i == len(sizes)-1; need+reserved <= left || last && need <= left {
			return p, true
		}
	}
	return scenario.Plan{}, false
}

// kept returns the report of an earlier run with one of these plans and this version.
func (s *sitting) kept(name string, sizes []scenario.Plan) *report.Report {
	if s.f.fresh {
		return nil
	}
	if rep := s.reports[name]; rep != nil {
		return rep
	}
	res, err := readResult(filepath.Join(s.f.out, name))
	if err != nil || len(res.Manifests) == 0 || res.Manifests[0].Version != version.String() || !whole(res) {
		return nil
	}
	for _, p := range sizes {
		if res.Plan.Search == nil && !samePlan(p, res.Plan) || res.Plan.Search != nil && p.Mode != res.Plan.Mode {
			continue
		}
		if rep, err := report.New(s.d, res); err == nil {
			return rep
		}
	}
	return nil
}

// whole reports whether every probe of a result has all steps: a run that was cut short has not.
func whole(r *report.Result) bool {
	steps := map[int]bool{}
	for _, p := range r.Probes {
		for _, x := range p.Steps {
			steps[x.Step] = true
		}
	}
	return len(steps) == len(r.Plan.Steps)
}

func samePlan(a, b scenario.Plan) bool {
	x, err1 := json.Marshal(a)
	y, err2 := json.Marshal(b)
	return errors.Join(err1, err2) == nil && bytes.Equal(x, y)
}

func (s *sitting) say(format string, args ...any) {
	left := ""
	if s.f.budget > 0 {
		left = fmt.Sprintf("[%v left] ", (s.f.budget - time.Since(s.start)).Round(time.Second))
	}
	fmt.Fprintf(s.cmd.ErrOrStderr(), "%s%s\n", left, fmt.Sprintf(format, args...))
}

// suite is what is there so far.
func (s *sitting) suite() *report.Suite {
	all := report.NewSuite(s.d, s.reports, s.skipped)
	all.StartedAt, all.Command = s.start.UTC().Format(time.RFC3339), "order-probe suite "+strings.Join(flagWords(s.cmd.Flags()), " ")
	for _, r := range all.Rows {
		if rep := s.reports[r.Scenario]; rep != nil && len(all.Manifest) == 0 {
			all.Manifest = rep.Result.Manifests[:1]
		}
	}
	for i, r := range all.Rows {
		if r.Verdict == report.NotRun && r.Reason == "" {
			all.Rows[i].Reason = "it was left out (--only), or the suite was interrupted"
		}
	}
	return all
}

// save writes the suite in all its forms.
func (s *sitting) save() error {
	dir, err := makeDir(s.f.out)
	if err != nil {
		return err
	}
	all := s.suite()
	for name, write := range map[string]func(io.Writer) error{
		"suite.txt":  func(w io.Writer) error { return all.Text(w, false) },
		"suite.json": all.JSON,
		"suite.csv":  all.CSV,
		"suite.md":   all.Markdown,
		"suite.html": func(w io.Writer) error { return htmlreport.WriteSuite(w, all) },
	} {
		if err := writeFile(filepath.Join(dir, name), write); err != nil {
			return fmt.Errorf("--out: %w", err)
		}
	}
	return nil
}

func (s *sitting) print() error {
	w, all := s.cmd.OutOrStdout(), s.suite()
	switch s.f.print.format {
	case "json":
		return all.JSON(w)
	case "csv":
		return all.CSV(w)
	}
	return all.Text(w, s.f.print.color(w))
}
