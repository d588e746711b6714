package cgroup

import (
	"os"
	"path/filepath"
	"testing"
)

func TestMemoryLimit(t *testing.T) {
	for _, c := range []struct {
		name, groups string
		files        map[string]string
		want         int64
		file         string
	}{
		{"version 2", "0::/kubepods/pod1/c1\n", map[string]string{"kubepods/pod1/c1/memory.max": "536870912\n", "kubepods/pod1/memory.max": "max\n"}, 512 << 20, "kubepods/pod1/c1/memory.max"},
		{"a parent is tighter", "0::/a/b\n", map[string]string{"a/b/memory.max": "1000\n", "a/memory.max": "900\n"}, 900, "a/memory.max"},
		{"own namespace", "0::/\n", map[string]string{"memory.max": "77\n"}, 77, "memory.max"},
		{"no limit", "0::/a\n", map[string]string{"a/memory.max": "max\n"}, 0, ""},
		{"version 1", "9:cpu,cpuacct:/x\n4:memory:/x/y\n", map[string]string{"memory/x/y/memory.limit_in_bytes": "4096\n", "memory/memory.limit_in_bytes": "9223372036854771712\n"}, 4096, "memory/x/y/memory.limit_in_bytes"},
		{"version 1, the host's path in a container", "4:memory:/docker/abc\n", map[string]string{"memory/memory.limit_in_bytes": "8192\n"}, 8192, "memory/memory.limit_in_bytes"},
		{"rubbish", "x\n:\n0:\n0::\n", map[string]string{"memory.max": "-5\n"}, 0, ""},
		{"climbing out", "0::/../../etc\n", map[string]string{"memory.max": "12\n"}, 12, "memory.max"},
	} {
		root := t.TempDir()
		for name, text := range c.files {
			at := filepath.Join(root, name)
			if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(at, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		got, file, ok := memoryLimit(root, c.groups)
		if ok != (c.want != 0) || got != c.want || ok && file != filepath.Join(root, c.file) {
			t.Errorf("%s: %d from %q, want %d from %q", c.name, got, file, c.want, c.file)
		}
	}
}
