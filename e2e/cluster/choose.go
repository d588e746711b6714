package cluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/ordergrid/ordergrid/e2e/cluster/local"
)

// Kind is a way to have a cluster.
type Kind string

// The ways, see Choose.
const (
	Current Kind = "current" // whatever kubectl talks to
	OnKind  Kind = "kind"    // kind on Docker
	Local   Kind = "local"   // plain processes on this machine
)

// host is what Choose asks of the machine; tests answer in its place.
type host struct {
	existing func() Kind                 // what this checkout has already, if anything
	docker   func(context.Context) error // nil when Docker runs
	kind     func() error                // nil when kind is installed
	local    func() error                // nil when this machine can hold a local cluster
}

// Choose decides which kind of cluster the checkout at root uses and returns why:
// the one asked for (flag or the CLUSTER variable), else the one it has
// already, else kind where Docker runs, else a local one where that is possible.
func Choose(ctx context.Context, root, asked string) (kind Kind, why string, err error) {
	h := host{existing: func() Kind { return existing(root) }, docker: dockerRuns, kind: kindInstalled, local: local.Supported}
	return h.choose(ctx, asked)
}

func (h host) choose(ctx context.Context, asked string) (Kind, string, error) {
	switch kind := Kind(strings.TrimSpace(asked)); kind {
	case Current, OnKind, Local:
		return kind, "as asked for", nil
	case "":
	default:
		return "", "", fmt.Errorf("CLUSTER is %q; use current, kind, local, or leave it empty to let this machine decide", asked)
	}
	if kind := h.existing(); kind != "" {
		return kind, "this checkout has one", nil
	}
	dockerErr := h.docker(ctx)
	kindErr := h.kind()
	if dockerErr == nil && kindErr == nil {
		return OnKind, "Docker runs and kind is installed", nil
	}
	localErr := h.local()
	if localErr == nil {
		return Local, "no Docker with kind here, but this machine can run the nodes itself", nil
	}
	return "", "", fmt.Errorf(`no way to a cluster on this machine:
  kind:    %w
  local:   %w
  current: give CLUSTER=current to use the cluster kubectl talks to`, errors.Join(dockerErr, kindErr), localErr)
}

// existing finds the cluster an earlier up left, so that down takes down what
// was brought up whatever the environment says now.
func existing(root string) Kind {
	if c, err := local.New(root, io.Discard, io.Discard); err == nil && c.Exists() {
		return Local
	}
	if k, err := newKind(Options{Root: root, Out: io.Discard, Progress: io.Discard}); err == nil && k.hasState() {
		return OnKind
	}
	return ""
}

func dockerRuns(ctx context.Context) error {
	if _, err := exec.LookPath("docker"); err != nil {
		return errors.New("docker is not installed")
	}
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	if out, err := exec.CommandContext(ctx, "docker", "info", "--format", "{{.ServerVersion}}").CombinedOutput(); err != nil {
		return fmt.Errorf("docker does not answer; start it (%s)", firstLine(out))
	}
	return nil
}

func kindInstalled() error {
	if _, err := exec.LookPath("kind"); err != nil {
		return errors.New("kind is not installed")
	}
	return nil
}

func firstLine(out []byte) string {
	line, _, _ := strings.Cut(strings.TrimSpace(string(out)), "\n")
	return line
}

// Open returns the cluster of a kind. Nothing is started.
func Open(kind Kind, o Options) (Cluster, error) {
	switch kind {
	case Current:
		return newCurrent(o), nil
	case OnKind:
		return newKind(o)
	case Local:
		return local.New(o.Root, o.Out, o.Progress)
	}
	return nil, fmt.Errorf("no kind of cluster is called %q", kind)
}

// FromEnvironment opens the cluster the CLUSTER variable asks for, or the one
// this machine can have.
func FromEnvironment(ctx context.Context, o Options) (Cluster, Kind, error) {
	kind, _, err := Choose(ctx, o.Root, os.Getenv("CLUSTER"))
	if err != nil {
		return nil, "", err
	}
	c, err := Open(kind, o)
	return c, kind, err
}
