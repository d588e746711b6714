package results

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/ordergrid/ordergrid/hack/bench/cases"
	"github.com/ordergrid/ordergrid/internal/numtext"
)

// Table prints the rows of one case.
func Table(w io.Writer, c *cases.Case, rows []Row) error {
	fmt.Fprintf(w, "\n%s: %s\n", c.Name, c.Title)
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	base := baseline(c, rows)
	than := "floor"
	if base != nil {
		than = base.System
	}
	head := "system\tp50\tp90\tp99\tp99.9\tmax\torders/s\tCPU us/order\tclient+primary+backup\t"
	if c.Judged == cases.HighRate {
		head += "orders/s : " + than + "\torders/s min..max\t"
	} else {
		head += "p50 : " + than + "\tp99 : " + than + "\tp50 min..max\t"
	}
	if c.Shape.Rate > 0 {
		head += "create-to-end p50\tp99\t"
	}
	fmt.Fprintln(t, head)
	for i := range rows {
		if rows[i].Rounds == 0 {
			fmt.Fprintln(t, rows[i].System+"\tINVALID"+strings.Repeat("\t", strings.Count(head, "\t")-1))
			continue
		}
		fmt.Fprintln(t, line(c, &rows[i], base))
	}
	if err := t.Flush(); err != nil {
		return err
	}
	for _, n := range notes(c, rows) {
		fmt.Fprintf(w, "  %s\n", n)
	}
	return nil
}

func line(c *cases.Case, r, base *Row) string {
	main, p99 := ratios(c, r, base)
	cells := []string{r.System + mark(r), micros(r.P50), micros(r.P90), micros(r.P99), micros(r.P999), micros(r.Figures.Max), numtext.Thousands(r.OrdersPerS), fmt.Sprintf("%.2f", r.CPU), roles(&r.Figures)}
	if c.Judged == cases.HighRate {
		cells = append(cells, times(main), numtext.Thousands(r.Min.OrdersPerS)+".."+numtext.Thousands(r.Max.OrdersPerS))
	} else {
		cells = append(cells, times(main), times(p99), micros(r.Min.P50)+".."+micros(r.Max.P50))
	}
	if e := r.CreateToEnd; e != nil {
		cells = append(cells, micros(e.P50), micros(e.P99))
	}
	return strings.Join(cells, "\t") + "\t"
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
