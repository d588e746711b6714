package validate

import (
	"fmt"
	"slices"
	"time"

	"github.com/ordergrid/ordergrid/probe/report"
)

// Spread of a quantity over repetitions; p99 by nearest rank, so with fewer than
// 100 values it is the greatest.
type Spread struct {
	N   int           `json:"n"`
	P50 time.Duration `json:"p50Nanoseconds"`
	P99 time.Duration `json:"p99Nanoseconds"`
	Max time.Duration `json:"maxNanoseconds"`
}

// SpreadOf sorts the values.
func SpreadOf(values []time.Duration) Spread {
	slices.Sort(values)
	return Spread{N: len(values), P50: Quantile(values, 0.5), P99: Quantile(values, 0.99), Max: Quantile(values, 1)}
}

// SpreadTable is a table of spreads in milliseconds, under a head; values are a name and a Spread each.
func SpreadTable(head string, values ...any) *report.Table {
	t := report.NewList(head, "p50", "p99", "max")
	for i := 0; i+1 < len(values); i += 2 {
		s := values[i+1].(Spread)
		t.Add(values[i], Millis(s.P50), Millis(s.P99), Millis(s.Max))
	}
	return t
}

// TooBusy is the utilization of all cores, in per cent, above which the measurement is dominated by
// queueing for a core.
const TooBusy = 92

// tooDisturbed is the part of repetitions, one of that many, in which the recording process itself
// may have been delayed before figures are meaningless.
const tooDisturbed = 5

// Excuse is the context of an outage that exceeds its limit: it counts only beyond the gaps of the
// same run without a fault.
type Excuse struct {
	Disturbed, Of int     // repetitions in which the recording process itself was delayed, of all
	Busy          float64 // per cent of all cores
	Noise         time.Duration
	Limit         time.Duration // that was exceeded
}

// String returns why the figure is not the grid's alone; empty: it is.
func (e Excuse) String() string {
	switch {
	case e.Disturbed*tooDisturbed > e.Of:
		return fmt.Sprintf("in %d of %d repetitions the recording process itself was kept from running: quiet the machine and repeat", e.Disturbed, e.Of)
	case e.Busy > TooBusy:
		return fmt.Sprintf("the machine was %.0f %% busy: quiet it and repeat", e.Busy)
	case e.Noise > e.Limit/2:
		return fmt.Sprintf("without a fault the longest gap is already %s ms: quiet the machine and repeat", Millis(e.Noise))
	}
	return ""
}

// Millis formats milliseconds with three significant digits.
func Millis(d time.Duration) string {
	v := float64(d) / 1e6
	switch {
	case v >= 1000:
		return fmt.Sprintf("%.0f", v)
	case v >= 10:
		return fmt.Sprintf("%.1f", v)
	}
	return fmt.Sprintf("%.2f", v)
}
