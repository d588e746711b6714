// Package scenario turns the name of a published benchmark into a plan: the grid it needs, the
// probes, the rates and times, and their order. It is pure, so that the command line, the pods of a
// Job and the operator derive the same plan.
package scenario

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/ordergrid/ordergrid/probe/fixorder"
	"github.com/ordergrid/ordergrid/probe/flow"
	"github.com/ordergrid/ordergrid/probe/published"
)

// Mode is the size of a scenario.
type Mode string

// Modes.
const (
	Exact  Mode = "exact"  // the parameters of the published run
	Scaled Mode = "scaled" // for a machine with two cores
	Quick  Mode = "quick"  // a result within a minute: fewer rates, measured shorter
)

// Options choose and change a scenario's parameters. Zero values mean the mode's default, except
// for Warmup, where nil does.
type Options struct {
	Mode    Mode
	Rates   []int // orders/s of each probe
	Warmup  *time.Duration
	Measure time.Duration
	Repeats int
	Threads int
	Probes  int
	// Arrival and Orders change the arrival and the kind of orders; nil and "" leave it to the
	// scenario.
	Arrival *flow.Arrival
	Orders  Orders
	// Speeds of a replay. Recording is what it plays; without it the plan is the
	// largest that Arrival.MaxMessages allows.
	Speeds    []int
	Recording *flow.Recording
	// Search changes single parameters of stac-knee; zero fields stay.
	Search *Search
	// Replicas chooses one of gs-write's grids; 0 is both, one after the other.
	Replicas int
}

// Limits of a plan; the OrderProbe kind has the same.
const (
	MaxRate    = 1_000_000 // orders/s of a probe
	MaxProbes  = 26
	MaxThreads = 64
	MaxRepeats = 100
	MaxRates   = 32
	MaxWarmup  = time.Hour
	MaxMeasure = 24 * time.Hour
	MinMeasure = 100 * time.Millisecond
)

// Plan is what will be run.
type Plan struct {
	Scenario string `json:"scenario"`
	Mode     Mode   `json:"mode"`
	// Shards and Replicas describe the grid of the scenario.
	Shards   int `json:"shards"`
	Replicas int `json:"replicas"`
	// Probes is the largest number of concurrent probes.
	Probes  int    `json:"probes"`
	Threads int    `json:"threads"` // publishing threads of each probe
	Rates   []int  `json:"rates"`   // orders/s of each probe, rising
	Pairs   []int  `json:"pairs,omitempty"`
	Repeats int    `json:"repeats"`
	Warmup  int64  `json:"warmupMs"`
	Measure int64  `json:"measureMs"`
	Steps   []Step `json:"steps"`
	// Arrival is how orders arrive; nil is as in the published tests. Varied
	// orders are of every kind, else all are alike.
	Arrival *flow.Arrival `json:"arrival,omitempty"`
	Varied  bool          `json:"varied,omitempty"`
	// Differences are the parameters that differ from the published run, in words.
	Differences []string `json:"differences,omitempty"`
	// Indexed are the fields of an order that views of the grid index, as --order-index of grid-node names them; nil where
	// the scenario has none, or the grid is another program's.
	Indexed []string `json:"indexed,omitempty"`
	// Search, if not nil, adds steps while the plan is carried out.
	Search *Search `json:"search,omitempty"`

	speeds    []int // of a replay
	recording *flow.Recording
}

// Step is one rate held once.
type Step struct {
	ID     int `json:"id"`    // index in Plan.Steps
	Rate   int `json:"rate"`  // orders/s of each probe
	Pairs  int `json:"pairs"` // pairs of servers under load; 0 where the scenario has no pairs
	Probes int `json:"probes"`
	Run    int `json:"run"` // 1 to Repeats
	// OffsetMs is the start of the step relative to the run, for processes that have to agree on it
	// without communication.
	OffsetMs int64 `json:"offsetMs"`
	// Arrival of the step, where the plan has one; Speed of a replay.
	Arrival flow.Type `json:"arrival,omitempty"`
	Speed   int       `json:"speed,omitempty"`
	// MaxOrders is the most that a probe creates, where it does not follow from Rate.
	MaxOrders int64 `json:"maxOrders,omitempty"`
	// Record is the record, in gs-write. Replicas is the number of servers where steps differ in it: in gs-write and
	// stac-timeplot.
	Record   fixorder.Record `json:"record,omitempty"`
	Replicas int             `json:"replicas,omitempty"`
}

// TotalRate is the rate of all probes of the step together, orders/s.
func (s Step) TotalRate() int { return s.Rate * s.Probes }

// WarmupTime is the first part of a step, which is not measured.
func (p Plan) WarmupTime() time.Duration { return time.Duration(p.Warmup) * time.Millisecond }

// MeasureTime is the second part of a step.
func (p Plan) MeasureTime() time.Duration { return time.Duration(p.Measure) * time.Millisecond }

