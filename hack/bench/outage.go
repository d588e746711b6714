package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"slices"
	"text/tabwriter"
	"time"

	"github.com/ordergrid/ordergrid/hack/bench/cases"
	"github.com/ordergrid/ordergrid/hack/bench/rounds"
	"github.com/ordergrid/ordergrid/hack/bench/system"
)

const outageHelp = `usage: go run ./hack/bench outage [--cases match/rate-6000] [flags]

Starts a grid of two copies, loads it at the rate of a case, and kills its primary with
SIGKILL after half of --duration. Prints the longest time in which no order was answered,
in --rounds rounds of each system in turns: a grid that stores orders, and one that
matches them. No order may fail.

Flags:
`

func outageCommand(ctx context.Context, args []string, out io.Writer) (err error) {
	b := &bench{w: out, begin: time.Now()}
	args = append([]string{"--duration", "4s", "--rounds", "5", "--cases", "^match/rate-6000$", "--systems", "^grid(-match)?$"}, args...)
	if _, err := b.parse("outage", outageHelp, args, out); errors.Is(err, flag.ErrHelp) {
		return nil
	} else if err != nil {
		return err
	}
	c, err := b.oneCase()
	if err != nil {
		return err
	}
	if c.Copies != 2 || c.Shape.Rate == 0 || b.options.Duration < 2*time.Second {
		return fmt.Errorf("%w: CASES: value %q with --duration %v, allowed: a case of two copies at a rate, such as ^match/rate-6000$, for 2 s or more", errUsage, b.cases, b.options.Duration)
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
	fmt.Fprintf(out, "\n%s: %s; the primary is killed\n", c.Name, c.Title)
	t := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(t, "system\tno answer for ms, median\tmin\tmax\tbefore it\t: %s\trounds that count\t\n", systems[0].Name())
	ms := func(d time.Duration) float64 { return d.Seconds() * 1e3 }
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
			fmt.Fprintf(t, "%s\tINVALID\t\t\t\t\t0\t\n", s.Name())
			continue
		}
		slices.Sort(lasted)
		median := lasted[(len(lasted)-1)/2]
		if s == systems[0] {
			first = median
		}
		fmt.Fprintf(t, "%s\t%.1f\t%.1f\t%.1f\t%.1f\t%s\t%d\t\n", s.Name(), ms(median), ms(lasted[0]), ms(lasted[len(lasted)-1]), ms(before), times(ms(median), ms(first)), len(lasted))
	}
	if err := t.Flush(); err != nil || !invalid {
		return err
	}
	return errEnvironment
}
