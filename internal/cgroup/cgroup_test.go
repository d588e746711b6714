package cgroup

import (
	"errors"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"testing"
	"time"
)

// tree writes files below a new directory; proc/PID is the target of proc/self.
func tree(t *testing.T, files map[string]string) string {
	t.Helper()
	root := t.TempDir()
	for name, content := range files {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("17", filepath.Join(root, "proc/self")); err != nil {
		t.Fatal(err)
	}
	return root
}

const (
	mountV2 = "31 23 0:28 / /sys/fs/cgroup rw,relatime - cgroup2 cgroup2 rw\n"
	mountV1 = "32 31 0:29 / /sys/fs/cgroup/cpu rw,relatime - cgroup cgroup rw,cpu,cpuacct\n" +
		"35 31 0:32 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory\n"
	// A container without a namespace of its own: the group alone is mounted.
	mountV1Bound = "32 31 0:29 /docker/abc /sys/fs/cgroup/cpu rw,relatime - cgroup cgroup rw,cpu,cpuacct\n"
)

func TestRead(t *testing.T) {
	for name, c := range map[string]struct {
		files map[string]string
		want  Stats
	}{
		"version 2 in a container": {map[string]string{
			"proc/17/cgroup": "0::/\n", "proc/17/mountinfo": mountV2,
			"sys/fs/cgroup/cgroup.controllers": "cpu memory\n",
			"sys/fs/cgroup/cpu.stat":           "usage_usec 5\nnr_periods 10\nnr_throttled 3\nthrottled_usec 1500\n",
			"sys/fs/cgroup/memory.current":     "1000\n", "sys/fs/cgroup/memory.max": "4000\n",
			"sys/fs/cgroup/memory.events": "low 0\nhigh 1\nmax 2\noom 3\noom_kill 4\n",
			"sys/fs/cgroup/cpu.pressure":  "some avg10=0.00 avg60=0.00 avg300=0.00 total=7\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=2\n",
		}, Stats{CPUTime: 5 * time.Microsecond, CPU: &CPU{10, 3, 1500 * time.Microsecond},
			Memory: &Memory{1000, 4000, map[string]uint64{"low": 0, "high": 1, "max": 2, "oom": 3, "oom_kill": 4}, 0},
			Waits:  []Wait{{"cpu", "some", 7 * time.Microsecond}, {"cpu", "full", 2 * time.Microsecond}}}},
		"version 2 on the host, no limits": {map[string]string{
			"proc/17/cgroup": "0::/system.slice/grid.service\n", "proc/17/mountinfo": mountV2,
			"sys/fs/cgroup/system.slice/grid.service/cgroup.controllers": "memory\n",
			"sys/fs/cgroup/system.slice/grid.service/memory.current":     "9\n",
			"sys/fs/cgroup/system.slice/grid.service/memory.max":         "max\n",
			"sys/fs/cgroup/system.slice/grid.service/cpu.stat":           "usage_usec 5\n",
		}, Stats{CPUTime: 5 * time.Microsecond, Memory: &Memory{9, 0, map[string]uint64{}, 0}}},
		"version 1": {map[string]string{
			"proc/17/cgroup": "3:cpuacct,cpu:/a\n4:memory:/a\n0::/\n", "proc/17/mountinfo": mountV1,
			"sys/fs/cgroup/cpu/a/cpuacct.usage":            "77\n",
			"sys/fs/cgroup/cpu/a/cpu.stat":                 "nr_periods 8\nnr_throttled 2\nthrottled_time 99\n",
			"sys/fs/cgroup/memory/a/memory.usage_in_bytes": "5\n",
			"sys/fs/cgroup/memory/a/memory.limit_in_bytes": "9223372036854771712\n",
			"sys/fs/cgroup/memory/a/memory.failcnt":        "6\n",
			"sys/fs/cgroup/memory/a/memory.oom_control":    "oom_kill_disable 0\nunder_oom 0\noom_kill 1\n",
		}, Stats{CPUTime: 77, CPU: &CPU{8, 2, 99}, Memory: &Memory{5, 0, map[string]uint64{"max": 6, "oom_kill": 1}, 0}}},
		"version 1, only the group is mounted": {map[string]string{
			"proc/17/cgroup": "3:cpuacct,cpu:/docker/abc\n", "proc/17/mountinfo": mountV1Bound,
			"sys/fs/cgroup/cpu/cpu.stat": "nr_periods 1\nnr_throttled 1\nthrottled_time 1\n",
		}, Stats{CPU: &CPU{1, 1, 1}}},
		"hostile numbers": {map[string]string{
			"proc/17/cgroup": "0::/../../..\n", "proc/17/mountinfo": mountV2,
			"sys/fs/cgroup/cgroup.controllers": "", "sys/fs/cgroup/cpu.stat": "nr_periods 1\nnr_throttled -1\nthrottled_usec 18446744073709551615\n\nx\n 7\n",
			"sys/fs/cgroup/memory.current": "1e9\n", "sys/fs/cgroup/io.pressure": "some\nfull total=x\nsome total=\n",
		}, Stats{CPU: &CPU{1, 0, math.MaxInt64}}},
	} {
		t.Run(name, func(t *testing.T) {
			root := tree(t, c.files)
			g, err := find(filepath.Join(root, "proc"), root)
			if err != nil {
				t.Fatal(err)
			}
			if got := g.Read(); !reflect.DeepEqual(got, c.want) {
				t.Errorf("got %+v %+v %+v, want %+v", got, got.CPU, got.Memory, c.want)
			}
		})
	}
}

func TestNone(t *testing.T) {
	for name, files := range map[string]map[string]string{
		"no such file":       {"proc/17/stat": ""},
		"nothing is mounted": {"proc/17/cgroup": "0::/\n", "proc/17/mountinfo": ""},
		"garbage":            {"proc/17/cgroup": "::::\x00\n", "proc/17/mountinfo": "\n\n"},
	} {
		root := tree(t, files)
		if _, err := find(filepath.Join(root, "proc"), root); !errors.Is(err, ErrNone) {
			t.Errorf("%s: error %v, want %v", name, err, ErrNone)
		}
	}
}