// Partition is the number of the partition of the probe with the given index: every pair of probes
// has a shard of its own and each of the two another primary there, as in the active/active tests.
// A new grid has partition n on shard n modulo its shards, and those of a shard are assigned to its
// pods in turn. With more probes than servers several share a partition.
func (p Plan) Partition(probe int) int {
	n := probe % p.Servers()
	return n%p.Replicas*p.Shards + n/p.Replicas
}

// Servers is the number of servers of the grid, and so the partitions it needs.
func (p Plan) Servers() int { return p.Shards * p.Replicas }

// New makes the plan of a scenario.
func New(d *published.Data, name string, o Options) (Plan, error) {
	s, ok := d.Scenario(name)
	if !ok || !s.IsRun() {
		return Plan{}, fmt.Errorf("scenario %q: there are %s", name, strings.Join(Names(d), ", "))
	}
	if o.Mode == "" {
		o.Mode = Scaled
	}
	params, exact, speeds, err := params(d, s, o.Mode)
	if err != nil {
		return Plan{}, err
	}
	p := Plan{Scenario: name, Mode: o.Mode, Shards: 1, Replicas: 2, Probes: max(params.Probes, 1), Pairs: params.Pairs}
	if params.Servers == 1 {
		p.Replicas = 1
	}
	if len(p.Pairs) > 0 {
		p.Shards = slices.Max(p.Pairs)
		p.Probes = 2 * p.Shards
	}
	copies, err := p.writes(s, o)
	if err != nil {
		return Plan{}, fmt.Errorf("scenario %s: %w", name, err)
	}
	plots, err := p.timeplots(s, o)
	if err != nil {
		return Plan{}, fmt.Errorf("scenario %s: %w", name, err)
	}
	if err := p.search(s, o); err != nil {
		return Plan{}, fmt.Errorf("scenario %s: %w", name, err)
	}
	if p.Search != nil {
		params.RatesPerProbe = []int{p.Search.From}
	}
	if err := p.apply(params, speeds, o); err != nil {
		return Plan{}, fmt.Errorf("scenario %s: %w", name, err)
	}
	if p.Search != nil && p.Arrival != nil && !p.Arrival.IsSteady() {
		return Plan{}, fmt.Errorf("scenario %s: arrival %s: the search is for steady rates; leave arrival out", name, p.Arrival)
	}
	switch {
	case len(copies) > 0:
		p.scheduleWrites(copies)
	case len(plots) > 0:
		p.scheduleTimeplots(plots)
	default:
		if err := p.schedule(); err != nil {
			return Plan{}, fmt.Errorf("scenario %s: %w", name, err)
		}
	}
	p.number()
	p.Differences = p.differences(exact)
	return p, nil
}

// Names lists the scenarios a plan can be made of.
func Names(d *published.Data) (names []string) {
	for _, s := range d.Scenarios {
		if s.IsRun() {
			names = append(names, s.Name)
		}
	}
	return names
}

// quick keeps the rates that the report's headline figures and the verdicts need, so that both
// scenarios of a demonstration end within a minute.
func quick(name string, p published.Params) published.Params {
	switch name {
	case "stac-single":
		p.RatesPerProbe = []int{2000, 6000}
	case "stac-pair":
		p.RatesPerProbe = []int{100, 1000, 2000, 3000}
	case "stac-scale":
		p.RatesPerProbe = []int{100, 500}
	case published.WriteScenario:
		p.RatesPerProbe = []int{500, 2000}
	}
	window := p.MeasureS
	p.WarmupS, p.MeasureS, p.Repeats = 1, 5, 1
	switch name {
	case published.TimeplotScenario:
		p.MeasureS = window
	case "flow-hawkes":
		p.RatesPerProbe, p.MeasureS = []int{500, 2000}, 8
	case "flow-replay":
		p.MeasureS = 10
	case "flow-day":
		p.MeasureS = 20
	}
	return p
}

func (p *Plan) apply(params published.Params, speeds []int, o Options) error {
	p.Rates, p.Threads, p.Repeats = params.RatesPerProbe, params.Threads, params.Repeats
	p.Warmup, p.Measure = int64(params.WarmupS)*1000, int64(params.MeasureS)*1000
	if o.Warmup != nil {
		p.Warmup = o.Warmup.Milliseconds()
	}
	if o.Measure != 0 {
		p.Measure = o.Measure.Milliseconds()
	}
	if len(o.Rates) > 0 {
		p.Rates = slices.Clone(o.Rates)
		slices.Sort(p.Rates)
	}
	p.Repeats, p.Threads = override(o.Repeats, p.Repeats), override(o.Threads, p.Threads)
	if o.Probes != 0 && len(p.Pairs) > 0 {
		return errors.New("probes cannot be set: two probes go with every pair of servers")
	}
	p.Probes = override(o.Probes, p.Probes)
	if err := p.flow(speeds, o); err != nil {
		return err
	}
	return p.check()
}

