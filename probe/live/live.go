// Package live exports the metrics of a run to Prometheus while it goes on.
//
// Publishing threads only mark a record as complete. A thread of the lowest priority reads complete
// records a few times a second and counts them; a scrape copies the counts.
package live

import (
	"context"
	"net"
	"net/http"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/ordergrid/ordergrid/internal/histogram"
	"github.com/ordergrid/ordergrid/internal/webguard"
	"github.com/ordergrid/ordergrid/probe/load"
)

const prefix = "ordergrid_probe_"

func desc(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc(prefix+name, help, labels, nil)
}

var (
	createToEnd   = desc("create_to_end_seconds", "Time from the creation of an order until its acknowledgement.", "scenario", "probe")
	sendToEnd     = desc("send_to_end_seconds", "Time from handing an order to the client until its acknowledgement.", "scenario", "probe")
	intendedToEnd = desc("intended_to_end_seconds", "Time from when an order was to be created until its acknowledgement.", "scenario", "probe")
	scheduleLag   = desc("schedule_lag_seconds", "Time from when an order was to be created until it was.", "scenario", "probe")

	orders  = desc("orders_total", "Orders that have an outcome: acknowledged, rejected, unknown (no answer in time), unsent (left over when the rate ended).", "scenario", "probe", "outcome")
	created = desc("created_orders_total", "Orders created.", "scenario", "probe")
	rate    = desc("rate_orders_per_second", "Rate at which orders are to be created now, over the last second; 0 between two rates.", "scenario", "probe")
	backlog = desc("backlog_orders", "Orders created that have no outcome yet.", "scenario", "probe")
	step    = desc("step", "Number of the present or last rate and repeat of the scenario's plan, from 1; 0 before the first.", "scenario")
	steps   = desc("steps", "Rates and repeats of the scenario's plan.", "scenario")

	retries   = desc("client_retries_total", "Orders the client sent again after a reconnect, under their numbers.", "scenario")
	redirects = desc("client_redirects_total", "Answers that named another node as the partition's primary, or none.", "scenario")
	connects  = desc("client_connects_total", "Connections the client made with a session opened on them, the first ones included.", "scenario")
)

var allDescs = []*prometheus.Desc{createToEnd, sendToEnd, intendedToEnd, scheduleLag, orders, created, rate, backlog, step, steps, retries, redirects, connects}

// Client is the counters of a run's client.
type Client struct{ Retries, Redirects, Connects uint64 }

// Metrics of the runs of one process. A nil *Metrics counts nothing.
type Metrics struct {
	mu   sync.Mutex // taken by scrapes and by the reader, never by the measured path
	runs []*Run
}

// Run is one scenario of a Metrics.
type Run struct {
	m           *Metrics
	scenario    string
	step, steps int
	probes      []*series
	client      func() Client // nil once the run has ended
	last        Client
}

// series are the figures of one probe.
type series struct {
	name                                    string
	created, done                           uint64
	rate                                    float64
	outcomes                                [len(outcomes)]uint64
	createToEnd, sendToEnd, intended, onLag histogram.Histogram
}

// outcomes are the label values of load.Fate.
var outcomes = [...]string{load.Unsent: "unsent", load.Acked: "acknowledged", load.Rejected: "rejected", load.Unknown: "unknown"}

// Begin adds a run with a number of steps. probes are the letters of those in this process; client is
// called at every scrape, until End.
func (m *Metrics) Begin(scenario string, steps int, probes []string, client func() Client) *Run {
	if m == nil {
		return nil
	}
	r := &Run{m: m, scenario: scenario, steps: steps, client: client}
	for _, name := range probes {
		r.probes = append(r.probes, &series{name: name})
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.runs = append(m.runs, r)
	return r
}

// End keeps the figures of a run and releases its client.
func (r *Run) End() {
	if r == nil {
		return
	}
	r.m.mu.Lock()
	defer r.m.mu.Unlock()
	if r.client != nil {
		r.last, r.client = r.client(), nil
	}
}

// Describe implements prometheus.Collector.
func (m *Metrics) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range allDescs {
		ch <- d
	}
}

// Collect implements prometheus.Collector.
func (m *Metrics) Collect(ch chan<- prometheus.Metric) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, r := range m.runs {
		if r.client != nil {
			r.last = r.client()
		}
		r.collect(ch)
	}
}

func (r *Run) collect(ch chan<- prometheus.Metric) {
	value := func(d *prometheus.Desc, kind prometheus.ValueType, v float64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, kind, v, append([]string{r.scenario}, labels...)...)
	}
	value(step, prometheus.GaugeValue, float64(r.step))
	value(steps, prometheus.GaugeValue, float64(r.steps))
	value(retries, prometheus.CounterValue, float64(r.last.Retries))
	value(redirects, prometheus.CounterValue, float64(r.last.Redirects))
	value(connects, prometheus.CounterValue, float64(r.last.Connects))
	for _, s := range r.probes {
		value(created, prometheus.CounterValue, float64(s.created), s.name)
		value(rate, prometheus.GaugeValue, s.rate, s.name)
		value(backlog, prometheus.GaugeValue, float64(s.created-s.done), s.name)
		for fate, n := range s.outcomes {
			value(orders, prometheus.CounterValue, float64(n), s.name, outcomes[fate])
		}
		for d, h := range map[*prometheus.Desc]*histogram.Histogram{createToEnd: &s.createToEnd, sendToEnd: &s.sendToEnd, intendedToEnd: &s.intended, scheduleLag: &s.onLag} {
			still := *h // Prometheus reads it after the lock is released
			ch <- histogram.Metric(d, &still, r.scenario, s.name)
		}
	}
}

// Registry has only these metrics: those of Go's runtime stop the program briefly when they are read,
// those of the process walk through /proc.
func (m *Metrics) Registry() *prometheus.Registry {
	reg := prometheus.NewRegistry()
	reg.MustRegister(m)
	return reg
}

// Serve answers scrapes at /metrics of address until stop is called, which ends an
// answer that is under way. Connections are limited as those of grid nodes.
func (m *Metrics) Serve(address string) (at net.Addr, stop func(), err error) {
	l, err := webguard.Listen(context.Background(), address, webguard.Limits{})
	if err != nil {
		return nil, nil, err
	}
	work := make(chan func())
	go lowPriority(func() {
		for f := range work {
			f()
		}
	})
	// Compressing costs more than it saves, at the expense of the measurement.
	answer := promhttp.HandlerFor(m.Registry(), promhttp.HandlerOpts{DisableCompression: true, ErrorHandling: promhttp.HTTPErrorOnError})
	mux := http.NewServeMux()
	mux.HandleFunc("GET /metrics", func(w http.ResponseWriter, r *http.Request) {
		done := make(chan struct{})
		select {
		case work <- func() { defer close(done); answer.ServeHTTP(w, r) }:
			<-done
		case <-r.Context().Done():
		}
	})
	srv := webguard.Server(mux, webguard.Limits{}, nil)
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = srv.Serve(l) // it ends with Close
	}()
	// The thread of lowest priority stays, idle, until the process ends.
	return l.Addr(), func() { _ = srv.Close(); <-done }, nil
}
