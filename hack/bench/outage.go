package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/ordergrid/ordergrid/hack/bench/cases"
	"github.com/ordergrid/ordergrid/hack/bench/rounds"
	"github.com/ordergrid/ordergrid/hack/bench/system"
	"github.com/ordergrid/ordergrid/probe/report"
)

const outageHelp = `usage: go run ./hack/bench outage [--cases match/rate-6000] [flags]

Starts a grid of two copies, loads it at the rate of a case, and kills its primary with
SIGKILL after half of --duration. Prints the longest time in which no order was answered,
in --rounds rounds of each system in turns: a grid that stores orders, and one that
matches them. No order may fail.

Flags:
`

func outageCommand(ctx context.Context, args []string, out io.Writer) (err error) {
	b, c, err := begin("outage", outageHelp, []string{"--duration", "4s", "--rounds", "5", "--cases", "^match/rate-6000$", "--systems", "^grid(-match)?$"}, args, out, func(b *bench, c *cases.Case) string {
		if c.Copies != 2 || c.Shape.Rate == 0 || b.options.Duration < 2*time.Second {
			return fmt.Sprintf("a case of two copies at a rate, such as ^match/rate-6000$, with a --duration of 2 s or more (value %v)", b.options.Duration)
		}
		return ""
	})
	if b == nil {
		return err
	}
	defer func() { err = errors.Join(err, b.close()) }()
	if err := b.prepare(ctx); err != nil {
		return err
	}
	at, missing, err := b.place(ctx, c.Network)
	if err == nil && missing != "" {
		err = errors.New(missing)
	}
	if err != nil {
		return err
	}
	systems := slices.DeleteFunc(slices.Clone(b.runner.Systems), func(s system.System) bool { return s.Floor() || !c.Uses(s.Name()) })
	if len(systems) == 0 || slices.ContainsFunc(systems, func(s system.System) bool { return !grids(s.Name()) }) {
		return fmt.Errorf("%w: --systems: value %q, allowed: grids that %s measures, such as %s", errUsage, b.systems, c.Name, cases.Grid)
	}
	all, err := b.runner.Outages(ctx, at, c, systems)
	if err != nil {
		return err
	}
	return printOutages(out, c, systems, all)
}

// grids reports whether a system is one of grid-node processes.
func grids(name string) bool {
	return name == cases.Grid || len(name) > 5 && name[:5] == cases.Grid+"-"
}

func printOutages(out io.Writer, c *cases.Case, systems []system.System, all map[string][]rounds.Outage) error {
	p := report.NewPage(out)
	t := report.NewTable("system", "no answer for ms, median", "min", "max", "before it", ": "+systems[0].Name(), "rounds that count")
	t.Title = fmt.Sprintf("%s: %s; the primary is killed", c.Name, c.Title)
	ms := func(d time.Duration) string { return one(d.Seconds() * 1e3) }
	first, invalid := time.Duration(0), false
	for _, s := range systems {
		var lasted []time.Duration
		before := time.Duration(0)
		for _, o := range all[s.Name()] {
			if o.Bad != "" {
				invalid = true
				continue
			}
			lasted, before = append(lasted, o.Lasted), max(before, o.Before)
		}
		if len(lasted) == 0 {
			t.Add(s.Name(), "INVALID", "", "", "", "", 0)
			continue
		}
		slices.Sort(lasted)
		median := lasted[(len(lasted)-1)/2]
		if s == systems[0] {
			first = median
		}
		t.Add(s.Name(), ms(median), ms(lasted[0]), ms(lasted[len(lasted)-1]), ms(before), times(float64(median), float64(first)), len(lasted))
	}
	p.Table(t)
	if err := p.Err(); err != nil || !invalid {
		return err
	}
	return errEnvironment
}
