// Package kubebin builds the programs a local cluster consists of (Kubernetes,
// etcd, CoreDNS, helm) from the Go module beside it and keeps them in a cache
// outside the checkout, keyed by everything that determines them.
package kubebin

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// moduleDir is the module's place below the repository root.
const moduleDir = "e2e/cluster/binaries"

// Versions the link step writes into the programs; TestVersionsMatchModule
// keeps them equal to the module's go.mod.
const (
	kubernetesVersion = "v1.36.3"
	helmVersion       = "v3.21.2"
)

// mains are built in this order, the longest first.
var mains = []string{"./cmd/hyperkube", "./cmd/coredns", "helm.sh/helm/v3/cmd/helm", "./cmd/pause"}

// links are the names hyperkube answers to. A directory with them can serve as
// KUBEBUILDER_ASSETS for envtest.
var links = []string{"etcd", "kube-apiserver", "kube-controller-manager", "kube-proxy", "kube-scheduler", "kubectl", "kubelet"}

// buildFlags are the same as those the product is built with, so that the
// packages both use are compiled once.
func buildFlags() []string {
	var ld strings.Builder
	ld.WriteString("-s -w")
	for _, pkg := range []string{"k8s.io/component-base/version", "k8s.io/client-go/pkg/version"} {
		fmt.Fprintf(&ld, " -X %[1]s.gitVersion=%[2]s -X %[1]s.gitMajor=1 -X %[1]s.gitMinor=36 -X %[1]s.gitTreeState=clean -X %[1]s.buildDate=1970-01-01T00:00:00Z",
			pkg, kubernetesVersion)
	}
	ld.WriteString(" -X helm.sh/helm/v3/internal/version.version=" + helmVersion)
	// What `helm template` and `helm lint` take the cluster's version to be.
	for _, pkg := range []string{"helm.sh/helm/v3/pkg/lint/rules", "helm.sh/helm/v3/pkg/chartutil"} {
		fmt.Fprintf(&ld, " -X %[1]s.k8sVersionMajor=1 -X %[1]s.k8sVersionMinor=36", pkg)
	}
	return []string{"-mod=readonly", "-trimpath", "-buildvcs=false", "-ldflags", ld.String()}
}

// key names one build: a hash of the module's files, the build flags, the Go
// version and the platform.
func key(ctx context.Context, module string) (string, error) {
	goEnv, err := goOutput(ctx, module, "env", "GOVERSION", "GOOS", "GOARCH")
	if err != nil {
		return "", err
	}
	sum := sha256.New()
	fmt.Fprintf(sum, "%s\n%q\n%q\n", goEnv, buildFlags(), mains)
	files, err := sourceFiles(module)
	if err != nil {
		return "", err
	}
	for _, name := range files {
		content, err := os.ReadFile(filepath.Join(module, name))
		if err != nil {
			return "", err
		}
		fmt.Fprintf(sum, "%s %d\n", name, len(content))
		sum.Write(content)
	}
	return fmt.Sprintf("%x", sum.Sum(nil)[:8]), nil
}

// sourceFiles lists what go build reads of the module itself, sorted.
func sourceFiles(module string) ([]string, error) {
	files := []string{"go.mod", "go.sum"}
	err := filepath.WalkDir(filepath.Join(module, "cmd"), func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go") {
			return err
		}
		rel, err := filepath.Rel(module, path)
		files = append(files, rel)
		return err
	})
	slices.Sort(files)
	return files, err
}

// goCommand prepares the go tool in the module, independent of the caller's
// workspace and flags.
func goCommand(ctx context.Context, dir string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOWORK=off", "GOFLAGS=")
	return cmd
}

func goOutput(ctx context.Context, dir string, args ...string) (string, error) {
	cmd := goCommand(ctx, dir, args...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if errors.Is(err, exec.ErrNotFound) {
		return "", errors.New("the go command is not in PATH: install Go 1.26 or newer")
	}
	if err != nil {
		return "", fmt.Errorf("go %s: %w: %s", strings.Join(args, " "), err, strings.TrimSpace(stderr.String()))
	}
	return strings.TrimSpace(string(out)), nil
}
