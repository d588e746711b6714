package fixdoor

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/ordergrid/ordergrid/probe/host"
)

// Driven is what a time of orders showed.
type Driven struct {
	Orders  int
	PerS    float64
	Took    []time.Duration // sorted, of each order from when it was due to its report
	Late    time.Duration   // how late an order was sent at the most
	Elapsed time.Duration
	Busy    float64 // of a core, of the thread of the sessions
}

// AtRate sends orders at a rate from a moment on, by the sessions in turn, and waits for all reports. An order whose
// session still waits goes by the next one that does not.
func (w *Swarm) AtRate(ctx context.Context, perS int, begun time.Time, lasts time.Duration) (*Driven, error) {
	n := int(lasts.Seconds() * float64(perS))
	d, cpu := &Driven{}, host.ThreadTime()
	w.took = make([]time.Duration, 0, n)
	defer func() { w.took = nil }()
	for d.Orders < n {
		due := begun.Add(time.Duration(d.Orders) * time.Second / time.Duration(perS))
		if left := time.Until(due); left > 0 {
			if err := w.pump(ctx, left); err != nil {
				return nil, err
			}
			continue
		}
		ok, err := w.Submit(due.UnixNano())
		if err != nil {
			return nil, err
		}
		if ok {
			d.Orders++
			d.Late = max(d.Late, time.Since(due))
		}
		if err := w.pump(ctx, 0); err != nil {
			return nil, err
		}
	}
	return d, w.settle(ctx, d, begun, cpu)
}

// AsFast sends orders so that so many are without a report, at most so many, and waits for all reports.
func (w *Swarm) AsFast(ctx context.Context, window, most int, lasts time.Duration) (*Driven, error) {
	d, begun, cpu := &Driven{}, time.Now(), host.ThreadTime()
	w.took = make([]time.Duration, 0, most)
	defer func() { w.took = nil }()
	for time.Since(begun) < lasts && d.Orders < most {
		for w.waiting < window && d.Orders < most {
			ok, err := w.Submit(time.Now().UnixNano())
			if err != nil {
				return nil, err
			}
			if !ok {
				break
			}
			d.Orders++
		}
		if err := w.pump(ctx, patience); err != nil {
			return nil, err
		}
	}
	return d, w.settle(ctx, d, begun, cpu)
}

// settle waits for the reports that are missing.
func (w *Swarm) settle(ctx context.Context, d *Driven, begun time.Time, cpu time.Duration) error {
	for until := time.Now().Add(swarmPatience); w.waiting > 0; {
		if err := w.pump(ctx, patience); err != nil {
			return err
		}
		if time.Now().After(until) {
			return fmt.Errorf("%d orders have no report after %v", w.waiting, swarmPatience)
		}
	}
	d.Elapsed = time.Since(begun)
	d.Busy = (host.ThreadTime() - cpu).Seconds() / d.Elapsed.Seconds()
	d.PerS = float64(d.Orders) / d.Elapsed.Seconds()
	d.Took = slices.Sorted(slices.Values(w.took))
	return nil
}
