package metrics

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// The kubelet assigns processors and may change them while the node runs: they are read at
// each scrape. With exclusive processors the list is short and constant; the alignment of
// processors, memory and adapter on one NUMA node is visible here.
var cpusInfo = desc("cpus_info", "1; the processors the process may run on, the NUMA nodes they are of, and the NUMA node of the adapter behind the data port (empty where the interface has none).", "cpus", "numa_nodes", "adapter_numa_node")

const (
	maxCPUs    = 8192 // as in the kernel's largest builds
	maxCPUText = 256  // limit of the label; a longer list belongs to a process without exclusive processors
)

// cpus is the affinity of the process.
type cpus struct {
	list      string // as the kernel writes it: 0-3,8
	numaNodes string // likewise
	adapter   string // NUMA node of the data port's adapter
}

// readCPUs reads the affinity from the kernel; false if unavailable.
func readCPUs(device string) (c cpus, ok bool) {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return c, false
	}
	_, rest, found := strings.Cut(string(status), "\nCpus_allowed_list:")
	line, _, _ := strings.Cut(rest, "\n")
	c.list = strings.TrimSpace(line)
	if !found || len(c.list) > maxCPUText {
		return c, false
	}
	own, err := parseCPUList(c.list)
	if err != nil {
		return c, false
	}
	c.numaNodes, c.adapter = numaNodes(own, "/sys/devices/system/node"), adapterNode("/sys/class/net", device)
	return c, true
}

// parseCPUList reads a list such as 0-3,8.
func parseCPUList(text string) (list []int, err error) {
	if text = strings.TrimSpace(text); text == "" {
		return nil, nil
	}
	for part := range strings.SplitSeq(text, ",") {
		from, to, isRange := strings.Cut(part, "-")
		if !isRange {
			to = from
		}
		first, err1 := strconv.Atoi(from)
		last, err2 := strconv.Atoi(to)
		if err := errors.Join(err1, err2); err != nil {
			return nil, fmt.Errorf("processors %.64q: %w", text, err)
		}
		if first < 0 || last < first || last >= maxCPUs {
			return nil, fmt.Errorf("processors %.64q: %d-%d, allowed: 0..%d", text, first, last, maxCPUs-1)
		}
		for n := first; n <= last; n++ {
			list = append(list, n)
		}
		if len(list) > maxCPUs {
			return nil, fmt.Errorf("processors %.64q: more than %d", text, maxCPUs)
		}
	}
	return list, nil
}

// numaNodes returns the nodes below dir that have one of the processors.
func numaNodes(own []int, dir string) string {
	files, _ := filepath.Glob(filepath.Join(dir, "node[0-9]*", "cpulist"))
	var nodes []int
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			continue
		}
		number, err1 := strconv.Atoi(strings.TrimPrefix(filepath.Base(filepath.Dir(file)), "node"))
		its, err2 := parseCPUList(string(text))
		if err1 == nil && err2 == nil && slices.ContainsFunc(its, func(n int) bool { return slices.Contains(own, n) }) {
			nodes = append(nodes, number)
		}
	}
	slices.Sort(nodes)
	text := make([]string, len(nodes))
	for i, n := range nodes {
		text[i] = strconv.Itoa(n)
	}
	return strings.Join(text, ",")
}

// adapterNode returns the NUMA node of a network interface's device. Virtual interfaces
// have none, and machines with one node report -1.
func adapterNode(dir, device string) string {
	if device == "" || device != filepath.Base(device) {
		return ""
	}
	text, err := os.ReadFile(filepath.Join(dir, device, "device", "numa_node"))
	n, bad := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil || bad != nil || n < 0 {
		return ""
	}
	return strconv.Itoa(n)
}

func (e emitter) cpus(device string) {
	if c, ok := readCPUs(device); ok {
		e.gauge(cpusInfo, 1, c.list, c.numaNodes, c.adapter)
	}
}
