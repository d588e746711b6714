//go:build !faulty

package metrics

import "github.com/prometheus/client_golang/prometheus"

// faulty are none; see faulty_on.go.
func faulty() []prometheus.Collector { return nil }
