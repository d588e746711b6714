// Package host describes the machine of a probe (Manifest) and its load (Sample), so that a figure
// measured on a disturbed machine is recognized. State and Limits report whether it was quiet enough
// for a figure to count.
package host

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Sample is the state of the machine's counters at one moment.
type Sample struct {
	At time.Time
	// CPU time of all cores since boot. Busy is what is left of Total without idle time and Steal: the kernel measures
	// those, where it finds out by a look at each tick which core is busy, and a load that wakes up as often as it ticks is
	// always or never seen.
	Busy, Steal, Total time.Duration
	// Pressure is the time in which some task waited for a core; negative without kernel support.
	Pressure time.Duration
	// Own is the CPU time of this process, Others that of the given processes.
	Own, Others time.Duration
	Load1       float64 // load average over one minute
	Collections int64   // of this process's garbage collector
}

// userHz is the unit of /proc/stat; it is 100 on every Linux Go runs on.
const userHz = 100

// Take reads the counters. others are processes of the system under test on this machine; one that
// has ended counts as zero.
func Take(others []int) (Sample, error) {
	s := Sample{At: time.Now(), Pressure: -1}
	var up unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &up); err != nil {
		return s, fmt.Errorf("clock_gettime: %w", err)
	}
	stat, err := os.ReadFile("/proc/stat")
	if err != nil {
		return s, err
	}
	if err := s.cpu(stat, time.Duration(up.Nano())); err != nil {
		return s, fmt.Errorf("/proc/stat: %w", err)
	}
	if b, err := os.ReadFile("/proc/pressure/cpu"); err == nil {
		s.Pressure = pressure(b)
	}
	if b, err := os.ReadFile("/proc/loadavg"); err == nil {
		s.Load1 = loadavg(b)
	}
	var ru unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &ru); err != nil {
		return s, fmt.Errorf("getrusage: %w", err)
	}
	s.Own = time.Duration(ru.Utime.Nano() + ru.Stime.Nano())
	for _, pid := range others {
		if b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid)); err == nil {
			s.Others += processTime(b)
		}
	}
	var gc debug.GCStats
	debug.ReadGCStats(&gc)
	s.Collections = gc.NumGC
	return s, nil
}

// cpu reads /proc/stat of a machine that is up for a time. Its first line has user nice system idle iowait irq softirq
// steal guest guest_nice of all cores; each core has a line of its own.
func (s *Sample) cpu(b []byte, up time.Duration) error {
	line, rest, _ := bytes.Cut(b, []byte("\n"))
	fields := strings.Fields(string(line))
	if len(fields) < 9 || fields[0] != "cpu" {
		return fmt.Errorf("first line is %.60q", line)
	}
	cores := 0
	for bytes.HasPrefix(rest, []byte("cpu")) {
		cores++
		_, rest, _ = bytes.Cut(rest, []byte("\n"))
	}
	if cores == 0 {
		return fmt.Errorf("no line of a core behind %.60q", line)
	}
	var ticks [8]time.Duration
	for i := range ticks {
		n, err := strconv.ParseInt(fields[i+1], 10, 64)
		if err != nil {
			return fmt.Errorf("field %d: %w", i+1, err)
		}
		ticks[i] = time.Duration(n) * (time.Second / userHz)
	}
	s.Steal = ticks[7]
	s.Total = time.Duration(cores) * up
	s.Busy = s.Total - ticks[3] - ticks[4] - s.Steal
	return nil
}

// pressure reads "some avg10=0.00 avg60=0.00 avg300=0.00 total=123" (µs).
func pressure(b []byte) time.Duration {
	sc := bufio.NewScanner(bytes.NewReader(b))
	for sc.Scan() {
		rest, ok := strings.CutPrefix(sc.Text(), "some ")
		if !ok {
			continue
		}
		if _, total, ok := strings.Cut(rest, "total="); ok {
			if n, err := strconv.ParseInt(total, 10, 64); err == nil && n >= 0 {
				return time.Duration(n) * time.Microsecond
			}
		}
	}
	return -1
}

func loadavg(b []byte) float64 {
	first, _, _ := strings.Cut(string(b), " ")
	v, err := strconv.ParseFloat(first, 64)
	if err != nil {
		return 0
	}
	return v
}

// processTime reads utime and stime of /proc/PID/stat. The name in parentheses
// may hold anything, so fields are counted from its end.
func processTime(b []byte) time.Duration {
	i := bytes.LastIndexByte(b, ')')
	if i < 0 {
		return 0
	}
	fields := strings.Fields(string(b[i+1:]))
	if len(fields) < 13 {
		return 0
	}
	var sum time.Duration
	for _, f := range fields[11:13] { // fields 14 and 15 of the line
		n, err := strconv.ParseInt(f, 10, 64)
		if err != nil {
			return 0
		}
		sum += time.Duration(n) * (time.Second / userHz)
	}
	return sum
}

// Use is the difference of two samples, in per cent of all cores; negative where unknown.
type Use struct {
	Elapsed               time.Duration
	Cores                 int
	Busy, Steal, Pressure float64
	Own, Foreign          float64
	LoadBefore, LoadAfter float64
	Collections           int64
}

// Between compares two samples. The processes of the system under test must be in both for Foreign
// to be meaningful: known reports that.
func Between(a, b Sample, known bool) Use {
	u := Use{Elapsed: b.At.Sub(a.At), Cores: runtime.NumCPU(), Pressure: -1, Foreign: -1,
		LoadBefore: a.Load1, LoadAfter: b.Load1, Collections: b.Collections - a.Collections}
	total := b.Total - a.Total
	if total <= 0 || u.Elapsed <= 0 {
		return u
	}
	share := func(d time.Duration) float64 { return max(0, 100*float64(d)/float64(total)) }
	u.Busy, u.Steal = share(b.Busy-a.Busy), share(b.Steal-a.Steal)
	u.Own = share(b.Own - a.Own)
	if a.Pressure >= 0 && b.Pressure >= 0 {
		u.Pressure = 100 * float64(b.Pressure-a.Pressure) / float64(u.Elapsed)
	}
	if known {
		u.Foreign = share((b.Busy - a.Busy) - (b.Own - a.Own) - (b.Others - a.Others))
	}
	return u
}

// ThreadTime is the processor time of the calling thread; 0: unknown.
func ThreadTime() time.Duration {
	var ru unix.Rusage
	if unix.Getrusage(unix.RUSAGE_THREAD, &ru) != nil {
		return 0
	}
	return time.Duration(ru.Utime.Nano() + ru.Stime.Nano())
}
