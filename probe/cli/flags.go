package cli

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/ordergrid/ordergrid/internal/tlsflag"
	"github.com/ordergrid/ordergrid/probe/fixorder"
	"github.com/ordergrid/ordergrid/probe/published"
	"github.com/ordergrid/ordergrid/probe/scenario"
)

// planFlags choose a plan; run and pod share them.
type planFlags struct {
	exact, scaled, quick     bool
	rates                    string
	warmup, measure          time.Duration
	repeats, threads, probes int
	replicas                 int
	arrival                  arrivalFlags

	search searchFlags

	set *pflag.FlagSet
}

func (f *planFlags) register(set *pflag.FlagSet) {
	f.registerModes(set)
	set.StringVar(&f.rates, "rates", "", "orders per second of each probe, such as 100,250")
	set.DurationVar(&f.warmup, "warmup", 0, "time at each rate before measuring")
	set.DurationVar(&f.measure, "measure", 0, "time measured at each rate")
	set.IntVar(&f.repeats, "repeats", 0, "runs at each rate")
	set.IntVar(&f.threads, "threads", 0, "publishing threads of each probe")
	f.search.register(set)
	set.IntVar(&f.probes, "probes", 0, "probes at once, each with the full rate")
	set.IntVar(&f.replicas, "replicas", 0, "with gs-write: 1, a grid without replication, or 2 (default: both with --dev, one grid after the other)")
	f.arrival.register(set)
}

// registerModes adds the flags that choose a scenario's size only.
func (f *planFlags) registerModes(set *pflag.FlagSet) {
	f.set = set
	set.BoolVar(&f.exact, "exact", false, "the parameters of the published run (hours)")
	set.BoolVar(&f.scaled, "scaled", false, "parameters for a machine with two cores (the default)")
	set.BoolVar(&f.quick, "quick", false, "a result within a minute: fewer rates, measured shorter")
}

// mode is the size that was chosen.
func (f *planFlags) mode() (mode scenario.Mode, err error) {
	mode = scenario.Scaled
	chosen := 0
	for _, m := range []struct {
		set  bool
		mode scenario.Mode
	}{{f.exact, scenario.Exact}, {f.scaled, scenario.Scaled}, {f.quick, scenario.Quick}} {
		if m.set {
			mode = m.mode
			chosen++
		}
	}
	if chosen > 1 {
		return mode, errors.New("--exact, --scaled and --quick: choose one")
	}
	return mode, nil
}

// plan makes the plan of one scenario.
func (f *planFlags) plan(d *published.Data, name string) (scenario.Plan, error) {
	mode, err := f.mode()
	if err != nil {
		return scenario.Plan{}, err
	}
	o := scenario.Options{Mode: mode, Repeats: f.repeats, Threads: f.threads, Probes: f.probes, Replicas: f.replicas}
	if f.set.Changed("rates") {
		rates, err := scenario.ParseRates(f.rates)
		if err != nil {
			return scenario.Plan{}, fmt.Errorf("--%w", err)
		}
		o.Rates = rates
	}
	if f.set.Changed("warmup") {
		o.Warmup = &f.warmup
	}
	// Zero means "the mode's default", so an explicit zero is refused here.
	for name, zero := range map[string]bool{"measure": f.measure == 0, "repeats": f.repeats == 0, "threads": f.threads == 0, "probes": f.probes == 0, "replicas": f.replicas == 0} {
		if f.set.Changed(name) && zero {
			return scenario.Plan{}, fmt.Errorf("--%s 0: must be more than 0; leave it out for the scenario's own", name)
		}
	}
	o.Measure = f.measure
	if err := f.arrival.options(f.set, name, &o); err != nil {
		return scenario.Plan{}, err
	}
	if err := f.search.options(f.set, &o); err != nil {
		return scenario.Plan{}, err
	}
	return scenario.New(d, name, o)
}

// gridFlags select a grid.
type gridFlags struct {
	endpoint, metrics []string
	grid, fix         string
	timeout           time.Duration
	tls               tlsflag.Flags
}

func (f *gridFlags) register(set *pflag.FlagSet) {
	set.StringSliceVar(&f.endpoint, "endpoint", nil, "host:port of one or more grid nodes or of the grid's client service")
	set.StringVar(&f.grid, "grid", "", "name of the grid; empty takes the one that answers")
	set.StringSliceVar(&f.metrics, "metrics", nil, "base URLs of the nodes' metrics, such as http://10.0.0.1:9400 (default: the nodes' port 9400 when their data port is 7400)")
	set.StringVar(&f.fix, "fix", string(fixorder.FIX42), "FIX version of the orders: 4.2, 4.4 or 5.0SP2")
	f.tls.Register(set, "TLS is used for the grid")
	f.tls.RegisterToken(set)
	set.DurationVar(&f.timeout, "timeout", requestTimeout, "time after which the outcome of an unanswered order is called unknown")
}

func (f *gridFlags) check() error {
	if err := fixorder.Version(f.fix).Check(); err != nil {
		return fmt.Errorf("--fix: %w", err)
	}
	if f.timeout < 10*time.Millisecond || f.timeout > time.Hour {
		return fmt.Errorf("--timeout %v: must be 10ms to 1h", f.timeout)
	}
	for _, u := range f.metrics {
		if !strings.HasPrefix(u, "http://") && !strings.HasPrefix(u, "https://") {
			return fmt.Errorf("--metrics %q: must begin with http:// or https://", u)
		}
	}
	_, err := f.tls.Given()
	return err
}

// flagWords are the flags that were set, for the manifest.
func flagWords(set *pflag.FlagSet) (words []string) {
	set.Visit(func(f *pflag.Flag) { words = append(words, "--"+f.Name+"="+f.Value.String()) })
	return words
}
