package metrics

import (
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"testing"
)

func TestParseCPUList(t *testing.T) {
	for text, want := range map[string][]int{"0": {0}, "0-3,8\n": {0, 1, 2, 3, 8}, " 2-2 ": {2}, "": nil} {
		if got, err := parseCPUList(text); err != nil || !slices.Equal(got, want) {
			t.Errorf("%q: %v, %v", text, got, err)
		}
	}
	for _, text := range []string{"a", "1-", "-1", "3-1", "0-99999999999999999999", "0-8192", "1,,2", "0-8191,0-8191", "1-2-3", "0x1"} {
		if got, err := parseCPUList(text); err == nil {
			t.Errorf("%q: accepted as %d processors", text, len(got))
		}
	}
}

// FuzzCPUList: no kernel output makes a scrape large or panics it.
func FuzzCPUList(f *testing.F) {
	f.Add("0-3,8")
	f.Add("1-0,")
	f.Fuzz(func(t *testing.T, text string) {
		if list, err := parseCPUList(text); err == nil && len(list) > maxCPUs {
			t.Fatalf("%d processors", len(list))
		}
	})
}

// TestNUMA reads the files of a machine with two NUMA nodes, and of one without.
func TestNUMA(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) {
		t.Helper()
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("node0/cpulist", "0-3,8-11\n")
	write("node1/cpulist", "4-7,12-15\n")
	write("node2/cpulist", "nonsense\n")
	write("node3/cpulist", "\n")
	for _, c := range []struct {
		own  []int
		want string
	}{{[]int{5, 6}, "1"}, {[]int{0, 12}, "0,1"}, {[]int{99}, ""}, {nil, ""}} {
		if got := numaNodes(c.own, dir); got != c.want {
			t.Errorf("processors %v: NUMA nodes %q, want %q", c.own, got, c.want)
		}
	}
	write("ib1/device/numa_node", "1\n")
	write("eth0/device/numa_node", "-1\n")
	write("odd/device/numa_node", "one\n")
	for device, want := range map[string]string{"ib1": "1", "eth0": "", "odd": "", "veth0": "", "": "", "../ib1": ""} {
		if got := adapterNode(dir, device); got != want {
			t.Errorf("adapter of %q: NUMA node %q, want %q", device, got, want)
		}
	}
}

func TestReadCPUs(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("reads /proc: run it on Linux")
	}
	c, ok := readCPUs("lo")
	if own, err := parseCPUList(c.list); !ok || err != nil || len(own) < 1 || c.adapter != "" {
		t.Errorf("%+v, %v", c, ok)
	}
}
