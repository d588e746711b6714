//go:build tools

// Package binaries pins the Chaos Mesh that fail-over drills are tried with. It
// is a module of its own, so that none of its dependencies becomes one of the
// product's.
package binaries

import (
	_ "github.com/chaos-mesh/chaos-mesh/cmd/chaos-controller-manager"
	_ "github.com/chaos-mesh/chaos-mesh/cmd/chaos-daemon"
	_ "github.com/chaos-mesh/chaos-mesh/cmd/chaos-daemon-helper"
)
