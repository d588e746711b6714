package node

import (
	"log/slog"
	"runtime/debug"
	"time"

	"github.com/ordergrid/ordergrid/grid-node/metrics"
)

// watchdog detects at each tick of a loop whether the loop was held up since the last one,
// and the cause. It belongs to the loop.
type watchdog struct {
	name   string // of the loop, for the log: "data", "liveness"
	log    *slog.Logger
	after  time.Duration // between two ticks, from which on it is a stall
	pinned bool          // the loop stays on one thread
	meter  threadMeter
	tickAt int64 // Mono of the last tick
	stats  metrics.Thread
}

// stallShare of the lease is tolerated: beyond it, a stalled member may be dropped soon,
// or a client's request takes visibly longer.
const stallShare = 2

func newWatchdog(name string, cfg *Config) *watchdog {
	return &watchdog{name: name, log: cfg.Log, after: cfg.Lease / stallShare, pinned: cfg.Transport.Pinned()}
}

// tick returns the time since the last tick, 0 at the first.
func (w *watchdog) tick(now int64) (interval int64) {
	before := w.stats.Usage
	if w.pinned {
		w.stats.Usage = w.meter.read()
	}
	if w.tickAt != 0 {
		interval = now - w.tickAt
	}
	w.tickAt = now
	if interval > int64(w.after) {
		w.stats.Stalls++
		w.stats.Stalled += interval
		go w.report(interval, w.stats.Usage.Since(before))
	}
	return interval
}

// report runs beside the loop: writing a log may block.
func (w *watchdog) report(interval int64, u metrics.ThreadUsage) {
	ms := func(ns int64) int64 { return ns / int64(time.Millisecond) }
	args := []any{"loop", w.name, "ms", ms(interval)}
	if u.Known {
		args = append(args, "likely", cause(interval, u), "userMs", ms(u.User), "systemMs", ms(u.System), "waitedForCoreMs", ms(u.Waited),
			"minorFaults", u.MinorFaults, "majorFaults", u.MajorFaults, "voluntarySwitches", u.Voluntary, "involuntarySwitches", u.Involuntary)
	}
	var gc debug.GCStats
	debug.ReadGCStats(&gc)
	if len(gc.Pause) > 0 {
		args = append(args, "lastCollectionAgoMs", time.Since(gc.LastGC).Milliseconds(), "lastPauseUs", gc.Pause[0].Microseconds())
	}
	w.log.Warn("a loop was held up", args...)
}

// cause names where most of the time went.
func cause(interval int64, u metrics.ThreadUsage) string {
	rest := interval - u.User - u.System - u.Waited
	switch most := max(u.User, u.System, u.Waited, rest); {
	case most == u.Waited:
		return "the thread was ready and had no core: other work on the machine, or the CPU quota of the pod"
	case most == u.System && u.MajorFaults > 0:
		return "the kernel worked for the thread, reading pages back from a disk among other things"
	case most == u.System:
		return "the kernel worked for the thread: page faults, huge pages, network"
	case most == u.User:
		return "the loop itself had that much to do"
	}
	return "the thread slept in the kernel, waiting for memory or a lock, or the whole machine or process was stopped"
}
