package flow

import (
	"fmt"
	"slices"
	"time"
)

// Params determine the orders of one probe in one step.
type Params struct {
	Arrival Arrival // defaulted
	// Varied orders are of all kinds; otherwise all are the same.
	Varied  bool
	Rate    int // orders/s of this probe, on average; Replay has its own
	Warmup  time.Duration
	Measure time.Duration
	// Step, Probe and Probes distinguish the random choices of steps and probes, and select the
	// share of a recording.
	Step, Probe, Probes int
	// Recording is what Replay plays, Speed times as fast.
	Recording *Recording
	Speed     int
}

func (p Params) seed() uint64 {
	return hash(p.Arrival.Seed, uint64(p.Step)<<16|uint64(p.Probe))
}

// orders of a rate within a time.
func orders(rate int, d time.Duration) int { return int(int64(rate) * int64(d) / int64(time.Second)) }

// Schedule holds the intended times and contents of a step's orders. It takes 16 bytes per order,
// 24 for Replay.
type Schedule struct {
	at       []int64
	messages *Messages // nil: all orders are alike
}

// New generates a step. It takes about 100 ns per order.
func New(p Params) (*Schedule, error) {
	if p.Arrival.Type == Replay {
		if p.Recording == nil {
			return nil, fmt.Errorf("arrival replay: no recording was read; give one with --replay")
		}
		return p.Recording.play(p), nil
	}
	s := &Schedule{}
	switch p.Arrival.Type {
	case Hawkes:
		s.at = hawkesTimes(p)
	case Day:
		s.at = dayTimes(p)
	default:
		s.at = steadyTimes(p)
	}
	if p.Varied {
		s.messages = generate(s.at, p.seed())
	}
	return s, nil
}

// steadyTimes are evenly spaced; the probes of a step are spread over the interval between two
// orders.
func steadyTimes(p Params) []int64 {
	at := make([]int64, orders(p.Rate, p.Warmup+p.Measure))
	rate := int64(p.Rate)
	phase := int64(time.Second) / rate * int64(p.Probe) / int64(max(p.Probes, 1))
	for i := range at {
		n := int64(i)
		at[i] = phase + n/rate*int64(time.Second) + n%rate*int64(time.Second)/rate
	}
	return at
}

// Offset is when order i is intended, in ns after the start of the step.
func (s *Schedule) Offset(i int64) int64 { return s.at[i] }

// Orders is how many orders are intended before the given offset.
func (s *Schedule) Orders(before int64) int64 {
	n, _ := slices.BinarySearch(s.at, before)
	return int64(n)
}

// Messages are the contents of the orders; nil if all are alike.
func (s *Schedule) Messages() *Messages { return s.messages }
