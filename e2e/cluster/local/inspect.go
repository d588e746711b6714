package local

import (
	"context"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
)

// What is visible of the machines from outside, for fault injection to
// show that they are broken.

// Nodes are the names of the workers.
func (c *Cluster) Nodes(context.Context) ([]string, error) {
	plan, err := c.load()
	if err != nil {
		return nil, err
	}
	return plan.machines()[2:], nil
}

// ControlPlane is the name of the machine with the API server.
func (c *Cluster) ControlPlane() string { return controlPlaneName }

// Boot describes a machine's first process, which is another one each time it
// is switched on; it is empty while the machine is off.
func (c *Cluster) Boot(_ context.Context, name string) (string, error) {
	plan, err := c.load()
	if err != nil {
		return "", err
	}
	if err := plan.checkMachine(name); err != nil {
		return "", err
	}
	pid := plan.machinePID(name)
	if pid == 0 {
		return "", nil
	}
	if start, err := startTime(pid); err == nil {
		return fmt.Sprintf("first process %d, started at tick %d", pid, start), nil
	}
	return "", nil // it has died since
}

// Unplugged reports whether a machine's cable is pulled.
func (c *Cluster) Unplugged(ctx context.Context, name string) (bool, error) {
	plan, err := c.load()
	if err != nil {
		return false, err
	}
	if err := plan.checkMachine(name); err != nil {
		return false, err
	}
	cut, err := cutPorts(ctx, plan.machinePID(switchName))
	return cut[cable(name)], err
}

// PodProcess is the oldest process of a pod, which holds its network, or 0.
func (c *Cluster) PodProcess(_ context.Context, node, uid string) (int, error) {
	plan, err := c.load()
	if err != nil {
		return 0, err
	}
	if _, err := plan.node(node); err != nil {
		return 0, err
	}
	dirs, err := cgroupDirs(plan.machineCgroup(node) + "/kubepods")
	if err != nil {
		return 0, err
	}
	oldest, since := 0, uint64(0)
	for _, dir := range dirs {
		if filepath.Base(dir) != "pod"+uid {
			continue
		}
		pid, start := oldestBelow(dir)
		if pid != 0 && (oldest == 0 || start < since) {
			oldest, since = pid, start
		}
	}
	return oldest, nil
}

// oldestBelow is the process of a cgroup tree that started first.
func oldestBelow(dir string) (oldest int, since uint64) {
	_ = filepath.WalkDir(dir, func(path string, entry os.DirEntry, err error) error {
		if err == nil && entry.IsDir() { // it may be gone already
			for _, pid := range processesIn(path) {
				if start, err := startTime(pid); err == nil && (oldest == 0 || start < since) {
					oldest, since = pid, start
				}
			}
		}
		return nil
	})
	return oldest, since
}

// PodNetworks lists a process of each network of a node's pods.
func (c *Cluster) PodNetworks(_ context.Context, node string) ([]int, error) {
	plan, err := c.load()
	if err != nil {
		return nil, err
	}
	if _, err := plan.node(node); err != nil {
		return nil, err
	}
	pids, err := cgroupProcesses(plan.machineCgroup(node) + "/kubepods")
	seen := map[string]bool{}
	return slices.DeleteFunc(pids, func(pid int) bool {
		network, err := os.Readlink(fmt.Sprintf("/proc/%d/ns/net", pid))
		again := err != nil || seen[network] // it may have ended
		seen[network] = true
		return again
	}), err
}

// OwnNetwork reports whether a process has another network than its node.
func (c *Cluster) OwnNetwork(_ context.Context, node string, pid int) (bool, error) {
	plan, err := c.load()
	if err != nil {
		return false, err
	}
	of := func(pid int) (string, error) { return os.Readlink(fmt.Sprintf("/proc/%d/ns/net", pid)) }
	nodes, err := of(plan.machinePID(node))
	if err != nil {
		return false, fmt.Errorf("%s is off: %w", node, err)
	}
	own, err := of(pid)
	return own != nodes, err
}

// HostAddr is this host's address on the cluster's network, which pods reach.
func (c *Cluster) HostAddr() (netip.Addr, error) {
	plan, err := c.load()
	if err != nil {
		return netip.Addr{}, err
	}
	return plan.hostAddr(), nil
}

// ExecutorDir is where an executor of this cluster keeps its state. It goes
// with the cluster.
func (c *Cluster) ExecutorDir() string { return filepath.Join(c.state, "executor") }
