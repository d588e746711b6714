// Package feed lets readers follow the committed log of a partition while it is written.
// Readers are named; each runs on its own goroutine at its own position. A reader is woken
// when an entry that it waits for is committed, and the log keeps the entries it holds.
//
// A log without waiting readers costs its writer one load per wake-up of the loop.
package feed

import (
	"context"
	"fmt"
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// Never is a sequence number no log reaches: a reader that awaits it is woken by Nudge
// alone.
const Never = math.MaxUint64

// Log is a partition's log; see store.Store.
type Log interface {
	Committed() uint64      // the last entry that is committed
	Read(seq uint64) []byte // nil unless it is committed and not freed
	// PinBy has the log keep entries from the one that lowest returns, 0: none. Its writer calls it before it frees some.
	PinBy(lowest func() uint64)
}

// Feed is the set of readers of one log.
type Feed struct {
	log  Log
	next atomic.Uint64 // no reader waits for an earlier entry
	// The lock is for changes of the set. A reader that holds, reads or waits takes none: the log's writer would
	// queue behind a thousand of them.
	mu      sync.Mutex
	names   map[string]bool
	closed  int                       // of readers
	readers atomic.Pointer[[]*Reader] // elements are not changed, behind them some may be added
}

// New returns the feed of a log, with no reader yet. The log's writer calls it.
func New(log Log) *Feed {
	f := &Feed{log: log, names: map[string]bool{}}
	f.next.Store(Never)
	f.readers.Store(&[]*Reader{})
	log.PinBy(f.lowest)
	return f
}

// Reader adds a reader. Its name must be unique in the feed.
func (f *Feed) Reader(name string) (*Reader, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.names[name] {
		return nil, fmt.Errorf("reader %q: the name is taken, allowed: a unique name for each reader of a log", name)
	}
	r := &Reader{f: f, name: name, wake: make(chan struct{}, 1)}
	r.awaits.Store(Never)
	all := append(*f.readers.Load(), r)
	f.readers.Store(&all)
	f.names[name] = true
	return r, nil
}

// lowest returns the first entry that a reader holds, 0: none.
func (f *Feed) lowest() (lowest uint64) {
	for _, r := range *f.readers.Load() {
		if at := r.held.Load(); at != 0 && (lowest == 0 || at < lowest) {
			lowest = at
		}
	}
	return lowest
}

// Wake wakes the readers whose awaited entry is committed. The log's writer calls it after
// it has advanced the commit. It allocates nothing and never blocks.
func (f *Feed) Wake() {
	next := f.next.Load()
	if next == Never {
		return
	}
	committed := f.log.Committed()
	if committed < next {
		return
	}
	// A reader that begins to wait now is seen below, or puts its entry here afterwards.
	f.next.Store(Never)
	for _, r := range *f.readers.Load() {
		seq := r.awaits.Load()
		if seq <= committed && r.awaits.CompareAndSwap(seq, Never) {
			r.Nudge()
		} else {
			f.await(seq)
		}
	}
}

// await has Wake look at its readers once seq is committed.
func (f *Feed) await(seq uint64) {
	for next := f.next.Load(); seq < next; next = f.next.Load() {
		if f.next.CompareAndSwap(next, seq) {
			return
		}
	}
}

// Reader reads a log. Its methods are for one goroutine, except Nudge, Name and Held.
type Reader struct {
	f      *Feed
	name   string
	awaits atomic.Uint64 // entry whose commit wakes it
	held   atomic.Uint64 // entries from here on stay in the log, 0: any may go
	wake   chan struct{}
	closed bool // f.mu
}

// Name is the reader's name.
func (r *Reader) Name() string { return r.name }

// Committed returns the last entry that may be read.
func (r *Reader) Committed() uint64 { return r.f.log.Committed() }

// Read returns a committed entry, nil if it is freed. The bytes belong to the log: they
// are valid while the reader holds the entry and must not be changed.
func (r *Reader) Read(seq uint64) []byte { return r.f.log.Read(seq) }

// Held returns the first entry that the log keeps for this reader, 0 for none.
func (r *Reader) Held() uint64 { return r.held.Load() }

// Hold keeps the entries from seq on in the log and releases those before; 0 releases all.
// seq is guaranteed to be present if the reader holds an earlier one, or if the log's
// writer calls.
func (r *Reader) Hold(seq uint64) { r.held.Store(seq) }

// Close removes the reader from its feed: it no longer holds entries back, and its name is free.
func (r *Reader) Close() {
	r.Hold(0)
	f := r.f
	f.mu.Lock()
	defer f.mu.Unlock()
	if r.closed {
		return
	}
	r.closed = true
	delete(f.names, r.name)
	all := *f.readers.Load()
	if f.closed++; 2*f.closed < len(all) { // those that are left cost Wake less than a list for each
		return
	}
	all = slices.DeleteFunc(slices.Clone(all), func(o *Reader) bool { return o.closed })
	f.readers.Store(&all)
	f.closed = 0
}

// Nudge ends the current Await, or the next one.
func (r *Reader) Nudge() {
	select {
	case r.wake <- struct{}{}:
	default: // already pending
	}
}

// Await returns once entry seq is committed, Nudge was called, limit has passed (0: no
// limit) or ctx has ended. It may return early: the caller checks again.
func (r *Reader) Await(ctx context.Context, seq uint64, limit time.Duration) {
	r.awaits.Store(seq)
	defer r.awaits.Store(Never)
	r.f.await(seq)
	if r.Committed() >= seq { // committed before awaits was visible
		return
	}
	var due <-chan time.Time
	if limit > 0 {
		due = time.After(limit)
	}
	select {
	case <-r.wake:
	case <-due:
	case <-ctx.Done():
	}
}
