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
	reg   *prometheus.Registry
	host  *host
	sinks *sinkMetrics
}

// runtimeMetrics are the metrics of Go's runtime about pauses and garbage, beside the
// collector's usual ones: length of pauses, time to stop, scheduling latency of
// goroutines, collections, live heap.
var runtimeMetrics = regexp.MustCompile(`^/(sched/(pauses/(total|stopping)/(gc|other)|latencies):seconds|gc/cycles/(automatic|forced):gc-cycles|gc/heap/live:bytes)$`)

// NewRegistry registers the node's metrics and those of the Go runtime, of the
// process and of its control group.
func NewRegistry(c *Collector) *Registry {
	r := &Registry{reg: prometheus.NewRegistry(), host: newHost(), sinks: newSinkMetrics()}
	r.reg.MustRegister(c, r.host,
		collectors.NewGoCollector(collectors.WithGoCollectorRuntimeMetrics(collectors.GoRuntimeMetricsRule{Matcher: runtimeMetrics})),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	r.reg.MustRegister(r.sinks.all()...)
	r.reg.MustRegister(faulty()...)
	return r
}

// Gatherer exposes the registry to tests.
func (r *Registry) Gatherer() prometheus.Gatherer { return r.reg }

// Handler serves the metrics over HTTP. A collector that fails fails the scrape.
func (r *Registry) Handler() http.Handler {
	h := promhttp.HandlerFor(r.reg, promhttp.HandlerOpts{ErrorHandling: promhttp.HTTPErrorOnError, DisableCompression: true})
	return webguard.Page(h, func(r *http.Request) string { return string(expfmt.Negotiate(r.Header)) })
}
