package published

import (
	"errors"
	"fmt"
)

// TimeplotScenario is latency over the first seconds at three rates, and what the worst moments are made of.
const TimeplotScenario = "stac-timeplot"

// Timeplot are the parameters of TimeplotScenario.
type Timeplot struct {
	WindowS int           `json:"window_s"`
	Rates   []ServersRate `json:"rates"`
}

// ServersRate is a rate, orders/s in total, of so many servers with a probe each.
type ServersRate struct {
	Servers int `json:"servers"`
	Total   int `json:"total"`
}

// Timeplot reads both parameter sets.
func (s Scenario) Timeplot() (exact, scaled Timeplot, err error) {
	if err := s.decodeSets(TimeplotScenario, &exact, &scaled); err != nil {
		return exact, scaled, err
	}
	for _, t := range []Timeplot{exact, scaled} {
		if t.WindowS < 1 || len(t.Rates) == 0 {
			return exact, scaled, fmt.Errorf("scenario %q: window_s %d and %d rates: must be 1 or more", s.Name, t.WindowS, len(t.Rates))
		}
		for _, r := range t.Rates {
			if r.Servers < 1 || r.Servers > 2 || r.Total < r.Servers || r.Total%r.Servers != 0 {
				return exact, scaled, fmt.Errorf("scenario %q: total %d of %d servers: must be a multiple of the servers, which are 1 or 2", s.Name, r.Total, r.Servers)
			}
		}
	}
	return exact, scaled, nil
}

// PauseRatio is the published number of pauses of a server without replication, by that of one with it.
func (d *Data) PauseRatio() float64 {
	v, _ := d.FactNumber("stac.gcpauses")
	return v
}

// checkTimeplot checks that the parameters can be read and the figure compared with them exists.
func (d *Data) checkTimeplot(s Scenario) error {
	if _, _, err := s.Timeplot(); err != nil {
		return fmt.Errorf("scenarios.json: %w", err)
	}
	if d.PauseRatio() <= 0 {
		return errors.New("published.json: no fact stac.gcpauses")
	}
	return nil
}
