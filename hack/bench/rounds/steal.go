package rounds

import (
	"context"
	"sync"
	"time"

	"github.com/ordergrid/ordergrid/probe/host"
)

// steal is the CPU time of the machine as it goes, a sample every quarter of a second.
type steal []host.Sample

// watchSteal samples until the function that it returns is called, which returns what it has.
func watchSteal(ctx context.Context) func() (steal, error) {
	ctx, cancel := context.WithCancel(ctx)
	var s steal
	var err error
	var wg sync.WaitGroup
	wg.Go(func() {
		for ctx.Err() == nil && err == nil {
			var sample host.Sample
			if sample, err = host.Take(nil); err == nil {
				s = append(s, sample)
			}
			_ = wait(ctx, time.Second/4)
		}
	})
	return func() (steal, error) {
		cancel()
		wg.Wait()
		return s, err
	}
}

// between is the part of the CPU time that the hypervisor took between two moments, in per cent; what came in between, if
// no two samples are that close.
func (s steal) between(from, to time.Time) float64 {
	first, last := 0, len(s)-1
	for i := range s {
		if !s[i].At.After(from) {
			first = i
		}
	}
	for i := range s {
		if !s[i].At.Before(to) {
			last = i
			break
		}
	}
	if first >= last {
		return 0
	}
	return host.Between(s[first], s[last], false).Steal
}

// disturbs reports of a second since begin whether more than limit per cent of it, or of the one before, were taken: orders
// that have waited since then are answered in it.
func (s steal) disturbs(begin time.Time, limit float64) func(second time.Duration) bool {
	return func(second time.Duration) bool {
		at := begin.Add(second)
		return s.between(at.Add(-time.Second), at) > limit || s.between(at, at.Add(time.Second)) > limit
	}
}
