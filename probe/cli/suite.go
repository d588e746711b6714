package cli

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/ordergrid/ordergrid/probe/htmlreport"
	"github.com/ordergrid/ordergrid/probe/published"
	"github.com/ordergrid/ordergrid/probe/report"
	"github.com/ordergrid/ordergrid/probe/scenario"
	"github.com/ordergrid/ordergrid/probe/system"
)

type suiteFlags struct {
	runFlags
	budget time.Duration
	only   string
	fresh  bool
	again  int // how often a scenario whose run was INVALID is run again
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
	set.IntVar(&f.again, "retries", 2, "how often a scenario is run again whose run was INVALID")
	set.StringVar(&f.only, "only", "", "regular expression: only scenarios with such names")
	set.BoolVar(&f.fresh, "fresh", false, "run again what --out has results of")
	f.plan.registerModes(set)
	f.print.register(set)
	set.StringVar(&f.gridNode, "grid-node", "", "the grid-node program (default: next to this one, then PATH)")
	set.StringVar(&f.plugin, "kubectl-ordergrid", "", "that program, for the scenarios about a system (default: next to this one, then PATH)")
	set.StringVar(&f.link, "grid-link", "", "that program, for bar-wan (default: next to this one, then PATH)")
	set.StringVar(&f.gateway, "order-gateway", "", "that program, for scenarios that stream or ask by SQL (default: next to this one, then PATH)")
	set.DurationVar(&f.quiet, "quiet-wait", quietWait, "how long to wait, in all, for a busy machine to calm down before a rate")
	f.onOwn()
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
	s := &sitting{f: f, d: d, cmd: cmd, began: time.Now(), outcomes: map[string]*report.Outcome{}, skipped: map[string]string{}, ends: map[string]error{}}
	s.run = s.start
	s.readEarlier()
	for i, name := range names {
		if err := s.next(name, func() (error, error) { return s.scenario(name, names[i+1:]) }); err != nil {
			return err
		}
	}
	if err := s.retry(names); err != nil {
		return err
	}
	var end error
	for _, ended := range s.ends {
		end = worse(end, ended)
	}
	return errors.Join(s.print(), end)
}

// next runs a scenario by run, and writes the page, so that it survives what stops the suite. A suite that was
// interrupted runs no more.
func (s *sitting) next(name string, run func() (ended, err error)) error {
	if s.cmd.Context().Err() != nil {
		return nil
	}
	ended, err := run()
	if err != nil && codeOf(err) == ExitUsage {
		return err
	}
	s.ends[name] = ended
	if err != nil {
		fmt.Fprintf(s.cmd.ErrOrStderr(), "order-probe: %s: %v\n", name, err)
		s.skipped[name] = "it could not be run: " + err.Error()
		s.ends[name] = worse(ended, &codeError{code: ExitFailed})
	}
	return s.save()
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
	for _, name := range append(scenario.Names(d), published.SystemScenarios()...) {
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
		return nil, fmt.Errorf("--only %q: no scenario has such a name; there are %s", f.only, strings.Join(append(scenario.Names(d), published.SystemScenarios()...), ", "))
	}
	return out, f.print.check()
}

// sitting is one run of a suite.
type sitting struct {
	f        *suiteFlags
	d        *published.Data
	cmd      *cobra.Command
	began    time.Time
	outcomes map[string]*report.Outcome
	manifest []report.Manifest // of the first order scenario that ran
	skipped  map[string]string
	ends     map[string]error // the exit code of what the latest run of a scenario found
	run      func(name string, chosen size) (ended, err error)
	earlier  map[string][]string // reasons of runs of a scenario that were INVALID and were run again
}

// scenario runs one, unless its results are there or the budget is used up. later are those after it. ended is the exit
// code of what it found.
func (s *sitting) scenario(name string, later []string) (ended, err error) {
	sizes, err := s.sizes(name)
	if err != nil {
		return nil, usage(err)
	}
	if mode, ended, ok := s.kept(name, sizes); ok {
		s.say("%s: %s results are there", name, mode)
		return ended, nil
	}
	delete(s.earlier, name)
	chosen, ok := s.choose(sizes, later)
	if !ok {
		s.skip(name, "it takes %v at the least, and --budget %v had no more time for it", sizes[len(sizes)-1].length, s.f.budget)
		return nil, nil
	}
	if chosen.plan != nil {
		if err := s.f.fits(*chosen.plan); err != nil {
			s.skip(name, "%v", err)
			return nil, nil
		}
	}
	s.say("%s (%s): takes about %v, with %d scenarios after it", name, chosen.mode, chosen.length, len(later))
	return s.run(name, chosen)
}

// start runs a scenario with the parameters chosen.
func (s *sitting) start(name string, chosen size) (ended, err error) {
	s.f.scenarios = []string{name, "of several"} // each has a directory of its own
	if chosen.plan == nil {
		return s.system(name, chosen.mode)
	}
	rep, err := s.f.one(s.cmd, s.d, *chosen.plan)
	if rep == nil {
		return nil, err
	}
	s.take(rep)
	return outcome(rep), err
}

// system runs a scenario about a system of processes.
func (s *sitting) system(name string, mode scenario.Mode) (ended, err error) {
	dir, err := s.f.outDir(name)
	if err != nil {
		return nil, err
	}
	rep, err := system.Run(s.cmd.Context(), s.d, name, s.f.systemOptions(s.cmd, mode, dir))
	if err != nil {
		return nil, err
	}
	s.outcomes[name] = rep.Outcome()
	return systemOutcome(rep), saveSystem(dir, rep)
}

func (s *sitting) take(rep *report.Report) {
	s.outcomes[rep.Scenario] = rep.Outcome(s.d)
	if m := rep.Result.Manifests; len(s.manifest) == 0 && len(m) > 0 {
		s.manifest = m[:1]
	}
}

func (s *sitting) skip(name, format string, args ...any) {
	s.skipped[name] = fmt.Sprintf(format, args...)
	s.say("%s: %s", name, s.skipped[name])
}

func (s *sitting) say(format string, args ...any) {
	left := ""
	if s.f.budget > 0 {
		left = fmt.Sprintf("[%v left] ", (s.f.budget - time.Since(s.began)).Round(time.Second))
	}
	fmt.Fprintf(s.cmd.ErrOrStderr(), "%s%s\n", left, fmt.Sprintf(format, args...))
}

// suite is what is there so far.
func (s *sitting) suite() *report.Suite {
	for name, o := range s.outcomes {
		o.Run.Earlier = s.earlier[name]
	}
	all := report.NewSuite(s.d, s.outcomes, s.skipped)
	all.Manifest = s.manifest
	all.StartedAt, all.Command = s.began.UTC().Format(time.RFC3339), "order-probe suite "+strings.Join(flagWords(s.cmd.Flags()), " ")
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
		"suite.md":   func(w io.Writer) error { return all.Markdown(w, s.d) },
		"suite.html": func(w io.Writer) error { return htmlreport.WriteSuite(w, all, true) },
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
