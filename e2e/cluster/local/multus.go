package local

import (
	"context"

	"github.com/ordergrid/ordergrid/e2e/artifact"
)

// Multus is the CNI plugin in its thin form: containerd runs it for every pod, and no daemon is needed.
const Multus = "multus"

var multusPrograms = artifact.Set{
	Module: "e2e/cluster/multus", Cache: "multus", What: "Multus",
	Mains:    []string{"gopkg.in/k8snetworkplumbingwg/multus-cni.v4/cmd/multus"},
	Programs: []string{Multus},
}

// EnsureMultus builds Multus for the checkout at root unless the cache holds it and returns the directory with nothing else in
// it; see artifact.Set.Ensure.
func EnsureMultus(ctx context.Context, root string, report func(format string, args ...any)) (string, error) {
	return multusPrograms.Ensure(ctx, root, report)
}
