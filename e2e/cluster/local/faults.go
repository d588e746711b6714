package local

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"time"
)

// KillNode cuts the power of a node or of the control plane. Its disk stays.
func (c *Cluster) KillNode(_ context.Context, name string) error {
	plan, unlock, err := c.loadLocked()
	if err != nil {
		return err
	}
	defer unlock()
	if err := plan.checkMachine(name); err != nil {
		return err
	}
	if plan.machinePID(name) == 0 {
		return fmt.Errorf("%s is off already; start it with: node start %s", name, name)
	}
	if err := plan.killMachine(name); err != nil {
		return err
	}
	c.steps.Say("%s has no power; bring it back with: node start %s", name, name)
	return nil
}

// StartNode switches a machine on again and waits until Kubernetes finds it
// ready. A machine that runs is left alone.
func (c *Cluster) StartNode(ctx context.Context, name string) error {
	plan, unlock, err := c.loadLocked()
	if err != nil {
		return err
	}
	defer unlock()
	if err := plan.checkMachine(name); err != nil {
		return err
	}
	if plan.machinePID(switchName) == 0 {
		return fmt.Errorf("the cluster's switch is down; repair everything with: up")
	}
	var switchedOn []string
	since := time.Now().Truncate(time.Second) // the API server keeps whole seconds
	if plan.machinePID(name) == 0 {
		switchedOn = []string{name}
		if err := c.switchOn(ctx, plan, switchedOn); err != nil {
			return err
		}
	}
	api, err := newAPIClient(plan)
	if err != nil {
		return err
	}
	return c.steps.Run(name+" ready", func() error {
		if name == controlPlaneName {
			return api.waitReady(ctx)
		}
		alone := &Plan{Nodes: []Node{{Name: name}}}
		return api.waitNodes(ctx, alone, switchedOn, since)
	})
}

// CutNode pulls a machine's network cable: everything on it keeps running
// and is unreachable.
func (c *Cluster) CutNode(ctx context.Context, name string) error {
	return c.setCable(ctx, name, "down")
}

// HealNode plugs the cable in again.
func (c *Cluster) HealNode(ctx context.Context, name string) error {
	return c.setCable(ctx, name, "up")
}

func (c *Cluster) setCable(ctx context.Context, name, state string) error {
	plan, unlock, err := c.loadLocked()
	if err != nil {
		return err
	}
	defer unlock()
	if err := plan.checkMachine(name); err != nil {
		return err
	}
	if plan.machinePID(name) == 0 {
		return fmt.Errorf("%s is off, it has no network to cut or heal; start it with: node start %s", name, name)
	}
	err = ipBatch(ctx, plan.machinePID(switchName), []string{"link set " + cable(name) + " " + state})
	if err == nil {
		c.steps.Say("the network cable of %s is %s", name, map[string]string{"up": "plugged in", "down": "pulled"}[state])
	}
	return err
}

// healAll plugs in every cable that was pulled.
func healAll(ctx context.Context, plan *Plan) error {
	switchPID := plan.machinePID(switchName)
	cut, err := cutPorts(ctx, switchPID)
	if err != nil {
		return err
	}
	var lines []string
	for _, name := range plan.machines() {
		if cut[cable(name)] {
			lines = append(lines, "link set "+cable(name)+" up")
		}
	}
	if len(lines) == 0 {
		return nil
	}
	return ipBatch(ctx, switchPID, lines)
}

// checkMachine accepts the machines faults may be done to.
func (p *Plan) checkMachine(name string) error {
	if name == switchName || !p.hasMachine(name) {
		return fmt.Errorf("no node %q; this cluster has %v", name, p.machines()[1:])
	}
	return nil
}

// loadLocked reads the plan and holds the cluster's lock.
func (c *Cluster) loadLocked() (*Plan, func(), error) {
	if err := Supported(); err != nil {
		return nil, nil, err
	}
	unlock, err := c.lock()
	if err != nil {
		return nil, nil, err
	}
	plan, err := c.load()
	if err != nil {
		unlock()
		return nil, nil, err
	}
	return plan, unlock, nil
}

// Exec runs a command inside a machine with the caller's terminal.
func (c *Cluster) Exec(ctx context.Context, name string, args []string) error {
	plan, err := c.load()
	if err != nil {
		return err
	}
	if !plan.hasMachine(name) {
		return fmt.Errorf("no machine %q; this cluster has %v", name, plan.machines())
	}
	pid := plan.machinePID(name)
	if pid == 0 {
		return fmt.Errorf("%s is off; start it with: node start %s", name, name)
	}
	cmd := exec.CommandContext(ctx, "nsenter", enter(pid, args...)...)
	cmd.Env = append(os.Environ(), machineEnv()[0])
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	return cmd.Run()
}

// Load imports image archives into every node that is on.
func (c *Cluster) Load(ctx context.Context, archives ...string) error {
	plan, unlock, err := c.loadLocked()
	if err != nil {
		return err
	}
	defer unlock()
	for _, archive := range archives {
		if _, err := os.Stat(archive); err != nil {
			return err
		}
		err := c.steps.Run("image "+archive+" on the nodes", func() error {
			return eachNode(plan, func(n Node) error { return importArchive(ctx, plan, n, archive) })
		})
		if err != nil {
			return err
		}
	}
	if off := plan.powerless(); len(off) > 0 {
		return fmt.Errorf("%v have no power and did not get the images; bring them up (make cluster-up) and load again", off)
	}
	return nil
}
