package host

import (
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/ordergrid/ordergrid/internal/cgroup"
	"github.com/ordergrid/ordergrid/internal/version"
	"github.com/ordergrid/ordergrid/probe/report"
)

// Manifest describes this machine and this program. The caller adds the fields of the run.
func Manifest() report.Manifest {
	m := report.Manifest{
		OS: runtime.GOOS, Cores: runtime.NumCPU(), GoVersion: runtime.Version(), Version: version.String(),
		GoMaxProcs: runtime.GOMAXPROCS(0), Governor: "none", Settings: map[string]string{},
	}
	m.Host, _ = os.Hostname()
	var u unix.Utsname
	if unix.Uname(&u) == nil {
		m.Kernel = unix.ByteSliceToString(u.Release[:])
	}
	m.CPU, m.Virtual = cpuinfo(readFile("/proc/cpuinfo"))
	m.MemoryMiB = memory(readFile("/proc/meminfo"), "MemTotal:")
	if g := strings.TrimSpace(readFile("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor")); g != "" {
		m.Governor = g
	}
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, s := range info.Settings {
			switch s.Key {
			case "vcs.revision":
				m.Revision = s.Value
			case "vcs.modified":
				m.Settings["build.modified"] = s.Value
			}
		}
	}
	for name, path := range map[string]string{
		"sched_autogroup_enabled": "/proc/sys/kernel/sched_autogroup_enabled",
		"transparent_hugepage":    "/sys/kernel/mm/transparent_hugepage/enabled",
		"clocksource":             "/sys/devices/system/clocksource/clocksource0/current_clocksource",
		"tcp_congestion_control":  "/proc/sys/net/ipv4/tcp_congestion_control",
	} {
		if v := strings.TrimSpace(readFile(path)); v != "" {
			m.Settings[name] = v
		}
	}
	return m
}

func readFile(path string) string {
	b, err := os.ReadFile(path)
	if err != nil {
		return "" // not every machine has every file; a missing one is left out
	}
	return string(b)
}

func cpuinfo(s string) (model string, virtual bool) {
	model = "unknown"
	for line := range strings.Lines(s) {
		key, value, ok := strings.Cut(line, ":")
		if !ok {
			continue
		}
		switch strings.TrimSpace(key) {
		case "model name", "Model":
			model = strings.TrimSpace(value)
		case "flags":
			for f := range strings.FieldsSeq(value) {
				virtual = virtual || f == "hypervisor"
			}
			return model, virtual
		}
	}
	return model, virtual
}

// AvailableMiB is the memory that processes may still take on this machine, and in its container at the most, 0 if it is
// not known.
func AvailableMiB() int64 {
	available := memory(readFile("/proc/meminfo"), "MemAvailable:")
	if limit, _, ok := cgroup.MemoryLimit(); ok && available > 0 {
		available = min(available, limit>>20)
	}
	return available
}

func memory(s, key string) int64 {
	for line := range strings.Lines(s) {
		if rest, ok := strings.CutPrefix(line, key); ok {
			if f := strings.Fields(rest); len(f) > 0 {
				kib, err := strconv.ParseInt(f[0], 10, 64)
				if err == nil {
					return kib / 1024
				}
			}
		}
	}
	return 0
}
