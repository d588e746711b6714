package results

import (
	"fmt"
	"io"

	"github.com/ordergrid/ordergrid/hack/bench/cases"
	"github.com/ordergrid/ordergrid/internal/numtext"
	"github.com/ordergrid/ordergrid/probe/report"
)

// Table prints the rows of one case.
func Table(w io.Writer, c *cases.Case, rows []Row) error {
	p := report.NewPage(w)
	p.Say("\n%s: %s\n", c.Name, c.Title)
	base := baseline(c, rows)
	than := "floor"
	if base != nil {
		than = base.System
	}
	head := []string{"system", "p50", "p90", "p99", "p99.9", "max", "orders/s", "CPU us/order", "client+primary+backup"}
	if c.Judged == cases.HighRate {
		head = append(head, "orders/s : "+than, "orders/s min..max")
	} else {
		head = append(head, "p50 : "+than, "p99 : "+than, "p50 min..max")
	}
	if c.Shape.Rate > 0 {
		head = append(head, "create-to-end p50", "p99")
	}
	t := report.NewTable(head...)
	for i := range rows {
		if rows[i].Rounds == 0 {
			t.Add(rows[i].System, "INVALID")
			continue
		}
		t.Add(line(c, &rows[i], base)...)
	}
	p.Rows(t)
	for _, n := range notes(c, rows) {
		p.Say("  %s\n", n)
	}
	return p.Err()
}

func line(c *cases.Case, r, base *Row) []any {
	main, p99 := ratios(c, r, base)
	cells := append(figureCells(r), roles(&r.Figures), times(main))
	if c.Judged == cases.HighRate {
		cells = append(cells, span(c, r))
	} else {
		cells = append(cells, times(p99), span(c, r))
	}
	if e := r.CreateToEnd; e != nil {
		cells = append(cells, micros(e.P50), micros(e.P99))
	}
	return cells
}

// figureCells are the name of a system and its figures.
func figureCells(r *Row) []any {
	return []any{r.System + mark(r), micros(r.P50), micros(r.P90), micros(r.P99), micros(r.P999), micros(r.Figures.Max), numtext.Thousands(r.OrdersPerS), fmt.Sprintf("%.2f", r.CPU)}
}

// span is the least and the greatest judged figure of the rounds.
func span(c *cases.Case, r *Row) string {
	if c.Judged == cases.HighRate {
		return numtext.Thousands(r.Min.OrdersPerS) + ".." + numtext.Thousands(r.Max.OrdersPerS)
	}
	return micros(r.Min.P50) + ".." + micros(r.Max.P50)
}

// roles is the CPU time per order by process.
func roles(f *Figures) string {
	s := fmt.Sprintf("%.2f", f.ClientCPU)
	for _, v := range []float64{f.PrimaryCPU, f.BackupCPU} {
		if v > 0 {
			s += fmt.Sprintf("+%.2f", v)
		}
	}
	return s
}

// mark follows a system whose figures do not count.
func mark(r *Row) string {
	if r.Valid {
		return ""
	}
	return " (INVALID)"
}

// stillWarming is the growth of throughput in a warm-up from which on it was too short.
const stillWarming = 1.1

func notes(c *cases.Case, rows []Row) (out []string) {
	var steal, foreign, load, lag, generator float64
	for i := range rows {
		r := &rows[i]
		if !r.Valid {
			out = append(out, fmt.Sprintf("%s is INVALID: %s", r.System, r.Invalid))
		}
		if r.P9999 != nil {
			out = append(out, fmt.Sprintf("%s: p99.99 %s us of %s orders", r.System, micros(*r.P9999), numtext.Thousands(float64(r.Samples))))
		}
		if r.BytesPerOrder > 0 {
			out = append(out, fmt.Sprintf("%s: %.0f bytes of memory per order held", r.System, r.BytesPerOrder))
		}
		if r.Warming > stillWarming {
			out = append(out, fmt.Sprintf("%s: its warm-up ended with %.0f %% more orders/s than it had in the middle: ask for a longer one", r.System, 100*(r.Warming-1)))
		}
		if c.Judged == cases.HighRate && r.GeneratorCPU > r.CPU/3 && r.Rounds > 0 {
			out = append(out, fmt.Sprintf("%s: the generator alone needs %.2f of the %.2f CPU us/order: it is part of what is measured", r.System, r.GeneratorCPU, r.CPU))
		}
		steal, foreign, load = max(steal, r.MaxSteal), max(foreign, r.MaxForeign), max(load, r.Load1)
		lag, generator = max(lag, r.LagP99), max(generator, r.GeneratorCPU)
	}
	machine := fmt.Sprintf("worst round: %.1f %% stolen, %.1f %% used by others, load %.2f; generator alone %.2f CPU us/order", steal, foreign, load, generator)
	if c.Shape.Rate > 0 {
		machine += fmt.Sprintf(", creator late by %s us at p99", micros(lag))
	}
	return append(out, machine)
}

func micros(v float64) string {
	switch {
	case v < 100:
		return fmt.Sprintf("%.1f", v)
	default:
		return numtext.Thousands(v)
	}
}

func times(v *float64) string {
	if v == nil {
		return "-"
	}
	return fmt.Sprintf("%.2fx", *v)
}
