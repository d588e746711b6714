package system

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/ordergrid/ordergrid/probe/host"
	"github.com/ordergrid/ordergrid/probe/published"
	"github.com/ordergrid/ordergrid/probe/scenario"
)

// Options of a run.
type Options struct {
	Mode scenario.Mode
	// GridNode, Plugin, Link and Gateway are the programs grid-node, kubectl-ordergrid, grid-link and order-gateway; empty:
	// next to this one, or in PATH.
	GridNode, Plugin, Link, Gateway string
	// Dir keeps certificates; a temporary one when empty.
	Dir string
	// Say prints progress.
	Say func(format string, args ...any)
}

// scenarios are the bodies of all.
var scenarios = map[string]func(context.Context, *published.Data, published.Scenario, Options, *Report) error{
	published.DurabilityScenario: durability, published.LoadScenario: loads, published.WANScenario: roads,
	published.FanoutScenario: fanouts, published.FilterScenario: filters, published.LargeScenario: large,
	published.QueryScenario: queries, published.TypesScenario: types, published.ClientScenario: clients, published.UpdateScenario: updates, published.DropScenario: drops,
	published.FailoverScenario: failovers, published.ProjectionScenario: projections, published.TopologiesScenario: topologies,
	published.ThinScenario: thin, published.SkiScenario: skiDemo, published.ReadScenario: reads, published.AsyncScenario: async,
	published.ExchangeScenario: tradeEm, published.FlashScenario: flash, published.AuctionScenario: auction, published.SessionsScenario: sessions,
}

// Run runs a scenario by name.
func Run(ctx context.Context, d *published.Data, name string, o Options) (*Report, error) {
	s, ok := d.Scenario(name)
	if !ok || !s.IsSystemScenario() {
		return nil, fmt.Errorf("scenario %q: there are %s", name, strings.Join(published.SystemScenarios(), ", "))
	}
	if o.Say == nil {
		o.Say = func(string, ...any) {}
	}
	m := host.Manifest()
	r := &Report{Schema: Schema, Version: m.Version, StartedAt: time.Now().UTC().Format(time.RFC3339), Scenario: name, Mode: string(o.Mode), Shows: s.Reproduces, Verdict: Pass, Machine: m.Machine()}
	if o.Dir == "" {
		dir, err := os.MkdirTemp("", "order-probe-")
		if err != nil {
			return nil, err
		}
		defer func() { _ = os.RemoveAll(dir) }()
		o.Dir = dir
	}
	if err := os.MkdirAll(o.Dir, 0o700); err != nil {
		return nil, err
	}
	before, err := look()
	if err != nil {
		return nil, err
	}
	if err := scenarios[name](ctx, d, s, o, r); err != nil {
		return nil, err
	}
	after, err := look()
	if err != nil {
		return nil, err
	}
	r.disturbed(before, after)
	return r, nil
}

// ofMode reads both parameter sets of a scenario and returns that of a mode; quick changes the scaled one for a quick run.
func ofMode[T any](mode scenario.Mode, read func() (exact, scaled T, err error), quick func(*T)) (T, error) {
	exact, scaled, err := read()
	switch {
	case mode == scenario.Exact || err != nil:
		return exact, err
	case mode == scenario.Quick:
		quick(&scaled)
	}
	return scaled, nil
}

// of reads the parameter sets of a scenario for which tables of the reports are needed.
func of[T any](read func(published.Scenario) (exact, scaled T, err error), s published.Scenario) func() (exact, scaled T, err error) {
	return func() (T, T, error) { return read(s) }
}

// median of values, which it sorts.
func median(values []float64) float64 {
	if len(values) == 0 {
		return 0
	}
	slices.Sort(values)
	return values[len(values)/2]
}
