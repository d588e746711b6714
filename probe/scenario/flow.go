package scenario

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/ordergrid/ordergrid/probe/flow"
	"github.com/ordergrid/ordergrid/probe/published"
)

// Orders is the kind of the orders of a plan.
type Orders string

// Orders.
const (
	Uniform Orders = "uniform" // the 305-byte order of the published tests, repeated
	Varied  Orders = "varied"  // new, cancel and replace; symbols, sides, sizes, prices, types
)

// ParseOrders reads the kind of orders.
func ParseOrders(s string) (Orders, error) {
	switch o := Orders(s); o {
	case Uniform, Varied:
		return o, nil
	}
	return "", fmt.Errorf("orders %.40q: there are %s and %s", s, Uniform, Varied)
}

// flowArrival is the arrival of a flow scenario.
var flowArrival = map[string]flow.Type{"flow-hawkes": flow.Hawkes, "flow-replay": flow.Replay, "flow-day": flow.Day}

// IsFlow reports whether the scenario is about order flow, for which no report has figures.
func IsFlow(name string) bool { return flowArrival[name] != "" }

// params are the parameter sets of a scenario, for the mode and exactly. A flow
// scenario is stac-pair with another flow.
func params(d *published.Data, s published.Scenario, mode Mode) (chosen, exact published.Params, speeds []int, err error) {
	base := s
	if s.IsFlowScenario() || s.Name == published.KneeScenario || s.Name == published.TimeplotScenario {
		base, _ = d.Scenario("stac-pair")
	}
	exact, scaled, err := baseParams(base)
	if err != nil {
		return chosen, exact, nil, err
	}
	var flowExact, flowScaled published.Flow
	if s.IsFlowScenario() {
		if flowExact, flowScaled, err = s.Flow(); err != nil {
			return chosen, exact, nil, err
		}
		flowParams(&exact, flowExact)
		flowParams(&scaled, flowScaled)
	}
	if s.Name == published.TimeplotScenario {
		if err = timeplotParams(s, &exact, &scaled); err != nil {
			return chosen, exact, nil, err
		}
	}
	if s.Name == published.KneeScenario {
		if err = kneeParams(s, &exact, &scaled); err != nil {
			return chosen, exact, nil, err
		}
	}
	speeds = flowScaled.Speed
	switch mode {
	case Exact:
		chosen, speeds = exact, flowExact.Speed
	case Scaled:
		chosen = scaled
	case Quick:
		chosen = quick(s.Name, scaled)
	default:
		err = fmt.Errorf("mode %q: there are %s, %s and %s", mode, Exact, Scaled, Quick)
	}
	return chosen, exact, speeds, err
}

// baseParams are those of a scenario with steady rates.
func baseParams(s published.Scenario) (exact, scaled published.Params, err error) {
	if s.Name == published.WriteScenario {
		return writeParams(s)
	}
	return s.Params()
}

// dayRates are the mean rates of a trading day; its busiest minute has about
// six times as many.
var dayRates = []int{500}

func flowParams(p *published.Params, f published.Flow) {
	if len(f.Rates) > 0 {
		p.RatesPerProbe = f.Rates
	}
	if f.MeasureS > 0 {
		p.MeasureS = f.MeasureS
	}
	if f.Minutes > 0 {
		p.MeasureS = f.Minutes * 60
	}
	if f.Seconds > 0 {
		p.MeasureS = f.Seconds
	}
	if f.Minutes > 0 || f.Seconds > 0 {
		p.RatesPerProbe, p.Repeats = dayRates, 1
	}
	if len(f.Speed) > 0 {
		p.RatesPerProbe, p.MeasureS = nil, max(p.MeasureS, 20)
	}
}

// flow determines the arrival and the kind of orders.
func (p *Plan) flow(speeds []int, o Options) error {
	own := flowArrival[p.Scenario]
	var a flow.Arrival
	if o.Arrival != nil {
		a = *o.Arrival
	}
	if a.Type == "" {
		a.Type = own
	}
	if own != "" && a.Type != own {
		return fmt.Errorf("arrival %s: scenario %s is about arrival %s; leave it out, or choose stac-pair", a.Type, p.Scenario, own)
	}
	a = a.Defaulted()
	if err := a.Check(); err != nil {
		return err
	}
	switch o.Orders {
	case "":
		p.Varied = !a.IsSteady()
	case Uniform, Varied:
		p.Varied = o.Orders == Varied
	default:
		_, err := ParseOrders(string(o.Orders))
		return err
	}
	if a.Type != flow.Replay {
		if len(o.Speeds) > 0 {
			return fmt.Errorf("speeds: only for arrival %s, this one is %s; leave them out", flow.Replay, a.Type)
		}
		if !a.IsSteady() || p.Varied {
			p.Arrival = &a
		}
		return nil
	}
	p.Arrival = &a
	return p.replay(speeds, o)
}

