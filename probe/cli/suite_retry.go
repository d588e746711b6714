package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/ordergrid/ordergrid/probe/report"
)

// retry runs scenarios again whose run was INVALID, with the same parameters. Only those: a run that was judged is not
// repeated until it passes.
func (s *sitting) retry(names []string) error {
	for n := range s.f.again {
		for _, name := range names {
			if len(s.earlier[name]) != n || !s.disturbed(name) {
				continue
			}
			if err := s.next(name, func() (error, error) { return s.repeat(name) }); err != nil {
				return err
			}
		}
	}
	return nil
}

// disturbed reports whether the latest run of a scenario was INVALID.
func (s *sitting) disturbed(name string) bool {
	o := s.outcomes[name]
	return o != nil && strings.HasPrefix(o.Run.Verdict, report.Invalid)
}

// repeat runs a scenario with the parameters of its latest run, if the budget has time for it.
func (s *sitting) repeat(name string) (ended, err error) {
	run := s.outcomes[name].Run
	sizes, err := s.sizes(name)
	if err != nil {
		return s.ends[name], err
	}
	i := slices.IndexFunc(sizes, func(z size) bool { return string(z.mode) == run.Mode })
	if i < 0 {
		return s.ends[name], nil
	}
	if left := s.f.budget - time.Since(s.began); s.f.budget > 0 && left < sizes[i].length {
		s.say("%s: INVALID, and --budget %v has no time to run it again (%v)", name, s.f.budget, sizes[i].length)
		return s.ends[name], nil
	}
	s.say("%s (%s): again, run %d: the one before was %s: %s", name, run.Mode, len(s.earlier[name])+2, run.Verdict, run.Reason)
	s.earlier[name] = append(s.earlier[name], fmt.Sprintf("%s, %s: %s", run.StartedAt, run.Verdict, run.Reason))
	return s.run(name, sizes[i])
}

// readEarlier takes over the runs that an interrupted suite repeated already.
func (s *sitting) readEarlier() {
	s.earlier = map[string][]string{}
	if s.f.fresh {
		return
	}
	b, err := os.ReadFile(filepath.Join(s.f.out, "suite.json"))
	if err != nil {
		return
	}
	before, err := report.ParseSuite(b)
	if err != nil {
		return // of another version, whose results are run again too
	}
	for _, r := range before.Runs {
		s.earlier[r.Scenario] = r.Earlier
	}
}
