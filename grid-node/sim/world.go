package sim

import (
	"io"
	"math/rand/v2"

	"github.com/ordergrid/ordergrid/grid-node/replica"
	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// Units of simulated time, in nanoseconds.
const (
	microsecond = int64(1000)
	millisecond = 1000 * microsecond
	second      = 1000 * millisecond
)

const partition = wire.PartitionID(1)

// world is one partition and everything around it, at one moment of true time.
type world struct {
	seed    uint64
	profile *profile
	rng     *rand.Rand
	now     int64 // true time; no process sees it
	events  eventQueue
	steps   uint64
	phase   phase

	wanted  int // which functions the administrator wants
	pods    []*pod
	net     network
	api     apiServer
	sinks   []*sink // a sink for each of profile.readers
	clients []*client
	subs    []*subscriber

	followers []*follower
	fix       *fixWorld // nil: no FIX sessions
	askers    []*asker

	regionClients []*regionClient

	calendars   []*replica.Calendar // that the exchange has one after the other; nil: none
	regionFiles []*replica.Regions  // what the operator gives one after the other; nil: no operator does
	limitsFiles [][]byte            // what the operator gives one after the other, as limits.Profile writes them; nil: no operator does

	faults  faultCounts
	healing bool // no new faults, no chance events in the network

	minInSync int // the lowest of the record

	archives []archived       // the committed log, as far as an archive has it
	restored *replica.Restore // the recovery point, nil until the record has one

	surge    surge
	operator *operator // nil: no plan for the partition's place
	source   *world    // of a standby, see pair.go; nil for any other world
	standby  *world    // of a source
	check    checker
	history  history
	stats    Stats

	trace   io.Writer // nil: no trace is written
	stopped bool      // a checker found something
}

// phase of a run.
type phase uint8

const (
	phaseChaos phase = iota
	phaseHeal
	phaseOutage
	phaseResize
	phaseMove
	phaseRoll
	phaseSurge
	phaseRestore
	phaseDone
)

// event is something that will happen.
type event struct {
	at int64
	n  uint64 // in order of making, among equals
	do func()
}

// eventQueue is a heap by time.
type eventQueue struct {
	heap []event
	made uint64
}

func (q *eventQueue) less(i, j int) bool {
	a, b := &q.heap[i], &q.heap[j]
	return a.at < b.at || a.at == b.at && a.n < b.n
}

func (q *eventQueue) push(at int64, do func()) {
	q.made++
	q.heap = append(q.heap, event{at: at, n: q.made, do: do})
	for i := len(q.heap) - 1; i > 0; {
		parent := (i - 1) / 2
		if !q.less(i, parent) {
			break
		}
		q.heap[i], q.heap[parent] = q.heap[parent], q.heap[i]
		i = parent
	}
}

func (q *eventQueue) pop() event {
	top := q.heap[0]
	last := len(q.heap) - 1
	q.heap[0] = q.heap[last]
	q.heap[last] = event{}
	q.heap = q.heap[:last]
	for i := 0; ; {
		least := i
		for child := 2*i + 1; child <= 2*i+2 && child < last; child++ {
			if q.less(child, least) {
				least = child
			}
		}
		if least == i {
			return top
		}
		q.heap[i], q.heap[least] = q.heap[least], q.heap[i]
		i = least
	}
}

// after schedules an event d later.
func (w *world) after(d int64, do func()) { w.events.push(w.now+max(d, 0), do) }

// runUntil advances time; it ends early when a checker found something, or when done
// returns true.
func (w *world) runUntil(end int64, done func() bool) {
	for !w.stopped && len(w.events.heap) > 0 && w.events.heap[0].at <= end {
		e := w.events.pop()
		w.now = e.at
		e.do()
		if done != nil && done() {
			return
		}
	}
	if !w.stopped {
		w.now = max(w.now, end)
	}
}

// chance is true in n of 1000 cases.
func (w *world) chance(n int) bool { return n > 0 && w.rng.IntN(1000) < n }

// between is a time from a to b.
func (w *world) between(a, b int64) int64 { return a + w.rng.Int64N(max(b-a, 0)+1) }

// soon is a time from a to b, mostly nearer to a.
func (w *world) soon(a, b int64) int64 { return w.between(a, w.between(a, b)) }

// podAt finds the pod at a data address.
func (w *world) podAt(address string) *pod {
	for _, p := range w.pods {
		if p.address == address {
			return p
		}
	}
	return nil
}

// processOf finds the process with this boot id, if it lives.
func (w *world) processOf(boot uint64) *process {
	if p := w.incarnation(boot); p != nil && p.alive {
		return p
	}
	return nil
}

// incarnation finds the process with this boot id, dead or alive.
func (w *world) incarnation(boot uint64) *process {
	pod := int(boot>>16) - 0xa
	n := int(boot & 0xffff)
	if pod < 0 || pod >= len(w.pods) || n < 1 || n > len(w.pods[pod].all) {
		return nil
	}
	return w.pods[pod].all[n-1]
}

// up is every process that lives, in order of pods.
func (w *world) up(yield func(*process) bool) {
	for _, p := range w.pods {
		if p.proc != nil && !yield(p.proc) {
			return
		}
	}
}

// isMember reports whether the record names this process now.
func (w *world) isMember(p *process) bool { return w.api.rec.Has(p.self.Boot) }

var flushEvent = replica.Event{Kind: replica.EventFlush}
