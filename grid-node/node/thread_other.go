//go:build !linux

package node

import "github.com/ordergrid/ordergrid/grid-node/metrics"

// threadMeter is empty here: only Linux accounts for threads.
type threadMeter struct{}

func (m *threadMeter) read() metrics.ThreadUsage { return metrics.ThreadUsage{} }

func (m *threadMeter) close() {}
