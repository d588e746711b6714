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
	Pin(seq uint64)         // keep entries from seq on, 0: none
}

// Feed is the set of readers of one log.
type Feed struct {
	log     Log
	next    atomic.Uint64             // no reader waits for an earlier entry
	mu      sync.Mutex                // for changes
	readers atomic.Pointer[[]*Reader] // replaced as a whole
}

// New returns the feed of a log, with no reader yet.
func New(log Log) *Feed {
	f := &Feed{log: log}
	f.next.Store(Never)
	f.readers.Store(&[]*Reader{})
	return f
}

// Reader adds a reader. Its name must be unique in the feed.
func (f *Feed) Reader(name string) (*Reader, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	all := *f.readers.Load()
	if slices.ContainsFunc(all, func(r *Reader) bool { return r.name == name }) {
		return nil, fmt.Errorf("reader %q: the name is taken, allowed: a unique name for each reader of a log", name)
	}
	r := &Reader{f: f, name: name, wake: make(chan struct{}, 1)}
	r.awaits.Store(Never)
	all = append(slices.Clone(all), r)
	f.readers.Store(&all)
	return r, nil
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
func (r *Reader) Hold(seq uint64) {
	r.f.mu.Lock()
	defer r.f.mu.Unlock()
	r.held.Store(seq)
	lowest := uint64(0)
	for _, o := range *r.f.readers.Load() {
		if at := o.held.Load(); at != 0 && (lowest == 0 || at < lowest) {
			lowest = at
		}
	}
	r.f.log.Pin(lowest)
}

// Close removes the reader from its feed: it no longer holds entries back, and its name is free.
func (r *Reader) Close() {
	r.Hold(0)
	r.f.mu.Lock()
	defer r.f.mu.Unlock()
	all := slices.DeleteFunc(slices.Clone(*r.f.readers.Load()), func(o *Reader) bool { return o == r })
	r.f.readers.Store(&all)
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
