package scale

import (
	"context"
	_ "embed" // the stages

	"github.com/ordergrid/ordergrid/e2e/artifact"
)

// kwokVersion is that of the program; TestVersionMatchesModule keeps it equal to what the module requires.
const kwokVersion = "v0.8.0"

var kwok = artifact.Set{
	Module: "e2e/scale/binaries", Cache: "kwok", What: "KWOK " + kwokVersion,
	Mains:    []string{"sigs.k8s.io/kwok/cmd/kwok"},
	Programs: []string{"kwok"},
}

//go:embed stages.yaml
var stages []byte

// EnsureKWOK builds KWOK for the checkout at root unless the cache holds it and returns the directory it is in; see
// artifact.Set.Ensure.
func EnsureKWOK(ctx context.Context, root string, report func(format string, args ...any)) (string, error) {
	return kwok.Ensure(ctx, root, report)
}
