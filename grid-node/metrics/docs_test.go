package metrics

import (
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/ordergrid/ordergrid/internal/cgroup"
	"github.com/ordergrid/ordergrid/internal/golden"
)

const page = "../../docs/metrics.md"

// everything exports all metrics: also those that a node without a control group, or
// without a thread of its own, leaves out.
func everything() *Registry {
	s := full()
	s.Node.Drain("left")
	for i := range s.Threads {
		s.Threads[i].Usage.Known = true
	}
	r := registry(s, nil)
	r.Sink("file")
	r.host.usage = func() (processUsage, bool) { return processUsage{1, 2, 3, 4}, true }
	r.host.group = func() *cgroup.Group { return &cgroup.Group{} }
	r.host.read = func(*cgroup.Group) cgroup.Stats {
		return cgroup.Stats{CPUTime: 1, CPU: &cgroup.CPU{Periods: 10, Throttled: 1, ThrottledTime: 5e6}, Memory: &cgroup.Memory{Used: 1, Anonymous: 1, Limit: 2, Events: map[string]uint64{"oom": 1}},
			Waits: []cgroup.Wait{{Resource: "cpu", Kind: "some", Time: 1}}}
	}
	return r
}

func ours(name string) bool { return strings.HasPrefix(name, prefix) }

// Every metric of a node is on docs/metrics.md as it is exported, and no other.
func TestEveryMetricIsOnThePage(t *testing.T) {
	r := everything()
	golden.Metrics(t, page, r.Gatherer(), ours)
	families, err := r.Gatherer().Gather()
	if err != nil {
		t.Fatal(err)
	}
	gathered := map[string]bool{}
	for _, f := range families {
		gathered[f.GetName()] = true
	}
	ch := make(chan *prometheus.Desc, 1000)
	r.reg.Describe(ch)
	close(ch)
	for d := range ch {
		_, name, _ := strings.Cut(d.String(), `"`)
		if name, _, _ = strings.Cut(name, `"`); ours(name) && !gathered[name] {
			t.Errorf("%s is described and never sent, or this test does not make it appear", name)
		}
	}
	// The metrics of Go's runtime and the process that the page lists must exist.
	for _, name := range []string{"go_sched_pauses_total_gc_seconds", "go_sched_pauses_total_other_seconds", "go_sched_pauses_stopping_gc_seconds",
		"go_sched_latencies_seconds", "go_gc_heap_live_bytes", "go_gc_cycles_automatic_gc_cycles_total", "go_memstats_heap_alloc_bytes",
		"go_memstats_mallocs_total", "process_cpu_seconds_total", "process_resident_memory_bytes"} {
		if !gathered[name] {
			t.Errorf("%s is not exported", name)
		}
		if !golden.HasMetric(t, page, name) {
			t.Errorf("%s is not on docs/metrics.md", name)
		}
	}
}

func TestEverythingPassesPromlint(t *testing.T) { lint(t, everything()) }
