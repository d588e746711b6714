package faults

import (
	"context"
	"fmt"
	"os/exec"
	"path"
	"path/filepath"

	"github.com/ordergrid/ordergrid/e2e/cluster"
)

// Build compiles a program of this checkout into dir and returns its path.
func Build(ctx context.Context, dir, pkg string) (string, error) {
	root, err := cluster.Checkout()
	if err != nil {
		return "", fmt.Errorf("%w; or name a program with --grid-node", err)
	}
	exe, err := filepath.Abs(filepath.Join(dir, path.Base(pkg)))
	if err != nil {
		return "", err
	}
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-o", exe, pkg)
	cmd.Dir = root
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("go build %s: %w\n%s", pkg, err, out)
	}
	return exe, nil
}
