package metrics

import (
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/ordergrid/ordergrid/internal/cgroup"
)

// host exports what Go's runtime and the kernel did to the process and its control group:
// causes of latency spikes outside of the program. The scrape reads it, never a loop.
type host struct {
	group func() *cgroup.Group // nil: there is none
	read  func(*cgroup.Group) cgroup.Stats
	usage func() (processUsage, bool)
}

// processUsage is what the kernel counts for the whole process.
type processUsage struct {
	minorFaults, majorFaults uint64
	voluntary, involuntary   uint64
}

func newHost() *host {
	return &host{usage: readUsage, read: (*cgroup.Group).Read, group: sync.OnceValue(func() *cgroup.Group {
		g, err := cgroup.Self()
		if err != nil {
			return nil
		}
		return g
	})}
}

var (
	pageFaults = desc("page_faults_total", "Page faults of the process, by kind: minor (the page was in memory or had to be zeroed), major (it was read from a disk).", "kind")
	switches   = desc("context_switches_total", "Context switches of the process, by kind: voluntary (a thread slept), involuntary (another took the core).", "kind")

	cgroupCPU       = desc("cgroup_cpu_seconds_total", "CPU time of all processes of the control group: beyond the grid node's own, that of other processes in its container.")
	cgroupPeriods   = desc("cgroup_cpu_periods_total", "Accounting periods of the CPU quota of the control group.")
	cgroupThrottles = desc("cgroup_cpu_throttled_periods_total", "Accounting periods in which the control group was stopped for having used its CPU quota.")
	cgroupThrottled = desc("cgroup_cpu_throttled_seconds_total", "Time for which the control group was stopped for having used its CPU quota, all cores together.")
	cgroupAnonymous = desc("cgroup_memory_anonymous_bytes", "Memory of the control group without page cache.")
	cgroupMemory    = desc("cgroup_memory_used_bytes", "Memory of the control group, page cache included.")
	cgroupLimit     = desc("cgroup_memory_limit_bytes", "Memory limit of the control group; absent without one.")
	cgroupEvents    = desc("cgroup_memory_events_total", "What happened at the memory limits of the control group: low, high, max, oom, oom_kill.", "event")
	cgroupWaits     = desc("cgroup_pressure_seconds_total", "Time in which some or all tasks of the control group were stalled for want of a resource: cpu, memory, io.", "resource", "kind")
)

var hostDescs = []*prometheus.Desc{pageFaults, switches, cgroupCPU, cgroupPeriods, cgroupThrottles, cgroupThrottled, cgroupMemory, cgroupAnonymous, cgroupLimit, cgroupEvents, cgroupWaits, ifaceBytes, ifacePackets}

// Describe implements prometheus.Collector.
func (h *host) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range append(hostDescs, pauseDescs...) {
		ch <- d
	}
}

// Collect implements prometheus.Collector.
func (h *host) Collect(ch chan<- prometheus.Metric) {
	pauses(ch)
	e := emitter(ch)
	if u, ok := h.usage(); ok {
		e.counter(pageFaults, u.minorFaults, "minor")
		e.counter(pageFaults, u.majorFaults, "major")
		e.counter(switches, u.voluntary, "voluntary")
		e.counter(switches, u.involuntary, "involuntary")
	}
	e.interfaces(readInterfaces())
	if g := h.group(); g != nil {
		e.cgroup(h.read(g))
	}
}

func (e emitter) cgroup(s cgroup.Stats) {
	if s.CPUTime > 0 {
		e.seconds(cgroupCPU, int64(s.CPUTime))
	}
	if c := s.CPU; c != nil {
		e.counter(cgroupPeriods, c.Periods)
		e.counter(cgroupThrottles, c.Throttled)
		e.seconds(cgroupThrottled, int64(c.ThrottledTime))
	}
	if m := s.Memory; m != nil {
		e.gauge(cgroupMemory, float64(m.Used))
		if m.Anonymous > 0 {
			e.gauge(cgroupAnonymous, float64(m.Anonymous))
		}
		if m.Limit > 0 {
			e.gauge(cgroupLimit, float64(m.Limit))
		}
		for event, n := range m.Events {
			e.counter(cgroupEvents, n, event)
		}
	}
	for _, w := range s.Waits {
		e.seconds(cgroupWaits, int64(w.Time), w.Resource, w.Kind)
	}
}
