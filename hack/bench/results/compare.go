package results

import (
	"fmt"
	"io"

	"github.com/ordergrid/ordergrid/internal/numtext"
	"github.com/ordergrid/ordergrid/probe/report"
)

// Compare prints, for every case and system of both runs, the old and the new
// figures. A difference counts only when the ranges of the rounds do not
// overlap; else it is shown as a tie, "~". Compare ratios rather than absolute
// figures: those move with the machine, ratios were taken in one run.
func Compare(w io.Writer, before, after []Row) error {
	old := map[string]*Row{}
	for i := range before {
		old[before[i].Case+" "+before[i].System] = &before[i]
	}
	t := report.NewTable("case", "system", "p50 us", "", "p99 us", "", "orders/s", "", "CPU us/order", "", "to floor")
	common := 0
	for i := range after {
		b := &after[i]
		a := old[b.Case+" "+b.System]
		if a == nil {
			continue
		}
		common++
		if a.Rounds == 0 || b.Rounds == 0 {
			t.Add(b.Case, b.System, "INVALID")
			continue
		}
		t.Add(b.Case, b.System+either(a, b),
			arrow(a.P50, b.P50, micros), change(a.Min.P50, a.P50, a.Max.P50, b.Min.P50, b.P50, b.Max.P50),
			arrow(a.P99, b.P99, micros), change(a.Min.P99, a.P99, a.Max.P99, b.Min.P99, b.P99, b.Max.P99),
			arrow(a.OrdersPerS, b.OrdersPerS, numtext.Thousands), change(a.Min.OrdersPerS, a.OrdersPerS, a.Max.OrdersPerS, b.Min.OrdersPerS, b.OrdersPerS, b.Max.OrdersPerS),
			fmt.Sprintf("%.2f -> %.2f", a.CPU, b.CPU), change(a.Min.CPU, a.CPU, a.Max.CPU, b.Min.CPU, b.CPU, b.Max.CPU),
			times(a.RatioToFloor)+" -> "+times(b.RatioToFloor))
	}
	if common == 0 {
		return fmt.Errorf("the two runs have no case and system in common")
	}
	return t.Text(w)
}

func either(a, b *Row) string {
	if a.Valid && b.Valid {
		return ""
	}
	return " (INVALID)"
}

func arrow(a, b float64, f func(float64) string) string { return f(a) + " -> " + f(b) }

// change in per cent, "~" if the ranges overlap.
func change(aMin, a, aMax, bMin, b, bMax float64) string {
	if a == 0 || aMin <= bMax && bMin <= aMax {
		return "~"
	}
	return fmt.Sprintf("%+.0f%%", 100*(b-a)/a)
}
