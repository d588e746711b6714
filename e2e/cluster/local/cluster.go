package local

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/ordergrid/ordergrid/internal/command"
)

// DefaultNodes is the number of workers of a cluster.
const DefaultNodes = 3

// Cluster is the local cluster of one checkout.
type Cluster struct {
	root  string // the checkout
	state string // its cluster's state directory
	out   io.Writer
	steps *command.Steps
}

// New names the local cluster of the checkout at root. Nothing need run yet.
// Lines of progress go to progress, answers such as a status to out.
func New(root string, out, progress io.Writer) (*Cluster, error) {
	base, err := StateRoot()
	if err != nil {
		return nil, err
	}
	root, err = filepath.EvalSymlinks(root)
	if err != nil {
		return nil, err
	}
	state := filepath.Join(base, "clusters", clusterID(base, root))
	return &Cluster{root: root, state: state, out: out, steps: command.NewSteps(progress)}, nil
}

// StateRoot is where the state of all clusters lives: $XDG_STATE_HOME or
// ~/.local/state, then ordergrid.
func StateRoot() (string, error) {
	if base := os.Getenv("XDG_STATE_HOME"); filepath.IsAbs(base) {
		return filepath.Join(base, "ordergrid"), nil
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return "", fmt.Errorf("no place for the cluster's state: %w; set HOME or XDG_STATE_HOME", err)
	}
	return filepath.Join(home, ".local", "state", "ordergrid"), nil
}

// Kubeconfig is the path of the administrator's client configuration.
func (c *Cluster) Kubeconfig(context.Context) (string, error) {
	plan, err := c.load()
	if err != nil {
		return "", err
	}
	return plan.kubeconfig(), nil
}

// lock serialises what changes the cluster.
func (c *Cluster) lock() (unlock func(), err error) { return flock(c.state + ".lock") }

// errDown means that there is no cluster.
var errDown = errors.New("this checkout has no local cluster; bring one up with: make cluster-up")

func (c *Cluster) planFile() string { return filepath.Join(c.state, "cluster.json") }

// Exists reports whether the cluster was brought up and not taken down.
func (c *Cluster) Exists() bool { return exists(c.planFile()) }

// load reads the plan of a cluster that has been brought up.
func (c *Cluster) load() (*Plan, error) {
	content, err := os.ReadFile(c.planFile())
	if errors.Is(err, os.ErrNotExist) {
		return nil, errDown
	}
	if err != nil {
		return nil, err
	}
	plan := &Plan{}
	if err := json.Unmarshal(content, plan); err != nil {
		return nil, fmt.Errorf("%s: %w; take the cluster down and up again", c.planFile(), err)
	}
	return plan, nil
}

// Up brings the cluster up, or whatever of it is down. nodes is the number of
// workers, 0 for what there is or the default.
func (c *Cluster) Up(ctx context.Context, nodes int) error {
	if err := c.prepareHost(ctx); err != nil {
		return err
	}
	bin, err := EnsurePrograms(ctx, c.root, c.steps.Say)
	if err != nil {
		return err
	}
	unlock, err := c.lock()
	if err != nil {
		return err
	}
	defer unlock()
	plan, err := c.planFor(ctx, bin, nodes)
	if err != nil {
		return err
	}
	return c.bringUp(ctx, plan)
}

// planFor returns the existing cluster's plan or makes one.
func (c *Cluster) planFor(ctx context.Context, bin string, nodes int) (*Plan, error) {
	boot, err := bootID()
	if err != nil {
		return nil, err
	}
	plan, err := c.load()
	switch {
	case err == nil && plan.BootID != boot:
		// etcd does not sync to disk here; what a power cut left is not to be
		// trusted.
		c.steps.Say("the host was restarted since; starting afresh")
		if err := c.remove(ctx, plan); err != nil {
			return nil, err
		}
	case err == nil && nodes != 0 && nodes != len(plan.Nodes):
		return nil, fmt.Errorf("the cluster is up with %d nodes, not %d: take it down first (make cluster-down)", len(plan.Nodes), nodes)
	case err == nil:
		if !exists(filepath.Join(plan.Bin, "hyperkube")) {
			return nil, fmt.Errorf("the programs the cluster runs are gone from %s: take it down and up again", plan.Bin)
		}
		if plan.Bin != bin {
			c.steps.Say("the cluster runs programs of another version, from %s; take it down and up to change them", plan.Bin)
		}
		return plan, nil
	case !errors.Is(err, errDown):
		return nil, err
	}
	return c.newPlan(ctx, bin, boot, nodes)
}

func (c *Cluster) newPlan(ctx context.Context, bin, boot string, nodes int) (*Plan, error) {
	if nodes == 0 {
		nodes = DefaultNodes
	}
	workers, err := PlanNodes(nodes)
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(c.state, 0o755); err != nil {
		return nil, err
	}
	index, err := reserveIndex(ctx, c.state)
	if err != nil {
		return nil, err
	}
	plan := &Plan{ID: filepath.Base(c.state), Index: index, Checkout: c.root, State: c.state, Bin: bin, BootID: boot, Nodes: workers}
	content, err := json.MarshalIndent(plan, "", "  ")
	if err != nil {
		return nil, err
	}
	return plan, writeFile(c.planFile(), content, 0o644)
}

func bootID() (string, error) {
	id, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	return strings.TrimSpace(string(id)), err
}
