package crds

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/ordergrid/ordergrid/e2e/artifact"
)

const (
	// Module is Chaos Mesh's Go module: controller manager, daemon, chart, CRDs.
	Module = "github.com/chaos-mesh/chaos-mesh"

	// Release is the published version whose chart and images have the same
	// sources. The Go module carries no tag of it.
	Release = "v2.8.4"

	// binaries is the module, below the checkout, that pins the version.
	binaries = "e2e/chaosmesh/binaries"
)

// Version is the version of Module that the checkout at root pins.
func Version(root string) (string, error) {
	path := filepath.Join(root, binaries, "go.mod")
	content, err := os.ReadFile(path)
	if err != nil {
		return "", fmt.Errorf("which Chaos Mesh: %w", err)
	}
	for line := range strings.Lines(string(content)) {
		if fields := strings.Fields(line); len(fields) == 2 && fields[0] == Module {
			return fields[1], nil
		}
	}
	return "", fmt.Errorf("%s does not require %s", path, Module)
}

// Dir is the directory of Module, read-only, in the Go module cache. It is
// downloaded, not built, where the cache lacks it, and checked against the
// checkout's go.sum.
func Dir(ctx context.Context, root string) (string, error) {
	version, err := Version(root)
	if err != nil {
		return "", err
	}
	return artifact.ModuleDir(ctx, filepath.Join(root, binaries), Module+"@"+version)
}
