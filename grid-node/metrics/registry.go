package metrics

import (
	"net/http"
	"regexp"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/prometheus/common/expfmt"

	"github.com/ordergrid/ordergrid/internal/webguard"
)

// Registry is what /metrics shows.
type Registry struct {
	reg  *prometheus.Registry
	host *host
	// Sink are the metrics of the write-behind sinks.
	Sink *SinkMetrics
}

// runtimeMetrics are those of Go's runtime that tell of pauses and garbage, beside
// the collector's usual ones: how long the world stood still, and how long it took
// to stop; how long goroutines that were ready waited; collections; the live heap.
var runtimeMetrics = regexp.MustCompile(`^/(sched/(pauses/(total|stopping)/(gc|other)|latencies):seconds|gc/cycles/(automatic|forced):gc-cycles|gc/heap/live:bytes)$`)

// NewRegistry registers the node's metrics and those of the Go runtime, of the
// process and of its control group.
func NewRegistry(c *Collector) *Registry {
	r := &Registry{reg: prometheus.NewRegistry(), host: newHost(), Sink: newSinkMetrics()}
	r.reg.MustRegister(c, r.Sink, r.host,
		collectors.NewGoCollector(collectors.WithGoCollectorRuntimeMetrics(collectors.GoRuntimeMetricsRule{Matcher: runtimeMetrics})),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	r.reg.MustRegister(faulty()...)
	return r
}

// Gatherer is for tests.
func (r *Registry) Gatherer() prometheus.Gatherer { return r.reg }

// Handler serves the metrics over HTTP. A collector that fails fails the scrape.
func (r *Registry) Handler() http.Handler {
	h := promhttp.HandlerFor(r.reg, promhttp.HandlerOpts{ErrorHandling: promhttp.HTTPErrorOnError, DisableCompression: true})
	return webguard.Page(h, func(r *http.Request) string { return string(expfmt.Negotiate(r.Header)) })
}

// SinkMetrics are written by the write-behind goroutine, once a batch.
type SinkMetrics struct {
	Batch   prometheus.Histogram // entries per batch
	Write   prometheus.Histogram // seconds to write and sync a batch
	Sync    prometheus.Histogram // seconds of the sync alone
	Age     prometheus.Histogram // seconds from the receipt of a batch's oldest entry until the sink held it
	Entries prometheus.Counter
	Errors  prometheus.Counter
}

func newSinkMetrics() *SinkMetrics {
	h := func(name, help string, buckets []float64) prometheus.Histogram {
		return prometheus.NewHistogram(prometheus.HistogramOpts{Name: prefix + name, Help: help, Buckets: buckets,
			NativeHistogramBucketFactor: 1.1, NativeHistogramMaxBucketNumber: 160})
	}
	seconds := prometheus.ExponentialBuckets(1e-5, 2, 20) // 10 µs to 5 s
	return &SinkMetrics{
		Batch:   h("write_behind_batch_entries", "Entries written to the write-behind sink at a time.", prometheus.ExponentialBuckets(1, 4, 10)),
		Write:   h("write_behind_write_seconds", "Time to write one batch to the write-behind sink, sync included.", seconds),
		Sync:    h("write_behind_fsync_seconds", "Time of the fsync of one batch.", seconds),
		Age:     h("write_behind_queue_age_seconds", "Age of the oldest entry of a batch, from its receipt by the primary until the write-behind sink held it.", prometheus.ExponentialBuckets(1e-3, 2, 20)), // 1 ms to 9 min
		Entries: prometheus.NewCounter(prometheus.CounterOpts{Name: prefix + "write_behind_entries_total", Help: "Entries the write-behind sink holds durably, written by this process."}),
		Errors:  prometheus.NewCounter(prometheus.CounterOpts{Name: prefix + "write_behind_errors_total", Help: "Failed writes to the write-behind sink; each is tried again."}),
	}
}

// Describe implements prometheus.Collector.
func (s *SinkMetrics) Describe(ch chan<- *prometheus.Desc) { prometheus.DescribeByCollect(s, ch) }

// Collect implements prometheus.Collector.
func (s *SinkMetrics) Collect(ch chan<- prometheus.Metric) {
	for _, c := range []prometheus.Collector{s.Batch, s.Write, s.Sync, s.Age, s.Entries, s.Errors} {
		c.Collect(ch)
	}
}
