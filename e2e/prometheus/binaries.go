// Package prometheus builds a real Prometheus, and runs it for tests.
package prometheus

import (
	"context"

	"github.com/ordergrid/ordergrid/e2e/artifact"
)

// version is that of the programs; TestVersionMatchesModule keeps it equal to
// what the module requires.
const version = "3.13.5"

// set leaves out every way to discover targets but Kubernetes, files and lists:
// two thirds of the packages. There is no web interface in it either, which the
// module does not carry; the API is complete.
var set = artifact.Set{
	Module: "e2e/prometheus/binaries", Cache: "prometheus", What: "Prometheus " + version,
	Mains:    []string{"github.com/prometheus/prometheus/cmd/prometheus", "github.com/prometheus/prometheus/cmd/promtool"},
	Tags:     "remove_all_sd,enable_kubernetes_sd",
	LDFlags:  "-X github.com/prometheus/common/version.Version=" + version,
	Programs: []string{"prometheus", "promtool"},
}

// Dir returns where prometheus and promtool of the checkout at root are, or will
// be once Ensure has run. It does not build.
func Dir(ctx context.Context, root string) (string, error) { return set.Dir(ctx, root) }

// Ensure builds prometheus and promtool unless the cache holds them and returns
// their directory; see artifact.Set.Ensure.
func Ensure(ctx context.Context, root string, report func(format string, args ...any)) (string, error) {
	return set.Ensure(ctx, root, report)
}
