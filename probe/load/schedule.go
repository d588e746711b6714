package load

import (
	"fmt"
	"time"

	"github.com/ordergrid/ordergrid/probe/scenario"
)

// Schedule determines when each order of a step is intended, as nanoseconds after the start of the
// step. Offset must not fall as i rises, must not allocate, and must be deterministic: statistics
// use it again later.
type Schedule interface {
	Offset(i int64) int64
	// Orders is how many orders are intended before the given offset.
	Orders(before int64) int64
}

// MaxRate bounds a steady schedule, in orders per second: the interval between two orders must stay
// above the cost of creating one.
const MaxRate = scenario.MaxRate

// Steady is the arrival of the published tests: orders evenly spaced inside
// every second.
type Steady struct {
	rate  int64 // orders per second
	phase int64 // offset of order 0, ns
}

// NewSteady returns the schedule of rate orders per second whose first order
// is intended at phase, which must lie inside the first interval.
func NewSteady(rate int, phase time.Duration) (Steady, error) {
	if rate < 1 || rate > MaxRate {
		return Steady{}, fmt.Errorf("rate %d orders/s: must be 1 to %d", rate, MaxRate)
	}
	if phase < 0 || phase > time.Second/time.Duration(rate) {
		return Steady{}, fmt.Errorf("phase %v: must be 0 to %v, the distance between two orders", phase, time.Second/time.Duration(rate))
	}
	return Steady{rate: int64(rate), phase: int64(phase)}, nil
}

// Offset is computed from i, not accumulated, so it does not drift: a rate that
// does not divide a second is still met exactly, second by second.
func (s Steady) Offset(i int64) int64 {
	return s.phase + i/s.rate*int64(time.Second) + i%s.rate*int64(time.Second)/s.rate
}

// Orders is the number of i with Offset(i) < before.
func (s Steady) Orders(before int64) int64 {
	d := before - s.phase
	if d <= 0 {
		return 0
	}
	n := d/int64(time.Second)*s.rate + d%int64(time.Second)*s.rate/int64(time.Second)
	for s.Offset(n) < before { // undo the rounding of Offset
		n++
	}
	return n
}
