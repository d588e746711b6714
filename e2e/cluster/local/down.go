package local

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Down takes the cluster down without a trace. It also clears up
// after a crash of any part, itself included, and succeeds when there is
// nothing.
func (c *Cluster) Down(ctx context.Context) error {
	if err := Supported(); err != nil {
		return err
	}
	unlock, err := c.lock()
	if err != nil {
		return err
	}
	defer unlock()
	plan, err := c.load()
	if err != nil {
		// Names follow from the state directory alone, so leftovers are found
		// even when the plan is lost.
		plan = &Plan{ID: filepath.Base(c.state), State: c.state}
	}
	if err := c.remove(ctx, plan); err != nil {
		return err
	}
	if left := c.leaks(ctx, plan.ID); len(left) > 0 {
		return fmt.Errorf("left behind: %s", strings.Join(left, "; "))
	}
	c.steps.Say("cluster is down, nothing left")
	return os.Remove(c.state + ".lock")
}

// remove undoes everything a cluster did.
func (c *Cluster) remove(ctx context.Context, plan *Plan) error {
	steps := []func() error{
		func() error { return stopExecutor(c.state) },
		func() error { return killCgroup(plan.cgroup()) },
		func() error { return killStrays(c.state) },
		func() error { return deleteLink(ctx, plan.hostLink()) },
		func() error { return removeCgroup(plan.cgroup()) },
		func() error { return unmountBelow(c.state) },
		func() error { return os.RemoveAll(c.state) },
		func() error { return releaseIndex(c.state) },
	}
	for _, do := range steps {
		if err := do(); err != nil {
			return err
		}
	}
	return nil
}

// killStrays kills supervisors that never got as far as their cgroup.
func killStrays(state string) error {
	deadline := time.Now().Add(10 * time.Second)
	for {
		pids := processesOf(state)
		if len(pids) == 0 {
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("processes that do not die: %v", pids)
		}
		for _, pid := range pids {
			_ = unix.Kill(pid, unix.SIGKILL) // it may be gone already
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// processesOf lists the processes whose program lies in the state directory.
func processesOf(state string) []int {
	entries, _ := os.ReadDir("/proc")
	var pids []int
	for _, entry := range entries {
		var pid int
		if _, err := fmt.Sscanf(entry.Name(), "%d", &pid); err != nil {
			continue
		}
		cmdline, err := os.ReadFile(filepath.Join("/proc", entry.Name(), "cmdline"))
		if err == nil && strings.HasPrefix(string(cmdline), state+"/") {
			pids = append(pids, pid)
		}
	}
	return pids
}

func deleteLink(ctx context.Context, link string) error {
	if !exists("/sys/class/net/" + link) {
		return nil
	}
	err := ipBatch(ctx, 0, []string{"link del " + link})
	if !exists("/sys/class/net/" + link) {
		return nil // the kernel was quicker
	}
	return err
}

// unmountBelow unmounts what a crash of an older version may have left. A
// machine's own mounts end with it.
func unmountBelow(dir string) error {
	var errs []error
	mounts := mountsBelow(dir)
	for i := len(mounts) - 1; i >= 0; i-- {
		errs = append(errs, unix.Unmount(mounts[i], unix.MNT_DETACH))
	}
	return errors.Join(errs...)
}

func mountsBelow(dir string) []string {
	info, _ := os.ReadFile("/proc/self/mountinfo")
	var mounts []string
	for line := range strings.Lines(string(info)) {
		if fields := strings.Fields(line); len(fields) > 4 && strings.HasPrefix(fields[4], dir+"/") {
			mounts = append(mounts, fields[4])
		}
	}
	return mounts
}

// Leaks lists whatever of this checkout's cluster is left on the host while
// the cluster is down. It is empty, or the teardown has an error.
func (c *Cluster) Leaks(ctx context.Context) []string { return c.leaks(ctx, filepath.Base(c.state)) }

func (c *Cluster) leaks(ctx context.Context, id string) []string {
	plan := &Plan{ID: id, State: c.state}
	var left []string
	add := func(kind string, items []string) {
		for _, item := range items {
			left = append(left, kind+" "+item)
		}
	}
	pids, err := cgroupProcesses(plan.cgroup())
	add("process", append(describePIDs(pids), describePIDs(processesOf(c.state))...))
	if pid := executorPID(c.state); pid != 0 {
		add("executor", describePIDs([]int{pid}))
	}
	dirs, _ := cgroupDirs(plan.cgroup())
	add("cgroup", dirs)
	add("mount", mountsBelow(c.state))
	if exists("/sys/class/net/" + plan.hostLink()) {
		add("interface", []string{plan.hostLink()})
	}
	add("route", routesVia(ctx, plan.hostLink()))
	add("network namespace", strayNamespaces(c.state))
	for index, holder := range heldIndexes(registry) {
		if holder == c.state {
			add("reserved network", []string{indexNetwork(index).String()})
		}
	}
	if exists(c.state) {
		add("directory", []string{c.state})
	}
	if err != nil {
		add("unreadable:", []string{err.Error()})
	}
	return left
}

func describePIDs(pids []int) []string {
	var all []string
	for _, pid := range pids {
		name, _ := os.ReadFile(fmt.Sprintf("/proc/%d/comm", pid))
		all = append(all, fmt.Sprintf("%d (%s)", pid, strings.TrimSpace(string(name))))
	}
	return all
}

func routesVia(ctx context.Context, link string) []string {
	out, err := run(ctx, nil, "ip", "-json", "route", "show", "table", "all")
	if err != nil {
		return []string{err.Error()}
	}
	var routes []struct{ Dst, Dev string }
	if err := json.Unmarshal([]byte(out), &routes); err != nil {
		return []string{err.Error()}
	}
	var found []string
	for _, route := range routes {
		if route.Dev == link {
			found = append(found, route.Dst+" dev "+link)
		}
	}
	return found
}

// strayNamespaces lists network namespaces kept open by a mount of the state
// directory in any process, which nothing here makes on purpose.
func strayNamespaces(state string) []string {
	info, _ := os.ReadFile("/proc/self/mountinfo")
	var found []string
	for line := range strings.Lines(string(info)) {
		if strings.Contains(line, " - nsfs ") && strings.Contains(line, state) {
			found = append(found, strings.Fields(line)[4])
		}
	}
	return found
}
