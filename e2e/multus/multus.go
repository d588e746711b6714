// Package multus defines what makes the second network of a local cluster: Multus, out of the Go module beside it.
package multus

import (
	"context"

	"github.com/ordergrid/ordergrid/e2e/gobin"
)

// Program is the CNI plugin in its thin form: containerd runs it for every pod, and no daemon is needed.
const Program = "multus"

var set = gobin.Set{
	Module: "e2e/multus/binaries", Cache: "multus", What: "Multus",
	Mains:    []string{"gopkg.in/k8snetworkplumbingwg/multus-cni.v4/cmd/multus"},
	Flags:    []string{"-mod=readonly", "-trimpath", "-buildvcs=false", "-ldflags", "-s -w"},
	Programs: []string{Program},
}

// Ensure builds Multus for the checkout at root unless the cache holds it and returns the directory with nothing else in
// it; see gobin.Set.Ensure.
func Ensure(ctx context.Context, root string, report func(format string, args ...any)) (string, error) {
	return set.Ensure(ctx, root, report)
}
