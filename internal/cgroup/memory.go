package cgroup

import (
	"os"
	"path"
	"strconv"
	"strings"
)

// unlimited is above the memory of any machine; version 1 has a number near 2^63 without a limit.
const unlimited = 1 << 60

// MemoryLimit is the lowest memory limit of the cgroups of this process, in bytes, and its file. ok
// is false where there is none, or no cgroup can be read.
func MemoryLimit() (limit int64, file string, ok bool) {
	groups, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return 0, "", false
	}
	return memoryLimit("/sys/fs/cgroup", string(groups))
}

// memoryLimit walks up from the process's group: each level may be tighter than the one below. In a
// container the tree often begins at the container's own group while /proc has the host's path, so
// missing levels are skipped.
func memoryLimit(root, groups string) (limit int64, file string, ok bool) {
	for _, line := range strings.Split(groups, "\n") {
		_, rest, found := strings.Cut(line, ":")
		controllers, group, found2 := strings.Cut(rest, ":")
		if !found || !found2 {
			continue
		}
		var tree, name string
		switch {
		case controllers == "":
			tree, name = root, "memory.max"
		case hasController(controllers, "memory"):
			tree, name = root+"/memory", "memory.limit_in_bytes"
		default:
			continue
		}
		for dir := path.Clean("/" + group); ; dir = path.Dir(dir) {
			at := path.Join(tree, dir, name)
			if n, has := readLimit(at); has && (!ok || n < limit) {
				limit, file, ok = n, at, true
			}
			if dir == "/" {
				break
			}
		}
	}
	return limit, file, ok
}

func hasController(list, name string) bool {
	for _, c := range strings.Split(list, ",") {
		if c == name {
			return true
		}
	}
	return false
}

func readLimit(file string) (int64, bool) {
	b, err := os.ReadFile(file)
	if err != nil {
		return 0, false
	}
	n, err := strconv.ParseInt(strings.TrimSpace(string(b)), 10, 64) // "max" is no number
	return n, err == nil && n > 0 && n < unlimited
}
