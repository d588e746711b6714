package live

import (
	"runtime"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ordergrid/ordergrid/probe/clock"
	"github.com/ordergrid/ordergrid/probe/load"
)

// Share is one probe's part of a step.
type Share struct {
	Probe    string
	Orders   []load.Order
	Schedule load.Schedule
	Progress *load.Progress
	Start    int64 // of the step, on the scale of clock.Now
	Begin    int64 // of the measured part: earlier orders are in no histogram
}

const (
	// readEvery is the polling interval for complete records.
	readEvery = 250 * time.Millisecond
	// lowest is the priority of threads that count and answer scrapes: they do not take a core from
	// threads that create or publish.
	lowest = 19
)

// lowPriority runs f on a thread that ends with the goroutine, and its priority
// with it.
func lowPriority(f func()) {
	runtime.LockOSThread()
	_ = unix.Setpriority(unix.PRIO_PROCESS, 0, lowest) // lowering is always allowed
	f()
}

// Follow counts the records of a step as they are completed. The returned function must be called
// when the step has ended; it counts the rest.
func (r *Run) Follow(number int, shares []Share) (end func()) {
	if r == nil {
		return func() {}
	}
	readers := make([]reader, 0, len(shares))
	r.m.mu.Lock()
	r.step = number
	for _, sh := range shares {
		for _, s := range r.probes {
			if s.name == sh.Probe {
				readers = append(readers, reader{Share: sh, run: r, to: s, base: s.created})
			}
		}
	}
	r.m.mu.Unlock()
	var stop atomic.Bool
	done := make(chan struct{})
	go lowPriority(func() {
		defer close(done)
		pause := unix.NsecToTimespec(int64(readEvery))
		for !stop.Load() {
			for i := range readers {
				readers[i].read(clock.Now())
			}
			_ = unix.Nanosleep(&pause, nil) // a signal only makes it shorter
		}
	})
	return func() {
		stop.Store(true)
		<-done
		for i := range readers {
			readers[i].finish()
		}
	}
}

// reader processes the records of one probe in their order.
type reader struct {
	Share
	run  *Run
	to   *series
	base uint64 // orders created in earlier steps
	next int    // first record that is not counted
}

// read counts records up to the first one that is not complete.
func (r *reader) read(now int64) {
	r.run.m.mu.Lock()
	defer r.run.m.mu.Unlock()
	// The records first: an order that is complete was created.
	for ; r.next < len(r.Orders) && r.Orders[r.next].Complete(); r.next++ {
		r.count(r.next)
	}
	r.to.created = r.base + uint64(r.Progress.Created())
	r.to.rate = r.rate(now - r.Start)
}

// rate intended in the second before an offset, in orders a second.
func (r *reader) rate(at int64) float64 {
	window := min(at, int64(time.Second))
	if window <= 0 {
		return 0
	}
	return float64(r.Schedule.Orders(at)-r.Schedule.Orders(at-window)) / time.Duration(window).Seconds()
}

// finish counts the rest of a step that has ended, including orders without a fate.
func (r *reader) finish() {
	r.run.m.mu.Lock()
	defer r.run.m.mu.Unlock()
	n := r.Progress.Created()
	for ; r.next < int(n); r.next++ {
		r.count(r.next)
	}
	r.to.created, r.to.rate = r.base+uint64(n), 0
}

// count is runner's tally of one record.
func (r *reader) count(i int) {
	o := &r.Orders[i]
	r.to.done++
	r.to.outcomes[o.Fate]++
	intended := r.Start + r.Schedule.Offset(int64(i))
	if intended < r.Begin {
		return
	}
	r.to.onLag.Observe(o.T1 - intended)
	if o.Fate != load.Acked {
		return
	}
	r.to.createToEnd.Observe(o.T3 - o.T1)
	r.to.sendToEnd.Observe(o.T3 - o.T2)
	r.to.intended.Observe(o.T3 - intended)
}
