package published

import (
	"errors"
	"fmt"
	"slices"
)

// Scenarios about a whole system of processes, not about a rate of orders.
const (
	DurabilityScenario = "stac-durability"
	LoadScenario       = "bar-load"
	WANScenario        = "bar-wan"
	FanoutScenario     = "sol-fanout"
	FilterScenario     = "sol-filter"
	LargeScenario      = "sol-large"
	QueryScenario      = "bar-query"
	TypesScenario      = "bar-types"
	ClientScenario     = "bar-client"
	UpdateScenario     = "bar-update"
	DropScenario       = "bar-drop"
	FailoverScenario   = "bar-failover"
	ProjectionScenario = "bar-projection"
	TopologiesScenario = "bar-topologies"
	ThinScenario       = "jade-thin"
	SkiScenario        = "jade-skidemo"
	ReadScenario       = "jade-tpca"
	AsyncScenario      = "jade-async"
)

// SystemScenarios are those names.
func SystemScenarios() []string {
	return []string{DurabilityScenario, LoadScenario, WANScenario, FanoutScenario, FilterScenario, LargeScenario,
		QueryScenario, TypesScenario, ClientScenario, UpdateScenario, DropScenario,
		FailoverScenario, ProjectionScenario, TopologiesScenario, ThinScenario, SkiScenario, ReadScenario, AsyncScenario, ExchangeScenario, FlashScenario, AuctionScenario, SessionsScenario}
}

// IsSystemScenario reports whether the scenario is one of them.
func (s Scenario) IsSystemScenario() bool { return slices.Contains(SystemScenarios(), s.Name) }

// Durability are the parameters of DurabilityScenario.
type Durability struct {
	Rate    int // orders/s of each probe
	AtS     int // when the primary is killed
	TotalS  int
	Repeats int
}

// Durability reads both parameter sets.
func (s Scenario) Durability() (exact, scaled Durability, err error) {
	if s.Name != DurabilityScenario {
		return exact, scaled, fmt.Errorf("scenario %q is not about durability", s.Name)
	}
	read := func(raw []byte) (Durability, error) {
		var v struct {
			Rate    int    `json:"rate_per_probe"`
			Kill    string `json:"kill"` // in words
			AtS     int    `json:"at_s"`
			TotalS  int    `json:"total_s"`
			Repeats int    `json:"repeats"`
		}
		if err := decodeStrict(raw, &v); err != nil {
			return Durability{}, err
		}
		if v.Rate < 1 || v.AtS < 1 || v.TotalS <= v.AtS || v.Repeats < 1 {
			return Durability{}, fmt.Errorf("rate_per_probe %d, at_s %d, total_s %d, repeats %d: must be at least 1, and total_s above at_s", v.Rate, v.AtS, v.TotalS, v.Repeats)
		}
		return Durability{v.Rate, v.AtS, v.TotalS, v.Repeats}, nil
	}
	return eachSet(s, read)
}

// LoadRows are the parameters of LoadScenario that can be read as numbers.
type LoadRows struct {
	Rows  []int // of the files, rising
	Users int   // clients that submit beside a load
}

// Loads reads both parameter sets. The published run has traffic beside a load of a number of users that it does not name.
func (s Scenario) Loads() (exact, scaled LoadRows, err error) {
	var a struct {
		Rows    []int    `json:"rows"`
		Loaders []string `json:"loaders"`
		Types   []string `json:"types"`
		Traffic bool     `json:"bg"`
	}
	var b struct {
		Rows    []int    `json:"rows"`
		Loaders []string `json:"loaders"`
		Users   int      `json:"bg_users"`
	}
	if err := s.decodeSets(LoadScenario, &a, &b); err != nil {
		return exact, scaled, err
	}
	for _, rows := range [][]int{a.Rows, b.Rows} {
		if len(rows) < 2 || rows[0] < 1 || !slices.IsSorted(rows) {
			return exact, scaled, fmt.Errorf("scenario %q: rows %v: must be two or more, positive and rising", s.Name, rows)
		}
	}
	if b.Users < 1 {
		return exact, scaled, fmt.Errorf("scenario %q: bg_users %d: must be 1 or more", s.Name, b.Users)
	}
	return LoadRows{a.Rows, b.Users}, LoadRows{b.Rows, b.Users}, nil
}

// WAN are the parameters of WANScenario that are about a road between two sites.
type WAN struct {
	Batches  []int
	DelayMs  []int
	OneWayMs []float64
	Sizes    []int // bytes of an object over the longest road
	Rows     int   // of each of Caches
	Caches   int
}

