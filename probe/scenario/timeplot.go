package scenario

import (
	"errors"
	"slices"

	"github.com/ordergrid/ordergrid/probe/published"
)

// timeplotParams: everything but rates and the time is as in stac-pair.
func timeplotParams(s published.Scenario, exact, scaled *published.Params) error {
	a, b, err := s.Timeplot()
	if err != nil {
		return err
	}
	for _, x := range []struct {
		p *published.Params
		t published.Timeplot
	}{{exact, a}, {scaled, b}} {
		x.p.RatesPerProbe, x.p.MeasureS, x.p.Repeats = nil, x.t.WindowS, 1
		for _, r := range x.t.Rates {
			if per := r.Total / r.Servers; !slices.Contains(x.p.RatesPerProbe, per) {
				x.p.RatesPerProbe = append(x.p.RatesPerProbe, per)
			}
		}
		slices.Sort(x.p.RatesPerProbe)
	}
	return nil
}

// timeplots are the loads of stac-timeplot; nil for another scenario.
func (p *Plan) timeplots(s published.Scenario, o Options) ([]published.ServersRate, error) {
	if s.Name != published.TimeplotScenario {
		return nil, nil
	}
	if len(o.Rates) > 0 || o.Probes != 0 || o.Orders == Varied || o.Arrival != nil && !o.Arrival.IsSteady() {
		return nil, errors.New("rates, probes, arrival and orders: the plots are of published rates of one and of two servers; leave them out")
	}
	exact, scaled, err := s.Timeplot()
	if p.Mode == Exact {
		return exact.Rates, err
	}
	return scaled.Rates, err
}

// scheduleTimeplots puts the steps of one grid after those of the other, each server with a probe.
func (p *Plan) scheduleTimeplots(rates []published.ServersRate) {
	var grids []int
	for _, r := range rates {
		if !slices.Contains(grids, r.Servers) {
			grids = append(grids, r.Servers)
		}
	}
	for _, servers := range grids {
		for run := range p.Repeats {
			for _, r := range rates {
				if r.Servers == servers {
					p.Steps = append(p.Steps, Step{Rate: r.Total / servers, Probes: servers, Run: run + 1, Replicas: servers})
				}
			}
		}
	}
}
