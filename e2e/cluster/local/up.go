package local

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/ordergrid/ordergrid/internal/pki"
)

// bringUp starts every machine that is off, reconnects every one that is cut,
// and waits until the cluster can be used.
func (c *Cluster) bringUp(ctx context.Context, plan *Plan) error {
	if plan.machinePID(switchName) == 0 {
		// Without the switch the others hang in the air; their cables are gone.
		for _, name := range plan.machines() {
			if err := plan.killMachine(name); err != nil {
				return err
			}
		}
	}
	off, since := plan.off(), time.Now().Truncate(time.Second) // the API server keeps whole seconds
	if len(off) > 0 {
		if err := c.switchOn(ctx, plan, off); err != nil {
			return err
		}
	}
	if err := healAll(ctx, plan); err != nil {
		return err
	}
	api, err := newAPIClient(plan)
	if err != nil {
		return err
	}
	fresh := len(off) > 0
	images := make(chan error, 1) // concurrently: the nodes' containerd needs no API server
	go func() {
		images <- c.quietly(fresh, "images pause and coredns on the nodes", func() error { return loadOwnImages(ctx, plan) })
	}()
	if err := c.quietly(fresh, "API server ready", func() error { return api.waitReady(ctx) }); err != nil {
		return errors.Join(c.hint(plan, controlPlaneName, err), <-images)
	}
	if err := <-images; err != nil {
		return err
	}
	if fresh {
		if err := c.steps.Run("cluster DNS applied", func() error { return applyDNS(ctx, plan) }); err != nil {
			return err
		}
	}
	if err := c.quietly(fresh, fmt.Sprintf("%d nodes ready", len(plan.Nodes)), func() error { return api.waitNodes(ctx, plan, off, since) }); err != nil {
		return c.hint(plan, plan.Nodes[0].Name, err)
	}
	if err := c.quietly(fresh, "cluster DNS ready", func() error { return api.waitDNS(ctx) }); err != nil {
		return c.hint(plan, plan.Nodes[0].Name, err)
	}
	c.steps.Say("cluster is up: export KUBECONFIG=%s", plan.kubeconfig())
	return nil
}

// quietly runs a step and speaks of it only if the cluster was not just there
// already.
func (c *Cluster) quietly(say bool, name string, do func() error) error {
	if say {
		return c.steps.Run(name, do)
	}
	return do()
}

func (c *Cluster) hint(plan *Plan, machine string, err error) error {
	return fmt.Errorf("%w\nthe logs are in %s", err, filepath.Join(plan.machineDir(machine), "log"))
}

// off lists the machines that do not run.
func (p *Plan) off() []string {
	var off []string
	for _, name := range p.machines() {
		if p.machinePID(name) == 0 {
			off = append(off, name)
		}
	}
	return off
}

// switchOn starts the given machines, the switch first.
func (c *Cluster) switchOn(ctx context.Context, plan *Plan, names []string) error {
	if err := raiseInotify(); err != nil {
		return err
	}
	if err := plan.installSupervisor(); err != nil {
		return err
	}
	ca, err := pki.Load(plan.pkiDir(), authorityName)
	if err != nil {
		return err
	}
	if !exists(plan.kubeconfig()) {
		admin, err := kubeconfig(ca, "ordergrid-local", plan.apiURL(), pki.Identity{User: "admin", Groups: []string{"system:masters"}})
		if err != nil {
			return err
		}
		if err := writeFile(plan.kubeconfig(), admin, 0o600); err != nil {
			return err
		}
	}
	facts, err := findFacts(plan)
	if err != nil {
		return err
	}
	for _, name := range names {
		err := c.steps.Run("machine "+name+" on, "+plan.machineAddr(name).String(), func() error {
			if err := plan.writeMachineFiles(name, ca, facts); err != nil {
				return err
			}
			if _, err := plan.startMachine(ctx, name, plan.machinePID(switchName)); err != nil {
				return err
			}
			return plan.rejoinFabric(ctx, name)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// installSupervisor keeps a copy of this program for the machines to run.
func (p *Plan) installSupervisor() error {
	self, err := os.Open("/proc/self/exe")
	if err != nil {
		return err
	}
	defer self.Close()
	if err := os.MkdirAll(filepath.Dir(p.supervisor()), 0o755); err != nil {
		return err
	}
	fresh := p.supervisor() + ".new"
	copied, err := os.OpenFile(fresh, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o755)
	if err != nil {
		return err
	}
	_, err = io.Copy(copied, self)
	if err := errors.Join(err, copied.Close()); err != nil {
		return err
	}
	return os.Rename(fresh, p.supervisor()) // machines may be running the old one
}

// loadOwnImages puts the pause and DNS images on every node that lacks them.
func loadOwnImages(ctx context.Context, plan *Plan) error {
	archives, err := ownImages(plan)
	if err != nil {
		return err
	}
	return eachNode(plan, func(n Node) error {
		if err := waitContainerd(ctx, plan, n); err != nil {
			return err
		}
		have, err := runIn(ctx, plan.machinePID(n.Name), nil, "ctr", "-n", "k8s.io", "images", "ls", "-q")
		if err != nil {
			return err
		}
		for ref, archive := range archives {
			if !strings.Contains(have, ref+"\n") {
				if err := importArchive(ctx, plan, n, archive); err != nil {
					return err
				}
			}
		}
		return nil
	})
}

func waitContainerd(ctx context.Context, plan *Plan, n Node) error {
	deadline := time.Now().Add(time.Minute)
	for {
		pid := plan.machinePID(n.Name)
		if pid == 0 {
			return fmt.Errorf("node %s died; see %s", n.Name, filepath.Join(plan.machineDir(n.Name), "log"))
		}
		_, err := runIn(ctx, pid, nil, "ctr", "version")
		if err == nil {
			return nil
		}
		if time.Now().After(deadline) || ctx.Err() != nil {
			return fmt.Errorf("containerd on %s does not answer: %w; see %s", n.Name, err, filepath.Join(plan.machineDir(n.Name), "log"))
		}
		time.Sleep(200 * time.Millisecond)
	}
}

// importArchive imports one image archive of the host into a node.
func importArchive(ctx context.Context, plan *Plan, n Node, archive string) error {
	file, err := os.Open(archive)
	if err != nil {
		return err
	}
	defer file.Close()
	facts, err := findFacts(plan)
	if err != nil {
		return err
	}
	_, err = runIn(ctx, plan.machinePID(n.Name), file, "ctr", "-n", "k8s.io", "images", "import", "--snapshotter", facts.snapshotter, "-")
	return err
}

// powerless lists the nodes that are off.
func (p *Plan) powerless() []string {
	var off []string
	for _, node := range p.Nodes {
		if p.machinePID(node.Name) == 0 {
			off = append(off, node.Name)
		}
	}
	return off
}

// eachNode runs do on all nodes that are on, at once.
func eachNode(plan *Plan, do func(Node) error) error {
	var wait sync.WaitGroup
	errs := make([]error, len(plan.Nodes))
	for i, node := range plan.Nodes {
		if plan.machinePID(node.Name) == 0 {
			continue
		}
		wait.Go(func() {
			if err := do(node); err != nil {
				errs[i] = fmt.Errorf("node %s: %w", node.Name, err)
			}
		})
	}
	wait.Wait()
	return errors.Join(errs...)
}
