package local

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

const cgroupMount = "/sys/fs/cgroup"

// Each machine has a cgroup of its own below the cluster's, outside whatever
// session the caller runs in: its daemons in "system" and, made by the
// kubelet, its pods in "kubepods". What is in a cluster's cgroups is the
// cluster's, which makes finding leftovers certain.

// cgroupTrees lists the hierarchies: one on cgroup v2, one per controller on v1.
func cgroupTrees() ([]string, error) {
	var stat unix.Statfs_t
	if err := unix.Statfs(cgroupMount, &stat); err != nil {
		return nil, fmt.Errorf("%s: %w; is the cgroup file system mounted?", cgroupMount, err)
	}
	if stat.Type == unix.CGROUP2_SUPER_MAGIC {
		return []string{cgroupMount}, nil
	}
	entries, err := os.ReadDir(cgroupMount)
	if err != nil {
		return nil, err
	}
	var trees []string
	for _, entry := range entries {
		dir := filepath.Join(cgroupMount, entry.Name())
		// Links such as cpu -> cpu,cpuacct name a tree a second time.
		if entry.IsDir() && exists(filepath.Join(dir, "cgroup.procs")) {
			trees = append(trees, dir)
		}
	}
	if len(trees) == 0 {
		return nil, fmt.Errorf("%s holds no cgroup hierarchy", cgroupMount)
	}
	return trees, nil
}

// createCgroup makes a cgroup, with its parents, in every hierarchy.
func createCgroup(name string) error {
	trees, err := cgroupTrees()
	if err != nil {
		return err
	}
	for _, tree := range trees {
		dir := tree
		for part := range strings.SplitSeq(name, "/") {
			parent := dir
			dir = filepath.Join(dir, part)
			if err := os.Mkdir(dir, 0o755); err != nil && !errors.Is(err, os.ErrExist) {
				return err
			}
			if err := inherit(parent, dir); err != nil {
				return err
			}
		}
		if tree == cgroupMount { // v2 alone, not the v2 tree without controllers beside v1
			controllers, err := os.ReadFile(filepath.Join(dir, "cgroup.controllers"))
			if err != nil {
				return err
			}
			if missing := missingControllers(string(controllers)); len(missing) > 0 {
				return fmt.Errorf("%s cannot hand down the controllers %s: it is not the root of the cgroup tree, as inside a container; run this on the host, or in a container that shares its cgroup namespace",
					cgroupMount, strings.Join(missing, ", "))
			}
		}
	}
	return nil
}

// missingControllers names those a kubelet cannot do without.
func missingControllers(have string) []string {
	var missing []string
	for _, controller := range []string{"cpu", "cpuset", "memory", "pids"} {
		if !slices.Contains(strings.Fields(have), controller) {
			missing = append(missing, controller)
		}
	}
	return missing
}

// inherit makes a new cgroup usable: on v1 a cpuset starts empty and admits
// nothing, on v2 the parent has to hand its controllers down.
func inherit(parent, dir string) error {
	for _, file := range []string{"cpuset.cpus", "cpuset.mems"} {
		own, err := os.ReadFile(filepath.Join(dir, file))
		if err != nil || len(strings.TrimSpace(string(own))) > 0 || exists(filepath.Join(dir, "cgroup.controllers")) {
			continue
		}
		value, err := os.ReadFile(filepath.Join(parent, file))
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, file), value, 0)
		}
		if err != nil {
			return err
		}
	}
	controllers, _ := os.ReadFile(filepath.Join(parent, "cgroup.controllers")) // v1 has none
	for controller := range strings.FieldsSeq(string(controllers)) {
		// Some cannot be handed down on some hosts; createCgroup checks those
		// that are needed.
		_ = os.WriteFile(filepath.Join(parent, "cgroup.subtree_control"), []byte("+"+controller), 0)
	}
	return nil
}

// joinCgroup moves a process into a cgroup of every hierarchy.
func joinCgroup(name string, pid int) error {
	trees, err := cgroupTrees()
	if err != nil {
		return err
	}
	for _, tree := range trees {
		if err := os.WriteFile(filepath.Join(tree, name, "cgroup.procs"), []byte(strconv.Itoa(pid)), 0); err != nil {
			return err
		}
	}
	return nil
}

// cgroupProcesses lists the processes in a cgroup and all below it.
func cgroupProcesses(name string) ([]int, error) {
	trees, err := cgroupTrees()
	if err != nil {
		return nil, err
	}
	var pids []int
	for _, tree := range trees {
		_ = filepath.WalkDir(filepath.Join(tree, name), func(path string, entry fs.DirEntry, err error) error {
			if err == nil && entry.IsDir() { // it may be gone already
				pids = append(pids, processesIn(path)...)
			}
			return nil
		})
	}
	slices.Sort(pids)
	return slices.Compact(pids), nil
}

func processesIn(cgroup string) []int {
	procs, _ := os.ReadFile(filepath.Join(cgroup, "cgroup.procs"))
	var pids []int
	for field := range strings.FieldsSeq(string(procs)) {
		// A process of a foreign namespace shows as 0.
		if pid, err := strconv.Atoi(field); err == nil && pid > 0 {
			pids = append(pids, pid)
		}
	}
	return pids
}

// removeCgroup removes an empty cgroup tree from every hierarchy. The kernel
// needs a moment after the last process of a cgroup has ended.
func removeCgroup(name string) error {
	var left []string
	for range 50 {
		var err error
		if left, err = cgroupDirs(name); err != nil || len(left) == 0 {
			return err
		}
		for _, dir := range slices.Backward(left) { // children before parents
			_ = unix.Rmdir(dir)
		}
		time.Sleep(20 * time.Millisecond)
	}
	if left, _ = cgroupDirs(name); len(left) == 0 {
		return nil
	}
	return fmt.Errorf("cgroups that cannot be removed: %s", strings.Join(left, ", "))
}

// cgroupDirs lists a cgroup and all below it in every hierarchy, parents first.
func cgroupDirs(name string) ([]string, error) {
	trees, err := cgroupTrees()
	if err != nil {
		return nil, err
	}
	var dirs []string
	for _, tree := range trees {
		_ = filepath.WalkDir(filepath.Join(tree, name), func(path string, entry fs.DirEntry, err error) error {
			if err == nil && entry.IsDir() {
				dirs = append(dirs, path)
			}
			return nil
		})
	}
	return dirs, nil
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
