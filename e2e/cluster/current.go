package cluster

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/ordergrid/ordergrid/internal/command"
)

// current is the cluster kubectl talks to. It is not ours: nothing is
// created, changed or removed but what the caller applies.
type current struct {
	o     Options
	steps *command.Steps
}

func newCurrent(o Options) *current { return &current{o: o, steps: command.NewSteps(o.Progress)} }

func (c *current) Up(ctx context.Context, nodes int) error {
	if nodes != 0 {
		return fmt.Errorf("--nodes %d: the current cluster has the nodes it has", nodes)
	}
	name, err := c.kubectl(ctx, "config", "current-context")
	if err != nil {
		return fmt.Errorf("there is no current context: %w; choose one with kubectl config use-context", err)
	}
	if _, err := c.kubectl(ctx, "get", "--raw", "/readyz", "--request-timeout=10s"); err != nil {
		return fmt.Errorf("the cluster of context %q does not answer: %w", name, err)
	}
	c.steps.Say("using the cluster of context %q", name)
	c.steps.Say("its nodes must be able to pull the images: build them (make images), push them to your registry, and give the chart their names")
	return nil
}

func (c *current) Down(context.Context) error {
	c.steps.Say("the current cluster is not ours to take down; nothing done")
	return nil
}

func (c *current) Status(ctx context.Context) error {
	out, err := c.kubectl(ctx, "get", "nodes", "-o", "wide")
	if err == nil {
		fmt.Fprintln(c.o.Out, out)
	}
	return err
}

func (c *current) Kubeconfig(context.Context) (string, error) {
	// kubectl merges a list; the first is where it writes and what others accept.
	if list := filepath.SplitList(os.Getenv("KUBECONFIG")); len(list) > 0 {
		return list[0], nil
	}
	home, err := os.UserHomeDir()
	return filepath.Join(home, ".kube", "config"), err
}

func (c *current) Load(_ context.Context, archives ...string) error {
	return fmt.Errorf("images cannot be copied onto the nodes of the current cluster: push %s to a registry its nodes can pull from", strings.Join(archives, ", "))
}

func (c *current) kubectl(ctx context.Context, args ...string) (string, error) {
	return output(exec.CommandContext(ctx, "kubectl", args...))
}

// output runs a command and returns what it prints; an error contains it.
func output(cmd *exec.Cmd) (string, error) {
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("%s: %w: %s", strings.Join(cmd.Args, " "), err, strings.TrimSpace(stderr.String()))
	}
	return strings.TrimSpace(string(out)), nil
}
