// Package certmanager tries the issuer CertManager of spec.security.tls with cert-manager itself: its controllers, built
// from its Go module, and its CRDs, out of the same module, on a real API server.
package certmanager

import (
	"context"
	"path/filepath"

	"github.com/ordergrid/ordergrid/e2e/artifact"
)

// module is cert-manager; go.mod in binaries has its version.
const module = "github.com/cert-manager/cert-manager"

// program runs cert-manager's controllers.
const program = "controller"

var set = artifact.Set{
	Module: "e2e/certmanager/binaries", Cache: "certmanager", What: "cert-manager",
	Mains:    []string{"./cmd/" + program},
	Programs: []string{program},
}

// Ensure builds the program for the checkout at root unless the cache holds it and returns its path; see artifact.Set.Ensure.
func Ensure(ctx context.Context, root string, report func(format string, args ...any)) (string, error) {
	dir, err := set.Ensure(ctx, root, report)
	return filepath.Join(dir, program), err
}

// CRDs is the directory of cert-manager's CRDs, of the version that Ensure builds.
func CRDs(ctx context.Context, root string) (string, error) {
	dir, err := artifact.ModuleDir(ctx, filepath.Join(root, set.Module), module)
	return filepath.Join(dir, "deploy", "crds"), err
}
