// Package results turns rounds into figures, and figures into a table, bench.json,
// the format of benchstat, and a comparison of two runs; and rows of growth cases into
// curves: a table, a plot and, for orders held, a verdict whether the cost grows worse
// than with the logarithm.
package results

import (
	"slices"
	"time"

	"github.com/ordergrid/ordergrid/hack/bench/cases"
	"github.com/ordergrid/ordergrid/hack/bench/generator"
	"github.com/ordergrid/ordergrid/probe/report"
)

// Round is one measurement of one system.
type Round struct {
	generator.Result
	// Bad is why it does not count; "" if it does.
	Bad string
}

// Figures are what one system did in one case: medians over the rounds that
// count. Latencies are send-to-end, in microseconds.
type Figures struct {
	OrdersPerS float64 `json:"orders_per_s"`
	P50        float64 `json:"p50_us"`
	P90        float64 `json:"p90_us"`
	P99        float64 `json:"p99_us"`
	P999       float64 `json:"p999_us"`
	Max        float64 `json:"max_us"`
	CPU        float64 `json:"cpu_us_per_order"` // generator and all processes of the system
	// CPU by process: the generator with its client, and the first two servers.
	ClientCPU  float64 `json:"client_cpu_us_per_order"`
	PrimaryCPU float64 `json:"primary_cpu_us_per_order,omitempty"`
	BackupCPU  float64 `json:"backup_cpu_us_per_order,omitempty"`
}

// Row is one object of bench.json.
type Row struct {
	Case   string `json:"case"`
	System string `json:"system"`
	Figures
	// RatioToFloor compares the figure RatioOf with the better floor's in the
	// same run: below 1 is faster for p50_us, above 1 is more for orders_per_s.
	// nil without a floor. The p99 ratio is to the floor with the lowest p99.
	RatioToFloor *float64 `json:"ratio_to_floor"`
	RatioOf      string   `json:"ratio_of"`
	RatioP99     *float64 `json:"p99_ratio_to_floor,omitempty"`
	Floor        string   `json:"floor,omitempty"` // the better one

	Valid   bool   `json:"valid"`
	Invalid string `json:"invalid,omitempty"` // why not
	Rounds  int    `json:"rounds"`            // that count
	Bad     int    `json:"bad_rounds,omitempty"`
	Samples int64  `json:"samples"` // latencies over all rounds that count

	Min Figures `json:"min"` // over the rounds
	Max Figures `json:"max"`

	// P9999 is over all rounds together, only with 100,000 samples or more.
	P9999 *float64 `json:"p9999_us,omitempty"`
	// CreateToEnd counts from the time the schedule intended; open loop only.
	CreateToEnd *Latency `json:"create_to_end,omitempty"`
	LagP99      float64  `json:"creator_lag_p99_us,omitempty"`
	// GeneratorCPU is the part of CPU that the generator needs by itself.
	GeneratorCPU float64 `json:"generator_us_per_order,omitempty"`
	// BytesPerOrder is the primary's memory for the orders held ahead of the
	// measurement, all overhead included.
	BytesPerOrder float64 `json:"bytes_per_order,omitempty"`
	// GoHeap is what the primary's Go heap has in use, in bytes; orders are not on it.
	GoHeap int64 `json:"go_heap_bytes,omitempty"`

	// Warming is generator.Result.Warming.
	Warming float64 `json:"warming,omitempty"`

	MaxSteal   float64 `json:"max_steal_percent"`   // over the rounds
	MaxForeign float64 `json:"max_foreign_percent"` // CPU of processes that were not measured
	Load1      float64 `json:"max_load1"`
}

// Latency percentiles in microseconds, medians over the rounds.
type Latency struct {
	Mean float64 `json:"mean_us"`
	P50  float64 `json:"p50_us"`
	P90  float64 `json:"p90_us"`
	P99  float64 `json:"p99_us"`
	P999 float64 `json:"p999_us"`
	Max  float64 `json:"max_us"`
}

// enoughFor9999 are the samples of which ten lie beyond p99.99.
const enoughFor9999 = 100_000

// NewRow sums rounds up. A row needs want rounds that count; with force those
// that do not count are used too, and the row stays invalid.
func NewRow(c *cases.Case, system string, rounds []Round, want int, force bool) Row {
	row := Row{Case: c.Name, System: system, RatioOf: string(c.Judged)}
	var use []Round
	for _, r := range rounds {
		if r.Bad != "" {
			row.Bad++
			row.Invalid = r.Bad
		}
		if r.Bad == "" || force && r.Orders > 0 {
			use = append(use, r)
		}
	}
	row.Rounds = len(use)
	if row.Valid = len(use) >= want && (row.Bad == 0 || !force); row.Valid {
		row.Invalid = ""
	}
	if len(use) == 0 {
		return row
	}
	row.fill(c, use)
	return row
}

