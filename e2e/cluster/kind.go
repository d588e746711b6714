package cluster

import (
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/ordergrid/ordergrid/e2e/cluster/local"
	"github.com/ordergrid/ordergrid/internal/command"
)

// onKind is a kind cluster named after the checkout, with a worker of each
// pool.
type onKind struct {
	name  string
	dir   string // its kubeconfig
	o     Options
	steps *command.Steps
	run   runner
}

// runner runs a command and returns what it prints.
type runner func(ctx context.Context, stdin io.Reader, args ...string) (string, error)

func newKind(o Options) (*onKind, error) {
	state, err := local.StateRoot()
	if err != nil {
		return nil, err
	}
	root, err := filepath.EvalSymlinks(o.Root)
	if err != nil {
		return nil, err
	}
	name := fmt.Sprintf("ordergrid-%x", sha256.Sum256([]byte(root)))[:18]
	return &onKind{name: name, dir: filepath.Join(state, "kind", name), o: o, steps: command.NewSteps(o.Progress), run: runCommand}, nil
}

func runCommand(ctx context.Context, stdin io.Reader, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	cmd.Stdin = stdin
	return output(cmd)
}

// kindNodes is the number of workers of a kind cluster.
const kindNodes = 2

func (k *onKind) Up(ctx context.Context, nodes int) error {
	if nodes == 0 {
		nodes = kindNodes
	}
	if err := os.MkdirAll(k.dir, 0o755); err != nil {
		return err
	}
	up, err := k.exists(ctx)
	if err != nil {
		return err
	}
	if up {
		if err := k.startStopped(ctx); err != nil {
			return err
		}
	} else {
		config, err := kindConfig(nodes)
		if err != nil {
			return err
		}
		err = k.steps.Run("kind cluster "+k.name, func() error {
			_, err := k.run(ctx, strings.NewReader(config), "kind", "create", "cluster", "--name", k.name,
				"--kubeconfig", k.kubeconfig(), "--wait", "5m", "--config", "-")
			return err
		})
		if err != nil {
			return err
		}
	}
	// kind's own copy is authoritative: its port changes when Docker restarts.
	if _, err := k.run(ctx, nil, "kind", "export", "kubeconfig", "--name", k.name, "--kubeconfig", k.kubeconfig()); err != nil {
		return err
	}
	k.steps.Say("cluster is up: export KUBECONFIG=%s", k.kubeconfig())
	return nil
}

// hasState reports whether up was called and down was not.
func (k *onKind) hasState() bool {
	_, err := os.Stat(k.dir)
	return err == nil
}

func (k *onKind) exists(ctx context.Context) (bool, error) {
	out, err := k.run(ctx, nil, "kind", "get", "clusters")
	return slices.Contains(strings.Fields(out), k.name), err
}

// startStopped repairs nodes that were killed or cut.
func (k *onKind) startStopped(ctx context.Context) error {
	out, err := k.run(ctx, nil, "kind", "get", "nodes", "--name", k.name)
	if err != nil {
		return err
	}
	for _, node := range strings.Fields(out) {
		if _, err := k.run(ctx, nil, "docker", "start", node); err != nil {
			return err
		}
		if err := k.HealNode(ctx, node); err != nil {
			return err
		}
	}
	return nil
}

func (k *onKind) Down(ctx context.Context) error {
	if _, err := k.run(ctx, nil, "kind", "delete", "cluster", "--name", k.name, "--kubeconfig", k.kubeconfig()); err != nil {
		return err
	}
	k.steps.Say("kind cluster %s is deleted", k.name)
	return os.RemoveAll(k.dir)
}

func (k *onKind) Status(ctx context.Context) error {
	up, err := k.exists(ctx)
	if err != nil {
		return err
	}
	if !up {
		fmt.Fprintf(k.o.Out, "kind cluster %s: down (bring it up with: make cluster-up)\n", k.name)
		return nil
	}
	out, err := k.run(ctx, nil, "docker", "ps", "--all", "--filter", "label=io.x-k8s.kind.cluster="+k.name,
		"--format", "table {{.Names}}\t{{.State}}\t{{.Status}}")
	if err != nil {
		return err
	}
	fmt.Fprintf(k.o.Out, "%s\n\nKUBECONFIG  %s\n", out, k.kubeconfig())
	return nil
}

func (k *onKind) kubeconfig() string { return filepath.Join(k.dir, "kubeconfig") }

func (k *onKind) Kubeconfig(context.Context) (string, error) { return k.kubeconfig(), nil }

func (k *onKind) Load(ctx context.Context, archives ...string) error {
	for _, archive := range archives {
		err := k.steps.Run("image "+archive+" on the nodes", func() error {
			_, err := k.run(ctx, nil, "kind", "load", "image-archive", archive, "--name", k.name)
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// kindConfig describes the cluster to kind; the workers carry the labels of
// the two pools.
func kindConfig(nodes int) (string, error) {
	workers, err := local.PlanNodes(nodes)
	if err != nil {
		return "", err
	}
	if nodes == kindNodes { // one of each pool
		workers[1].Pool = local.PoolGeneral
	}
	var b strings.Builder
	b.WriteString("kind: Cluster\napiVersion: kind.x-k8s.io/v1alpha4\nnodes:\n- role: control-plane\n")
	for _, worker := range workers {
		b.WriteString("- role: worker\n  labels:\n")
		labels := worker.Labels()
		for _, key := range sortedKeys(labels) {
			fmt.Fprintf(&b, "    %s: %q\n", key, labels[key])
		}
	}
	return b.String(), nil
}

func sortedKeys(m map[string]string) []string {
	keys := make([]string, 0, len(m))
	for key := range m {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return keys
}
