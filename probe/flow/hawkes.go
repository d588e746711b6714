package flow

import (
	"math"
	"time"
)

// component of a Hawkes kernel n*beta*exp(-beta*t): an event triggers about n more on average,
// within about 1/beta seconds.
type component struct{ n, beta float64 }

// kernel is fitted to a public record of order events of one instrument (301,027 events in 30
// minutes, Bitstamp btcusd): bursts within a millisecond, within 50 ms and within a second. Its
// branching ratio of 0.95 means that 19 of 20 orders are triggered by an earlier order.
var kernel = [...]component{{0.35, 1000}, {0.35, 20}, {0.25, 1}}

// DefaultBranching is the branching ratio of the kernel, in per cent.
const DefaultBranching = 95

// hawkes is a self-exciting process with a sum of exponentials as kernel. The
// intensity is a constant and one decaying term a component, so an event costs
// the same however long the past is. Exact: the next event of every term is
// drawn by inversion, and the first of them is the next event.
type hawkes struct {
	rng    random
	mu     float64 // events/s that are not triggered
	parts  [len(kernel)]component
	excess [len(kernel)]float64 // intensity of each term now, events/s
	t      float64              // seconds
}

// newHawkes begins a process of the given mean rate in events/s. branching is
// between 0 and 1; the components keep their proportions.
func newHawkes(rate, branching float64, seed uint64) *hawkes {
	h := &hawkes{rng: random{state: hash(seed, 0)}, mu: rate * (1 - branching)}
	for i, c := range kernel {
		h.parts[i] = component{c.n * branching / (DefaultBranching / 100.), c.beta}
		h.excess[i] = rate * h.parts[i].n // its mean
	}
	return h
}

// settle is five times the lifetime of the slowest fluctuation, in seconds: the burn-in after which
// a process is stationary.
func (h *hawkes) settle() float64 {
	last := len(h.parts) - 1
	fast := 0.0
	for _, c := range h.parts[:last] {
		fast += c.n
	}
	slow := h.parts[last]
	return 5 / (slow.beta * (1 - slow.n/(1-fast)))
}

// next is the time of the next event, in seconds.
func (h *hawkes) next() float64 {
	wait := h.rng.exponential() / h.mu
	for i, c := range h.parts {
		// The term's total intensity from now on is excess/beta events: with probability
		// exp(-excess/beta) there is none.
		left := 1 - h.rng.exponential()*c.beta/h.excess[i]
		if left > 0 {
			wait = min(wait, -math.Log(left)/c.beta)
		}
	}
	h.t += wait
	for i, c := range h.parts {
		h.excess[i] = h.excess[i]*math.Exp(-c.beta*wait) + c.n*c.beta
	}
	return h.t
}

// Limits of a stretch of the process that is accepted for a step.
const (
	maxStretch = 0.05 // how much its clock may be changed to meet the rate
	minFano100 = 6    // Fano factor at 100 ms, for the kernel's own branching
	maxFano100 = 14
	maxDraws   = 400
	maxDrawn   = 30_000_000 // events, over all draws
)

// hawkesTimes are intended times of a step, in ns: exactly rate*measure of them
// in the measured part, and those that came before them in the warm-up, at most
// rate*warmup.
//
// A short stretch of a process with memory is often far from its mean: 5 s at branching 0.95 miss
// the rate by a fifth half of the time. A step of 1,000 orders/s must offer that, and must be as
// bursty as configured. So consecutive stretches are drawn until one meets the rate within 5 % and
// the Fano factor at 100 ms; its clock is then adjusted to meet the rate exactly.
func hawkesTimes(p Params) []int64 {
	h := newHawkes(float64(p.Rate), float64(p.Arrival.Branching)/100, p.seed())
	for end := h.settle(); h.t < end; {
		h.next()
	}
	var best []int64
	bestMiss, drawn := math.Inf(1), 0
	for range maxDraws {
		times, events, stretch := h.stretch(p)
		miss := missed(p, times, stretch)
		if miss < bestMiss {
			best, bestMiss = times, miss
		}
		if drawn += events; miss == 0 || drawn > maxDrawn {
			break
		}
	}
	return best
}

// stretch draws one candidate. stretch is the factor of its clock.
func (h *hawkes) stretch(p Params) (times []int64, events int, stretch float64) {
	begin := h.t
	start := begin + p.Warmup.Seconds()
	var raw []float64
	for t := h.next(); ; t = h.next() {
		events++
		if t < start {
			raw = append(raw, t)
			continue
		}
		break
	}
	warm := len(raw)
	raw = append(raw, h.t)
	n := orders(p.Rate, p.Measure)
	for range n {
		raw = append(raw, h.next())
		events++
	}
	stretch = p.Measure.Seconds() / (raw[warm+n] - start)
	for i, t := range raw[:warm+n] {
		at := int64(p.Warmup) + int64((t-start)*stretch*1e9)
		if i < warm && (at < 0 || warm-i > orders(p.Rate, p.Warmup)) {
			continue
		}
		times = append(times, at)
	}
	return times, events, stretch
}

// missed is how far a candidate is from the target, 0 if it meets it.
func missed(p Params, times []int64, stretch float64) (miss float64) {
	if off := math.Abs(math.Log(stretch)); off > maxStretch {
		miss += off
	}
	if p.Arrival.Branching != DefaultBranching {
		return miss
	}
	f := NewFano(int64(p.Warmup), 100*time.Millisecond)
	for _, t := range times {
		f.Add(t)
	}
	f.Close(int64(p.Warmup + p.Measure))
	v, ok := f.Value()
	switch {
	case !ok:
	case v < minFano100:
		miss += math.Log(minFano100 / math.Max(v, 1e-3))
	case v > maxFano100:
		miss += math.Log(v / maxFano100)
	}
	return miss
}