func override(v, otherwise int) int {
	if v != 0 {
		return v
	}
	return otherwise
}

func (p *Plan) check() error {
	within := func(what string, v, high int) error {
		if v < 1 || v > high {
			return fmt.Errorf("%s %d: must be 1 to %d", what, v, high)
		}
		return nil
	}
	err := errors.Join(
		within("probes", p.Probes, MaxProbes),
		within("threads", p.Threads, MaxThreads),
		within("repeats", p.Repeats, MaxRepeats),
	)
	if p.speeds == nil {
		err = errors.Join(err, within("number of rates", len(p.Rates), MaxRates))
	}
	for i, r := range p.Rates {
		err = errors.Join(err, within("rate", r, MaxRate))
		if i > 0 && r == p.Rates[i-1] {
			err = errors.Join(err, fmt.Errorf("rate %d: is given twice; use repeats to measure a rate again", r))
		}
	}
	if w := p.WarmupTime(); w < 0 || w > MaxWarmup {
		err = errors.Join(err, fmt.Errorf("warm-up %v: must be 0s to %v", w, MaxWarmup))
	}
	if m := p.MeasureTime(); m < MinMeasure || m > MaxMeasure {
		err = errors.Join(err, fmt.Errorf("measure %v: must be %v to %v", m, MinMeasure, MaxMeasure))
	}
	if err == nil && p.speeds == nil && int64(p.Rates[0])*(p.Warmup+p.Measure) < 1000 {
		err = fmt.Errorf("rate %d for %v: not one order would be created; measure longer", p.Rates[0], p.WarmupTime()+p.MeasureTime())
	}
	return err
}

// schedule orders the steps. The published procedure repeats a rate at once; otherwise whole rounds
// are repeated, and the numbers of pairs alternate within a round, so that a drift of the machine
// affects all alike.
func (p *Plan) schedule() error {
	variants, err := p.variants()
	if err != nil {
		return err
	}
	add := func(run int, v variant) {
		step := Step{Rate: v.rate, Probes: p.Probes, Run: run, Arrival: v.arrival, Speed: v.speed, MaxOrders: v.orders}
		if len(p.Pairs) == 0 {
			p.Steps = append(p.Steps, step)
			return
		}
		turn := len(p.Steps) / len(p.Pairs)
		for i := range p.Pairs {
			n := p.Pairs[(i+turn)%len(p.Pairs)]
			step.Pairs, step.Probes = n, 2*n
			p.Steps = append(p.Steps, step)
		}
	}
	if p.Mode == Exact {
		for _, v := range variants {
			for run := range p.Repeats {
				add(run+1, v)
			}
		}
	} else {
		for run := range p.Repeats {
			for _, v := range variants {
				add(run+1, v)
			}
		}
	}
	return nil
}

// number sets the indexes and times of the steps.
func (p *Plan) number() {
	offset := int64(0)
	for i := range p.Steps {
		p.Steps[i].ID, p.Steps[i].OffsetMs = i, offset
		// Between steps: orders drain and the log is read back.
		offset += p.Warmup + p.Measure + 3000 + (p.Warmup+p.Measure)/4
	}
}

// Orders is how many orders one probe creates in the step, at most.
func (p Plan) Orders(s Step) int64 {
	if s.MaxOrders > 0 {
		return s.MaxOrders
	}
	return int64(s.Rate) * (p.Warmup + p.Measure) / 1000
}

// OrdersPerPartition is the largest number of orders in a partition at the end of the run.
func (p Plan) OrdersPerPartition() (most int64) {
	if p.Search != nil {
		// Up by doubling, a bisection below the top, the confirmations, and one disturbed run or two.
		return 12 * p.MostOrders()
	}
	count := map[[2]int]int64{} // steps with another number of copies are on another grid
	for _, s := range p.Steps {
		for probe := range s.Probes {
			at := [2]int{s.Replicas, p.Partition(probe)}
			count[at] += p.Orders(s)
			most = max(most, count[at])
		}
	}
	return most
}

// Length is how long the steps take, without the pauses between them.
func (p Plan) Length() time.Duration {
	steps := len(p.Steps)
	if p.Search != nil {
		steps = p.Search.MaxSteps
	}
	return time.Duration(steps) * (p.WarmupTime() + p.MeasureTime())
}

// Scheduled is how long the steps take from an agreed start, when several probes begin each of them at its offset: to the end of
// the last one, and not less than Length.
func (p Plan) Scheduled() time.Duration {
	length := p.Length()
	if n := len(p.Steps); n > 0 {
		length = max(length, time.Duration(p.Steps[n-1].OffsetMs)*time.Millisecond+p.WarmupTime()+p.MeasureTime())
	}
	return length
}
