package apply

import "github.com/prometheus/client_golang/prometheus"

// CountIn is an OnWrite that counts in a counter with the labels kind (of object) and outcome (created, updated).
func CountIn(writes *prometheus.CounterVec) func(kind string, outcome Outcome) {
	return func(kind string, outcome Outcome) {
		writes.WithLabelValues(kind, outcome.String()).Inc()
	}
}
