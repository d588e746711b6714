package metrics

import "github.com/prometheus/client_golang/prometheus"

// SinkMetrics are those of one sink, for all partitions. Its goroutines update them once
// per batch.
type SinkMetrics struct {
	Batch   prometheus.Observer // entries per batch
	Write   prometheus.Observer // seconds to write and sync a batch
	Sync    prometheus.Observer // seconds of the sync alone
	Age     prometheus.Observer // seconds from the receipt of a batch's oldest entry until it was in the sink
	Entries prometheus.Counter
	Errors  prometheus.Counter
}

// sinkMetrics are those of all sinks, by name.
type sinkMetrics struct {
	batch, write, sync, age *prometheus.HistogramVec
	entries, errors         *prometheus.CounterVec
}

func newSinkMetrics() *sinkMetrics {
	labels := []string{"sink"}
	h := func(name, help string, buckets []float64) *prometheus.HistogramVec {
		return prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: prefix + name, Help: help, Buckets: buckets,
			NativeHistogramBucketFactor: 1.1, NativeHistogramMaxBucketNumber: 160}, labels)
	}
	c := func(name, help string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Name: prefix + name, Help: help}, labels)
	}
	seconds := prometheus.ExponentialBuckets(1e-5, 2, 20) // 10 µs to 5 s
	return &sinkMetrics{
		batch:   h("sink_batch_entries", "Entries written to the sink at a time.", prometheus.ExponentialBuckets(1, 4, 10)),
		write:   h("sink_write_seconds", "Time to write one batch to the sink, sync included.", seconds),
		sync:    h("sink_fsync_seconds", "Time of the fsync of one batch.", seconds),
		age:     h("sink_queue_age_seconds", "Age of the oldest entry of a batch, from its receipt by the primary until it was in the sink.", prometheus.ExponentialBuckets(1e-3, 2, 20)), // 1 ms to 9 min
		entries: c("sink_entries_total", "Entries the sink holds durably, written by this process."),
		errors:  c("sink_errors_total", "Failed writes to the sink; each is retried."),
	}
}

func (s *sinkMetrics) all() []prometheus.Collector {
	return []prometheus.Collector{s.batch, s.write, s.sync, s.age, s.entries, s.errors}
}

// Sink returns the metrics of the sink of that name, and creates them at zero.
func (r *Registry) Sink(name string) *SinkMetrics {
	s := r.sinks
	return &SinkMetrics{Batch: s.batch.WithLabelValues(name), Write: s.write.WithLabelValues(name), Sync: s.sync.WithLabelValues(name),
		Age: s.age.WithLabelValues(name), Entries: s.entries.WithLabelValues(name), Errors: s.errors.WithLabelValues(name)}
}