func (p *Plan) replay(speeds []int, o Options) error {
	if len(o.Rates) > 0 {
		return errors.New("rates: a replay has those of its recording; choose speeds instead")
	}
	if len(o.Speeds) > 0 {
		speeds = slices.Clone(o.Speeds)
		slices.Sort(speeds)
	}
	if len(speeds) == 0 {
		speeds = []int{1}
	}
	for i, s := range speeds {
		if s < flow.MinSpeed || s > flow.MaxSpeed {
			return fmt.Errorf("speed %d: must be %d to %d times that of the recording", s, flow.MinSpeed, flow.MaxSpeed)
		}
		if i > 0 && s == speeds[i-1] {
			return fmt.Errorf("speed %d: is given twice; use repeats to play it again", s)
		}
	}
	p.Rates, p.speeds, p.recording = nil, speeds, o.Recording
	if o.Recording != nil {
		p.Arrival.Recording = o.Recording.Name
	}
	return nil
}

// variant is what distinguishes steps besides their index and their pairs.
type variant struct {
	rate    int
	arrival flow.Type
	speed   int
	orders  int64
}

// variants of one round. A burst is compared with a steady step right before it, at the same mean
// rate and with the same kind of orders.
func (p *Plan) variants() (out []variant, err error) {
	if p.Arrival != nil && p.Arrival.Type == flow.Replay {
		for _, speed := range p.speeds {
			v, err := p.replayed(speed)
			if err != nil {
				return nil, err
			}
			out = append(out, v)
		}
		return out, nil
	}
	for _, rate := range p.Rates {
		v := variant{rate: rate}
		if p.Arrival != nil {
			v.arrival = p.Arrival.Type
		}
		if p.Scenario == "flow-hawkes" {
			out = append(out, variant{rate: rate, arrival: flow.Steady})
		}
		out = append(out, v)
	}
	return out, nil
}

// replayed is a step that plays the recording, or the largest possible one if the recording is not
// known here.
func (p *Plan) replayed(speed int) (variant, error) {
	v := variant{arrival: flow.Replay, speed: speed, orders: int64(p.Arrival.MaxMessages)}
	length := p.WarmupTime() + p.MeasureTime()
	if p.recording == nil {
		v.rate = int(min(MaxRate, max(1, v.orders*1000/length.Milliseconds())))
		return v, nil
	}
	span := p.recording.Span() / time.Duration(speed)
	measured, _ := p.recording.Count(speed, p.WarmupTime(), length, p.Probes)
	if measured == 0 {
		return v, fmt.Errorf("recording %s lasts %v at %dx and has no message after the warm-up of %v: nothing would be measured; shorten the warm-up", p.recording.Name, span.Round(time.Millisecond), speed, p.WarmupTime())
	}
	_, v.orders = p.recording.Count(speed, 0, length, p.Probes)
	seconds := (min(length, span+time.Millisecond) - p.WarmupTime()).Seconds()
	rate := math.Round(float64(measured) / seconds / float64(p.Probes))
	if rate > MaxRate {
		return v, fmt.Errorf("recording %s has %.0f messages/s a probe at %dx: at most %d; play it slower", p.recording.Name, rate, speed, MaxRate)
	}
	v.rate = max(1, int(rate))
	return v, nil
}

// FlowParams determine the orders of a probe in a step.
func (p Plan) FlowParams(s Step, probe int, recording *flow.Recording) flow.Params {
	a := flow.Arrival{}.Defaulted()
	if p.Arrival != nil {
		a = *p.Arrival
	}
	if s.Arrival != "" {
		a.Type = s.Arrival
	}
	return flow.Params{
		Arrival: a, Varied: p.Varied, Rate: s.Rate, Warmup: p.WarmupTime(), Measure: p.MeasureTime(),
		Step: s.ID, Probe: probe, Probes: s.Probes, Recording: recording, Speed: s.Speed,
	}
}

// Label distinguishes steps of one rate: "hawkes", "replay 4x", "8 fields, 2 copies", "1 server"; empty where
// all steps are alike.
func (s Step) Label() string {
	switch {
	case s.Speed > 0:
		return fmt.Sprintf("%s %dx", s.Arrival, s.Speed)
	case s.Record != "":
		return WriteLabel(string(s.Record), s.Replicas)
	case s.Replicas > 0:
		return fmt.Sprintf("%d %s", s.Replicas, Plural(s.Replicas, "server", "servers"))
	}
	return string(s.Arrival)
}
