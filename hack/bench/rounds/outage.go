package rounds

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/ordergrid/ordergrid/grid-node/nodestatus"
	"github.com/ordergrid/ordergrid/hack/bench/cases"
	"github.com/ordergrid/ordergrid/hack/bench/generator"
	"github.com/ordergrid/ordergrid/hack/bench/system"
	"github.com/ordergrid/ordergrid/probe/host"
)

// Outage is what clients see of one primary that is killed.
type Outage struct {
	Lasted time.Duration // the longest time without an answer, from the second of the kill on
	Before time.Duration // the same before it
	Bad    string        // why it does not count
}

// Outages kills the primary of each system in the middle of the case's load, in turns, round by round.
func (r *Runner) Outages(ctx context.Context, at system.Place, c *cases.Case, systems []system.System) (map[string][]Outage, error) {
	all := map[string][]Outage{}
	for n := range r.Rounds {
		for i := range systems {
			s := systems[(n+i)%len(systems)]
			before, quiet, err := host.State{}, true, error(nil)
			if r.Gate {
				before, quiet, err = r.Limits.AwaitQuiet(ctx, r.Patience, func(st host.State) { r.Say("waiting for a quiet machine: %s", st) })
			}
			if err != nil {
				return nil, err
			}
			o, err := r.outage(ctx, at, c, s)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", s.Name(), err)
			}
			if !quiet {
				o.Bad = fmt.Sprintf("the machine was not quiet within %v: %s", r.Patience, before)
			}
			all[s.Name()] = append(all[s.Name()], o)
			r.Say("round %d/%d %s: no answer for %.1f ms, before it for %.1f ms at most %s", n+1, r.Rounds, s.Name(), o.Lasted.Seconds()*1e3, o.Before.Seconds()*1e3, o.Bad)
		}
	}
	return all, nil
}

// outage is one kill. A copy goes on alone.
func (r *Runner) outage(ctx context.Context, at system.Place, c *cases.Case, s system.System) (o Outage, err error) {
	run, err := s.Start(ctx, at, system.Topology{Copies: c.Copies, MinInSync: 1, Partitions: c.Partitions, MemoryMiB: min(c.MemoryMiB, affordable(c.Copies)), Prefault: min(c.PrefaultMiB(), affordable(c.Copies)/4)})
	if err != nil {
		return o, err
	}
	defer func() { err = errors.Join(err, run.Stop()) }()
	primary, err := primaryOf(ctx, at, run.HTTP)
	if err != nil {
		return o, err
	}
	spec := r.spec(c)
	spec.Driver, spec.Addresses, spec.TLS, spec.Copies, spec.Series, spec.Told = run.Driver, run.Addresses, run.TLS, 1, true, run.Told
	spec.PIDs = slices.Delete(slices.Clone(run.PIDs), primary, primary+1) // the primary's time is not known at the end
	var res generator.Result
	loaded := make(chan error, 1)
	go func() {
		var err error
		res, err = r.generate(ctx, at, &spec)
		loaded <- err
	}()
	var used [2]host.Sample // by the primary, from the end of the warm-up until it is killed
	for i, pause := range [2]time.Duration{spec.Warmup, spec.Duration / 2} {
		select {
		case <-time.After(pause):
		case err := <-loaded:
			return o, errors.Join(errors.New("the load ended before the primary was killed"), err)
		case <-ctx.Done():
			return o, ctx.Err()
		}
		if used[i], err = host.Take(run.PIDs[primary : primary+1]); err != nil {
			return o, err
		}
	}
	killed := time.Now()
	run.Kill(primary)
	if err := <-loaded; err != nil {
		return o, err
	}
	if res.Failed > res.Unsent {
		return o, fmt.Errorf("%d orders failed when the primary was killed: %s", res.Failed-res.Unsent, res.Error)
	}
	for i := range res.Series {
		if second := time.Duration(i+1) * time.Second; res.Began.Add(second).After(killed) {
			o.Lasted = max(o.Lasted, res.Series[i].Gap)
		} else {
			o.Before = max(o.Before, res.Series[i].Gap)
		}
	}
	switch {
	case res.Unsent > 0:
		o.Bad = fmt.Sprintf("%d orders were due and not sent", res.Unsent)
	case o.Before >= o.Lasted:
		o.Bad = "there was no answer for as long before it"
	default:
		res.Use.Foreign -= 100 * float64(used[1].Others-used[0].Others) / float64(res.Use.Elapsed) / float64(res.Use.Cores)
		o.Bad = r.Limits.Judge(res.Use)
	}
	return o, nil
}

// primaryOf is the node that is primary of the first partition.
func primaryOf(ctx context.Context, at system.Place, urls []string) (int, error) {
	client := nodestatus.NewClient(10*time.Second, at.Dial)
	defer client.CloseIdleConnections()
	for i, url := range urls {
		n, err := nodestatus.Get(ctx, client, strings.TrimPrefix(url, "http://"))
		if err != nil {
			return 0, err
		}
		if len(n.Partitions) > 0 && n.Partitions[0].Role == "primary" {
			return i, nil
		}
	}
	return 0, errors.New("no node is the primary")
}
