package scenario

import (
	"errors"
	"fmt"
	"time"

	"github.com/ordergrid/ordergrid/probe/fixorder"
	"github.com/ordergrid/ordergrid/probe/published"
)

// WriteCopies are the numbers of copies that gs-write compares: only the primary's, and one more
// that an order waits for.
var WriteCopies = []int{1, 2}

// WriteIndexed are three of the eight fields, as the published object has three that are indexed: two strings and a number.
// Each copy indexes them in its view.
var WriteIndexed = []string{"15:text:Currency", "100:text:ExDestination", "110:decimal:MinQty"}

// PingTime is how long the round trip is measured before the steps of a grid, at each of their
// rates.
const PingTime = time.Second

// writes sets the plan's grids and returns their numbers of copies; nothing for another scenario.
func (p *Plan) writes(s published.Scenario, o Options) ([]int, error) {
	if s.Name != published.WriteScenario {
		if o.Replicas != 0 {
			return nil, fmt.Errorf("replicas %d: go with scenario %s only; every other one sets the copies of its grid", o.Replicas, published.WriteScenario)
		}
		return nil, nil
	}
	if o.Arrival != nil && !o.Arrival.Defaulted().IsSteady() || o.Orders == Varied {
		return nil, errors.New("arrival and orders: records alike are written at a steady rate; leave both out")
	}
	copies := WriteCopies
	switch o.Replicas {
	case 0:
	case WriteCopies[0], WriteCopies[1]:
		copies = []int{o.Replicas}
	default:
		return nil, fmt.Errorf("replicas %d: must be %d (without replication) or %d (with), or 0 for both", o.Replicas, WriteCopies[0], WriteCopies[1])
	}
	p.Replicas = copies[len(copies)-1]
	return copies, nil
}

// writeParams: the report has no rates and no times, so the exact set has those of the scaled one,
// measured longer.
func writeParams(s published.Scenario) (exact, scaled published.Params, err error) {
	w, err := s.Write()
	if err != nil {
		return exact, scaled, err
	}
	scaled = published.Params{Servers: WriteCopies[0], Probes: w.Clients, Threads: w.Outstanding, RatesPerProbe: w.Rates, WarmupS: w.WarmupS, MeasureS: w.MeasureS, Repeats: 1}
	exact = scaled
	exact.WarmupS, exact.MeasureS, exact.Repeats = 5, 30, 2
	return exact, scaled, nil
}

// scheduleWrites puts the steps of one grid after those of the other. Within a grid the records
// alternate at each rate, so that a drift of the machine affects both alike.
func (p *Plan) scheduleWrites(copies []int) {
	for _, replicas := range copies {
		for run := range p.Repeats {
			for _, rate := range p.Rates {
				for _, record := range fixorder.Records() {
					p.Steps = append(p.Steps, Step{Rate: rate, Probes: p.Probes, Run: run + 1, Record: record, Replicas: replicas})
				}
			}
		}
	}
}

// Grids splits the plan into parts that each need a grid. All but those of gs-write and stac-timeplot have one part, the
// plan itself.
func (p Plan) Grids() (parts []Plan) {
	for _, s := range p.Steps {
		if n := len(parts); n == 0 || s.Replicas != 0 && s.Replicas != parts[n-1].Replicas {
			part := p
			part.Steps = nil
			if s.Replicas != 0 {
				part.Replicas, part.Probes = s.Replicas, s.Probes
			}
			parts = append(parts, part)
		}
		last := &parts[len(parts)-1]
		last.Steps = append(last.Steps, s)
	}
	for i := range parts {
		parts[i].number()
	}
	return parts
}

// Copies of an order that the step's grid has.
func (p Plan) Copies(s Step) int {
	if s.Replicas != 0 {
		return s.Replicas
	}
	return p.Replicas
}

// WriteLabel names the record, or "ping", and the number of servers that have it.
func WriteLabel(record string, replicas int) string {
	return fmt.Sprintf("%s, %d %s", record, replicas, Plural(replicas, "copy", "copies"))
}
