package cgroup

import (
	"bytes"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// Stats of a group. Counters start at the creation of the group.
type Stats struct {
	// CPUTime of all tasks of the group, including ended ones; 0: not known.
	CPUTime time.Duration
	CPU     *CPU    // its quota; nil: there is none, or not known
	Memory  *Memory // nil: not known
	// Waits is the time in which some or all tasks of the group were stalled for lack of a resource
	// (pressure stall information); empty without kernel support.
	Waits []Wait
}

// CPU quota, as enforced by the kernel.
type CPU struct {
	Periods, Throttled uint64        // accounting periods, and those in which the group was throttled
	ThrottledTime      time.Duration // total throttled time, all cores together
}

// Memory of a group in bytes.
type Memory struct {
	Used  uint64
	Limit uint64 // of the group itself, 0: none; MemoryLimit looks at those above it too
	// Events count what happened at the limits; the keys are those of memory.events:
	// low, high, max, oom, oom_kill. Version 1 knows max and oom_kill.
	Events map[string]uint64
	// Anonymous is the part of Used that is no page cache; 0: not known.
	Anonymous uint64
}

// Wait for one resource.
type Wait struct {
	Resource string        // cpu, memory, io
	Kind     string        // some: at least one task was stalled; full: all of them
	Time     time.Duration // since the creation of the group
}

// Read reads the present statistics; unreadable ones are left out.
func (g *Group) Read() Stats {
	var s Stats
	s.CPUTime = g.readCPUTime()
	s.CPU = g.readCPU()
	s.Memory = g.readMemory()
	if g.v2 != "" {
		for _, resource := range []string{"cpu", "memory", "io"} {
			b, err := os.ReadFile(filepath.Join(g.v2, resource+".pressure"))
			if err == nil {
				s.Waits = append(s.Waits, waits(resource, b)...)
			}
		}
	}
	return s
}

func (g *Group) readCPUTime() time.Duration {
	if m := pairs(g.v2, "cpu.stat"); m["usage_usec"] != nil {
		return duration(*m["usage_usec"], time.Microsecond)
	}
	n, _ := number(g.cpuacct, "cpuacct.usage")
	return duration(n, time.Nanosecond)
}

func (g *Group) readCPU() *CPU {
	if m := pairs(g.v2, "cpu.stat"); m["nr_periods"] != nil {
		return &CPU{Periods: *m["nr_periods"], Throttled: value(m, "nr_throttled"), ThrottledTime: duration(value(m, "throttled_usec"), time.Microsecond)}
	}
	if m := pairs(g.cpu, "cpu.stat"); m["nr_periods"] != nil {
		return &CPU{Periods: *m["nr_periods"], Throttled: value(m, "nr_throttled"), ThrottledTime: duration(value(m, "throttled_time"), time.Nanosecond)}
	}
	return nil
}

func (g *Group) readMemory() *Memory {
	if used, ok := number(g.v2, "memory.current"); ok {
		m := &Memory{Used: used, Events: map[string]uint64{}}
		m.limit(g.v2, "memory.max")
		m.Anonymous = value(pairs(g.v2, "memory.stat"), "anon")
		for name, n := range pairs(g.v2, "memory.events") {
			m.Events[name] = *n
		}
		return m
	}
	if used, ok := number(g.memory, "memory.usage_in_bytes"); ok {
		m := &Memory{Used: used, Events: map[string]uint64{}}
		m.limit(g.memory, "memory.limit_in_bytes")
		m.Anonymous = value(pairs(g.memory, "memory.stat"), "total_rss")
		if n, ok := number(g.memory, "memory.failcnt"); ok {
			m.Events["max"] = n
		}
		if n := pairs(g.memory, "memory.oom_control")["oom_kill"]; n != nil {
			m.Events["oom_kill"] = *n
		}
		return m
	}
	return nil
}

func (m *Memory) limit(dir, file string) {
	if n, ok := readLimit(filepath.Join(dir, file)); ok {
		m.Limit = uint64(n)
	}
}

// pairs reads a file of lines "name number"; others are skipped. nil when there is no such file.
func pairs(dir, file string) map[string]*uint64 {
	if dir == "" {
		return nil
	}
	b, err := os.ReadFile(filepath.Join(dir, file))
	if err != nil {
		return nil
	}
	m := map[string]*uint64{}
	for line := range bytes.Lines(b) {
		name, rest, _ := strings.Cut(strings.TrimSpace(string(line)), " ")
		if n, err := strconv.ParseUint(rest, 10, 64); err == nil {
			m[name] = &n
		}
	}
	return m
}

func value(m map[string]*uint64, name string) uint64 {
	if n := m[name]; n != nil {
		return *n
	}
	return 0
}

// number reads a file that holds one number.
func number(dir, file string) (uint64, bool) {
	if dir == "" {
		return 0, false
	}
	b, err := os.ReadFile(filepath.Join(dir, file))
	if err != nil {
		return 0, false
	}
	n, err := strconv.ParseUint(strings.TrimSpace(string(b)), 10, 64)
	return n, err == nil
}

// waits reads "some avg10=0.00 avg60=0.00 avg300=0.00 total=123" (µs), and "full".
func waits(resource string, b []byte) (out []Wait) {
	for line := range bytes.Lines(b) {
		fields := strings.Fields(string(line))
		if len(fields) < 2 || (fields[0] != "some" && fields[0] != "full") {
			continue
		}
		total, ok := strings.CutPrefix(fields[len(fields)-1], "total=")
		if !ok {
			continue
		}
		if n, err := strconv.ParseUint(total, 10, 64); err == nil {
			out = append(out, Wait{Resource: resource, Kind: fields[0], Time: duration(n, time.Microsecond)})
		}
	}
	return out
}

// duration of n units; larger values are the longest Duration.
func duration(n uint64, unit time.Duration) time.Duration {
	if n > uint64(math.MaxInt64/unit) {
		return math.MaxInt64
	}
	return time.Duration(n) * unit
}
