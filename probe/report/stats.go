package report

import "github.com/ordergrid/ordergrid/probe/published"

// metric is one figure of a latency distribution.
type metric struct {
	name  string // as printed: mean, p50 ...
	value func(Histogram) float64
	// samples is how many values the figure needs to be meaningful: ten beyond a percentile.
	samples int64
	// column is its name in the published tables; "" if they have none.
	column string
}

// metrics are the figures of every latency, in the order they are printed.
var metrics = []metric{
	{"mean", Histogram.Mean, 1, "mean_us"},
	{"p50", percentile(50), 20, "median_us"},
	{"p90", percentile(90), 100, "p90_us"},
	{"p95", percentile(95), 200, "p95_us"},
	{"p99", percentile(99), 1000, ""},
	{"p99.9", percentile(99.9), 10_000, ""},
	{"p99.99", percentile(99.99), 100_000, ""},
	{"min", func(h Histogram) float64 { return float64(h.Min()) }, 1, ""},
	{"max", func(h Histogram) float64 { return float64(h.Max()) }, 1, ""},
	{"sd", Histogram.StdDev, 2, ""},
}

func percentile(p float64) func(Histogram) float64 {
	return func(h Histogram) float64 { return float64(h.Percentile(p)) }
}

// latency is one of the three start points of a measurement.
type latency struct {
	name string // as in Row.Metric: c2e, s2e, i2e
	long string
	of   func(*group) Histogram
}

var latencies = []latency{
	{"c2e", "create-to-end", func(g *group) Histogram { return g.c2e }},
	{"s2e", "send-to-end", func(g *group) Histogram { return g.s2e }},
	{"i2e", "intended-to-end", func(g *group) Histogram { return g.i2e }},
}

// Stats are the figures of the histogram, mean and extremes to its three digits.
func (h Histogram) Stats() Stats {
	s := Stats{Samples: h.Count(), MeanUs: h.Mean() / 1e3, StdDevUs: h.StdDev() / 1e3, MinUs: float64(h.Min()) / 1e3, MaxUs: float64(h.Max()) / 1e3}
	into := map[string]**float64{"p50": &s.P50Us, "p90": &s.P90Us, "p95": &s.P95Us, "p99": &s.P99Us, "p99.9": &s.P999Us, "p99.99": &s.P9999Us, "best80": &s.Best80Us}
	for _, m := range append(metrics, best80) {
		if p := into[m.name]; p != nil && h.Count() >= m.samples {
			v := m.value(h) / 1e3
			*p = &v
		}
	}
	return s
}

// best80 is the mean of the best 80 % of the values.
var best80 = metric{"best80", func(h Histogram) float64 { return h.BestMean(published.WriteBestShare) }, 5, ""}
