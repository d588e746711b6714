package system

import (
	"fmt"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ordergrid/ordergrid/probe/host"
)

const (
	// maxStealPct is how much of the cores may be taken away.
	maxStealPct = 10
	// maxForeignPct is how much of them processes may use that are not of the scenario; as of an order scenario.
	maxForeignPct = 15
)

// machine is the state of the machine's counters, and the time of the processes that this one started and that have ended.
type machine struct {
	host.Sample
	children time.Duration
}

func look() (m machine, err error) {
	if m.Sample, err = host.Take(nil); err != nil {
		return m, err
	}
	var ru unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_CHILDREN, &ru); err != nil {
		return m, fmt.Errorf("getrusage: %w", err)
	}
	m.children = time.Duration(ru.Utime.Nano() + ru.Stime.Nano())
	return m, nil
}

// disturbed judges what else the machine did between two looks. A scenario ends all its processes, so that what is left of
// the busy time is of others.
func (r *Report) disturbed(before, after machine) {
	total := after.Total - before.Total
	if total <= 0 {
		return
	}
	pct := func(d time.Duration) float64 { return 100 * float64(d) / float64(total) }
	foreign := (after.Busy - before.Busy) - (after.Own - before.Own) - (after.children - before.children)
	switch steal := pct(after.Steal - before.Steal); {
	case steal > maxStealPct:
		r.Disturbed = fmt.Sprintf("the hypervisor took %.0f %% of the cores (allowed %d)", steal, maxStealPct)
	case pct(foreign) > maxForeignPct:
		r.Disturbed = fmt.Sprintf("other processes used %.0f %% of the cores (allowed %d)", pct(foreign), maxForeignPct)
	default:
		return
	}
	r.judge(Invalid, "%s", r.Disturbed)
}
