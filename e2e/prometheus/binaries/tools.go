//go:build tools

// Package binaries pins the Prometheus that rules and dashboards are tried with.
// It is a module of its own, so that none of its dependencies becomes one of the
// product's.
package binaries

import (
	_ "github.com/prometheus/prometheus/cmd/prometheus"
	_ "github.com/prometheus/prometheus/cmd/promtool"
)
