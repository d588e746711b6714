package report

// metric is one figure of a latency distribution.
type metric struct {
	name  string // as printed: mean, p50 ...
	value func(Histogram) float64
	// samples is how many values the figure needs to mean something: ten
	// beyond a percentile.
	samples int64
	// column is what the published tables call it; "" if they have none.
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

// latency is one of the three ways to measure from.
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