// WAN reads both parameter sets. The published one names cities, not times; those of the road are the scaled set's.
func (s Scenario) WAN() (exact, scaled WAN, err error) {
	var a struct {
		Batch  []int    `json:"batch"`
		Delay  []int    `json:"delay_ms"`
		Sites  []string `json:"sites"`
		Caches int      `json:"caches"`
		Rows   int      `json:"rows_per_cache"`
		Modes  []string `json:"modes"`
	}
	var b struct {
		Batch     []int     `json:"batch"`
		Delay     []int     `json:"delay_ms"`
		OneWay    []float64 `json:"one_way_ms"`
		Sizes     []int     `json:"sizes"`
		Caches    int       `json:"caches"`
		Rows      int       `json:"rows_per_cache"`
		Placement []string  `json:"placement"`
	}
	if err := s.decodeSets(WANScenario, &a, &b); err != nil {
		return exact, scaled, err
	}
	exact, scaled = WAN{a.Batch, a.Delay, b.OneWay, b.Sizes, a.Rows, a.Caches}, WAN{b.Batch, b.Delay, b.OneWay, b.Sizes, b.Rows, b.Caches}
	for _, w := range []WAN{exact, scaled} {
		if len(w.Batches) == 0 || len(w.DelayMs) == 0 || len(w.OneWayMs) == 0 || w.Rows < 1 || w.Caches < 1 {
			return exact, scaled, fmt.Errorf("scenario %q: %+v: needs batches, delays, times of the road, rows and caches", s.Name, w)
		}
	}
	return exact, scaled, nil
}

// WANRate is the published rate of push replication to London in objects/s; 0: there is none for that batch and delay.
func (d *Data) WANRate(batch, delayMs int) float64 {
	c, _ := d.Cell("coherence", "5.5", float64(delayMs), fmt.Sprintf("batch_%d", batch))
	return c.Value
}

// LoadSeconds is the published time of loading a number of rows from a file; 0: it has none.
func (d *Data) LoadSeconds(rows int) float64 {
	t, _ := d.Table("coherence", "5.1")
	for _, r := range t.Rows {
		if r["rows"].Number == float64(rows) {
			return r["avg_s"].Number
		}
	}
	return 0
}

// LoadRatio is the published rate of so many million rows as a share of that of one million; 0: there is none.
func (d *Data) LoadRatio(millions int) float64 {
	one, more := d.LoadSeconds(1_000_000), d.LoadSeconds(millions*1_000_000)
	if more == 0 {
		return 0
	}
	return float64(millions) * one / more
}

// checkNumbers checks that facts are numbers.
func (d *Data) checkNumbers(ids ...string) error {
	for _, id := range ids {
		if _, ok := d.FactNumber(id); !ok {
			return fmt.Errorf("published.json: fact %s is not there, must be a number", id)
		}
	}
	return nil
}

// checkLists checks that facts are lists of so many numbers.
func (d *Data) checkLists(n int, ids ...string) error {
	for _, id := range ids {
		if got := len(d.FactNumbers(id)); got != n {
			return fmt.Errorf("published.json: fact %s has %d numbers, must have %d", id, got, n)
		}
	}
	return nil
}

// checkSystem checks that every figure compared with these scenarios exists.
func (d *Data) checkSystem(s Scenario) error {
	switch s.Name {
	case DurabilityScenario:
		_, _, err := s.Durability()
		if n, ok := d.FactNumber("stac.loss"); err == nil && (!ok || n != 0) {
			return fmt.Errorf("published.json: fact stac.loss is %v, must be 0", n)
		}
		return err
	case WANScenario:
		exact, _, err := s.WAN()
		for _, batch := range exact.Batches {
			for _, delay := range exact.DelayMs {
				if err == nil && d.WANRate(batch, delay) <= 0 {
					return fmt.Errorf("published.json: table coherence 5.5 has no rate for batch %d and delay %d", batch, delay)
				}
			}
		}
		return err
	case FanoutScenario, FilterScenario, LargeScenario:
		_, _, err := d.Fanout(s)
		return err
	case QueryScenario, TypesScenario, ClientScenario, UpdateScenario, DropScenario:
		_, _, err := d.Caches(s)
		return err
	case FailoverScenario:
		_, _, err := d.Failover(s)
		return errors.Join(err, d.checkNumbers("bar.serverfail", "bar.serverfail.load"), d.checkLists(2, "bar.nodefail", "bar.nodefail.load"))
	case ProjectionScenario:
		_, _, err := s.Projection()
		return errors.Join(err, d.checkNumbers("bar.pk", "bar.pkred", "bar.mem"))
	case TopologiesScenario:
		_, _, err := s.TopologyNodes()
		return err
	case ThinScenario, SkiScenario, ReadScenario:
		_, _, err := s.Users()
		return err
	case AsyncScenario:
		exact, _, err := s.Workers()
		for _, n := range exact.Workers {
			if err == nil && d.WorkersUs(n) <= 0 {
				return fmt.Errorf("published.json: table jade AsyncMethodCalls has no time of %d workers", n)
			}
		}
		return err
	case ExchangeScenario:
		exact, _, err := d.Exchange(s)
		for _, x := range exact {
			if err == nil && x.TPS <= 0 {
				return fmt.Errorf("published.json: table jade TradeEm-TCP has no rate for %+v", x)
			}
		}
		return err
	case LoadScenario:
		exact, _, err := s.Loads()
		for _, rows := range exact.Rows {
			if err == nil && d.LoadSeconds(rows) <= 0 {
				return fmt.Errorf("published.json: table coherence 5.1 has no time for %d rows", rows)
			}
		}
		return err
	}
	return nil
}
