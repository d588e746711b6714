package sink

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// metrics export the state of every partition as it is when they are gathered.
type metrics struct {
	r       *Runner
	errors  *prometheus.CounterVec
	seconds *prometheus.HistogramVec
}

var sinkLabels = []string{"sink", "partition"}

func describe(name, help string) *prometheus.Desc {
	return prometheus.NewDesc("ordergrid_sink_"+name, help, sinkLabels, nil)
}

var (
	descPosition  = describe("position_sequence", "Last log entry that the target holds, with everything before it.")
	descCommitted = describe("committed_sequence", "Last committed log entry that is known of: from what is followed, and every two seconds while the target is down or slow.")
	descLag       = describe("lag_entries", "Committed log entries that the target does not hold yet.")
	descAge       = describe("lag_seconds", "Age of the oldest committed order that the target does not hold yet, from its receipt by the primary; 0 if it holds all. Before the log is read after a failed start: since that is known.")
	descBuffered  = describe("buffered_bytes", "Entries that were read and are not written yet. With a slow target it stands at what two batches may hold.")
	descSkipped   = describe("skipped_entries", "Entries that were freed before the sink was there: the target begins behind them. Set at the first start only.")
	descBatches   = describe("batches_total", "Batches written.")
	descEntries   = describe("entries_total", "Log entries written, of every kind.")
	descOrders    = describe("orders_total", "Orders written.")
	descExecuted  = describe("executions_total", "Executions written; 0 of a sink that writes orders only.")
	descBytes     = describe("bytes_total", "Bytes of log entries written, as they are in the log.")
	descFailing   = describe("failing", "1 from an error until the next batch is written, or there is none to write, the time between two attempts included; see ordergrid_sink_errors_total for its kind, and /status for its text.")
)

func newMetrics(r *Runner) *metrics {
	m := &metrics{
		r: r,
		errors: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "ordergrid_sink_errors_total",
			Help: "Failures by kind: open, write, follow (the grid refused its log), fenced (another writer of the sink took over), permanent (an administrator has to act). Each is retried."}, append([]string{"kind"}, sinkLabels...)),
		seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "ordergrid_sink_write_seconds",
			Help: "Time to make one batch durable at the target, failures included.", Buckets: prometheus.ExponentialBuckets(0.001, 2, 16)}, sinkLabels),
	}
	for _, p := range r.parts {
		m.seconds.WithLabelValues(r.cfg.Sink, p.id.String())
		for _, k := range kinds {
			m.errors.WithLabelValues(k, r.cfg.Sink, p.id.String())
		}
	}
	return m
}

// Describe implements prometheus.Collector.
func (m *metrics) Describe(out chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{descPosition, descCommitted, descLag, descAge, descBuffered, descSkipped, descBatches, descEntries, descOrders, descExecuted, descBytes, descFailing} {
		out <- d
	}
	m.errors.Describe(out)
	m.seconds.Describe(out)
}

// Collect implements prometheus.Collector.
func (m *metrics) Collect(out chan<- prometheus.Metric) {
	now := time.Now()
	for _, p := range m.r.parts {
		s := p.state.now(now)
		put := func(d *prometheus.Desc, t prometheus.ValueType, v float64) {
			out <- prometheus.MustNewConstMetric(d, t, v, m.r.cfg.Sink, p.id.String())
		}
		put(descPosition, prometheus.GaugeValue, float64(s.Position.Seq))
		put(descCommitted, prometheus.GaugeValue, float64(s.CommittedSeq))
		put(descLag, prometheus.GaugeValue, float64(s.LagEntries))
		put(descAge, prometheus.GaugeValue, s.LagSeconds)
		put(descBuffered, prometheus.GaugeValue, float64(s.BufferedBytes))
		put(descSkipped, prometheus.GaugeValue, float64(s.SkippedEntries))
		put(descBatches, prometheus.CounterValue, float64(s.Batches))
		put(descEntries, prometheus.CounterValue, float64(s.Entries))
		put(descOrders, prometheus.CounterValue, float64(s.Orders))
		put(descExecuted, prometheus.CounterValue, float64(s.Executions))
		put(descBytes, prometheus.CounterValue, float64(s.Bytes))
		failing := 0.0
		if s.Error != nil {
			failing = 1
		}
		put(descFailing, prometheus.GaugeValue, failing)
	}
	m.errors.Collect(out)
	m.seconds.Collect(out)
}