func (row *Row) fill(c *cases.Case, rounds []Round) {
	var each []Figures
	var all report.Histogram
	for i := range rounds {
		r := &rounds[i]
		each = append(each, figures(&r.Result))
		all.Merge(r.SendToEnd)
		row.MaxSteal, row.MaxForeign = max(row.MaxSteal, r.Use.Steal), max(row.MaxForeign, r.Use.Foreign)
		row.Load1 = max(row.Load1, r.Use.LoadBefore, r.Use.LoadAfter)
	}
	row.Figures = over(each, median)
	row.Min, row.Max = over(each, slices.Min[[]float64]), over(each, slices.Max[[]float64])
	if row.Samples = all.Count(); row.Samples >= enoughFor9999 {
		v := us(all.Percentile(99.99))
		row.P9999 = &v
	}
	if c.Shape.Rate > 0 {
		row.CreateToEnd = createToEnd(rounds)
		row.LagP99 = medianOf(rounds, func(r *Round) float64 { return us(r.Lag.Percentile(99)) })
	}
	row.GoHeap = int64(medianOf(rounds, func(r *Round) float64 { return float64(r.GoHeap) }))
	row.Warming = medianOf(rounds, func(r *Round) float64 { return r.Warming })
	if c.GridOnly && c.Held > 0 {
		row.BytesPerOrder = medianOf(rounds, func(r *Round) float64 { return float64(r.ResidentAfter-r.ResidentBefore) / float64(c.Held) })
	}
}

func figures(r *generator.Result) Figures {
	h := r.SendToEnd
	f := Figures{P50: us(h.Percentile(50)), P90: us(h.Percentile(90)), P99: us(h.Percentile(99)), P999: us(h.Percentile(99.9)), Max: us(h.Max())}
	if r.Elapsed > 0 {
		f.OrdersPerS = float64(r.Orders) / r.Elapsed.Seconds()
	}
	if r.Orders > 0 {
		per := func(d time.Duration) float64 { return float64(d.Microseconds()) / float64(r.Orders) }
		f.CPU, f.ClientCPU = per(r.OwnCPU+r.SystemCPU), per(r.OwnCPU)
		for i, p := range []*float64{&f.PrimaryCPU, &f.BackupCPU} {
			if i < len(r.EachCPU) {
				*p = per(r.EachCPU[i])
			}
		}
	}
	return f
}

func createToEnd(rounds []Round) *Latency {
	p := func(q float64) float64 {
		return medianOf(rounds, func(r *Round) float64 { return us(r.CreateToEnd.Percentile(q)) })
	}
	return &Latency{P50: p(50), P90: p(90), P99: p(99), P999: p(99.9),
		Mean: medianOf(rounds, func(r *Round) float64 { return r.CreateToEnd.Mean() / 1e3 }),
		Max:  medianOf(rounds, func(r *Round) float64 { return us(r.CreateToEnd.Max()) })}
}

// over applies f to each figure of the rounds.
func over(each []Figures, f func([]float64) float64) Figures {
	col := func(get func(*Figures) float64) float64 {
		v := make([]float64, 0, len(each))
		for i := range each {
			v = append(v, get(&each[i]))
		}
		return f(v)
	}
	return Figures{
		OrdersPerS: col(func(f *Figures) float64 { return f.OrdersPerS }),
		ClientCPU:  col(func(f *Figures) float64 { return f.ClientCPU }),
		PrimaryCPU: col(func(f *Figures) float64 { return f.PrimaryCPU }),
		BackupCPU:  col(func(f *Figures) float64 { return f.BackupCPU }),
		P50:        col(func(f *Figures) float64 { return f.P50 }),
		P90:        col(func(f *Figures) float64 { return f.P90 }),
		P99:        col(func(f *Figures) float64 { return f.P99 }),
		P999:       col(func(f *Figures) float64 { return f.P999 }),
		Max:        col(func(f *Figures) float64 { return f.Max }),
		CPU:        col(func(f *Figures) float64 { return f.CPU }),
	}
}

func medianOf(rounds []Round, f func(*Round) float64) float64 {
	v := make([]float64, 0, len(rounds))
	for i := range rounds {
		v = append(v, f(&rounds[i]))
	}
	return median(v)
}

// median of an even number of values is the lower of the middle two: a figure
// that was measured, not one in between.
func median(v []float64) float64 {
	v = slices.Sorted(slices.Values(v))
	return v[(len(v)-1)/2]
}

func us(ns int64) float64 { return float64(ns) / 1e3 }

// Judge compares the rows of one case with the better of its floors.
func Judge(c *cases.Case, rows []Row, isFloor func(system string) bool) {
	best, p99 := -1, 0.0
	for i := range rows {
		if !isFloor(rows[i].System) || rows[i].Rounds == 0 {
			continue
		}
		if p99 == 0 || rows[i].P99 < p99 {
			p99 = rows[i].P99
		}
		if best < 0 || better(c, &rows[i].Figures, &rows[best].Figures) {
			best = i
		}
	}
	if best < 0 {
		return
	}
	floor := rows[best].Figures
	for i := range rows {
		r := &rows[i]
		if r.Rounds == 0 {
			continue
		}
		a, b := r.P50, floor.P50
		if c.Judged == cases.HighRate {
			a, b = r.OrdersPerS, floor.OrdersPerS
		}
		r.Floor = rows[best].System
		r.RatioToFloor, r.RatioP99 = ratio(a, b), ratio(r.P99, p99)
	}
}

func better(c *cases.Case, a, b *Figures) bool {
	if c.Judged == cases.HighRate {
		return a.OrdersPerS > b.OrdersPerS
	}
	return a.P50 < b.P50
}

func ratio(a, b float64) *float64 {
	if b == 0 {
		return nil
	}
	v := a / b
	return &v
}
