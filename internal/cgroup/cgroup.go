// Package cgroup reads the kernel's statistics of the control group of this process: throttling by
// its CPU quota, memory use and limit, pressure. Versions 1 and 2 of the interface are supported;
// where there is neither, everything is unknown.
package cgroup

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/prometheus/procfs"
)

// Group is the control group of a process. It is safe for use by several
// goroutines.
type Group struct {
	v2          string // directory in the unified hierarchy, "" if there is none
	cpu, memory string // directories of the version 1 controllers, "" where v2 has them
	cpuacct     string // another one, on most systems the same as cpu
}

// ErrNone means that the process is in no control group that can be read.
var ErrNone = errors.New("no control group can be read below the mounts of this process")

// Self finds the group of this process.
func Self() (*Group, error) { return find("/proc", "/") }

// find reads the process's groups and mounts below proc; root is the prefix of mount points.
func find(proc, root string) (*Group, error) {
	fsys, err := procfs.NewFS(proc)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNone, err)
	}
	self, err := fsys.Self()
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNone, err)
	}
	groups, err := self.Cgroups()
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNone, err)
	}
	mounts, err := self.MountInfo()
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNone, err)
	}
	g := &Group{}
	for _, c := range groups {
		if c.HierarchyID != 0 && has(c.Controllers, "cpuacct") {
			g.cpuacct = directory(mounts, "cgroup", "cpuacct", c.Path, root, "cpuacct.usage")
		}
		switch {
		case c.HierarchyID == 0:
			g.v2 = directory(mounts, "cgroup2", "", c.Path, root, "cgroup.controllers")
		case has(c.Controllers, "cpu"):
			g.cpu = directory(mounts, "cgroup", "cpu", c.Path, root, "cpu.stat")
		case has(c.Controllers, "memory"):
			g.memory = directory(mounts, "cgroup", "memory", c.Path, root, "memory.usage_in_bytes")
		}
	}
	if *g == (Group{}) {
		return nil, ErrNone
	}
	return g, nil
}

func has(list []string, name string) bool {
	for _, s := range list {
		if s == name {
			return true
		}
	}
	return false
}

// directory of a group: the mount of its hierarchy, and below it the group's path unless the mount
// begins inside it. In a container the path may be that of the host, of which only the group itself
// is mounted.
func directory(mounts []*procfs.MountInfo, fsType, controller, path, root, file string) string {
	for _, m := range mounts {
		if m.FSType != fsType {
			continue
		}
		if _, ok := m.SuperOptions[controller]; controller != "" && !ok {
			continue
		}
		below := path
		if m.Root != "/" {
			below = strings.TrimPrefix(path, m.Root)
		}
		for _, dir := range []string{filepath.Join(root, m.MountPoint, below), filepath.Join(root, m.MountPoint)} {
			if exists(filepath.Join(dir, file)) {
				return dir
			}
		}
	}
	return ""
}

func exists(name string) bool {
	_, err := os.Stat(name)
	return !errors.Is(err, fs.ErrNotExist) && err == nil
}
