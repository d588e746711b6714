// Package inspect reads the committed log of a replica again, behind the loop, and checks
// what every reader relies on: each entry is whole, and follows the one before by its
// number and by its hash. What it finds is memory that went bad, or a bug.
package inspect

import (
	"context"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/ordergrid/ordergrid/grid-node/feed"
	"github.com/ordergrid/ordergrid/grid-node/order"
)

const (
	// Every is how long new entries gather before they are read: a log at rest is left
	// alone, and a busy one costs a wake-up a second.
	Every = time.Second
	// slice is how many entries are held in the log and looked at between pauses, in which
	// nothing is held. Looking takes one part in share of a processor: a burst would cost
	// orders theirs where none is free, and what lies in memory can wait. More than that
	// can read is read later, or freed unread.
	slice    = 512
	share    = 50
	maxPause = 20 * time.Millisecond // a slice in which the process stood still took long
)

// Options of an Inspector.
type Options struct {
	Name   string       // of the partition, for messages
	Log    *feed.Reader // of the inspector alone
	Logger *slog.Logger
	// Hold has Log hold the first entry from seq on that is not freed, and returns it.
	Hold func(seq uint64) (uint64, error)
	// Turns is shared by the inspectors of a process: one at a time looks, or pauses behind it.
	Turns *Turns
}

// Turns bounds what all inspectors of a process take together to what one does.
type Turns struct{ c chan struct{} }

// NewTurns returns the turns of one process.
func NewTurns() *Turns { return &Turns{c: make(chan struct{}, 1)} }

// Inspector reads one log. Seq and Broken are for any goroutine.
type Inspector struct {
	o      Options
	next   uint64 // entry to look at
	hash   uint64 // of the one before, if known
	known  bool
	seq    atomic.Uint64
	broken atomic.Uint64
}

// New returns an inspector that begins with the first entry held.
func New(o Options) *Inspector { return &Inspector{o: o, next: 1} }

// Seq is the last entry that was looked at.
func (i *Inspector) Seq() uint64 { return i.seq.Load() }

// Broken is how many entries could not be right.
func (i *Inspector) Broken() uint64 { return i.broken.Load() }

// Run inspects until ctx ends.
func (i *Inspector) Run(ctx context.Context) {
	defer i.o.Log.Hold(0)
	for ctx.Err() == nil {
		i.o.Log.Await(ctx, i.next, 0)
		select {
		case <-ctx.Done():
			return
		case <-time.After(Every):
		}
		i.pass(ctx)
	}
}

// pass inspects what is committed by now, and leaves what comes meanwhile for the next one:
// each slice is a wake-up of the loop, and a log that grows is never read to its end.
func (i *Inspector) pass(ctx context.Context) {
	for last := i.o.Log.Committed(); i.next <= last; {
		select {
		case i.o.Turns.c <- struct{}{}:
		case <-ctx.Done():
			return
		}
		more := i.turn(ctx, last)
		<-i.o.Turns.c
		if !more {
			return
		}
	}
}

// turn inspects a slice and pauses behind it; false: there is no more up to last, or not now.
func (i *Inspector) turn(ctx context.Context, last uint64) bool {
	began := time.Now()
	if err := i.look(); err != nil || i.next > last {
		return false // of an error: the loop is busy, or it ends
	}
	select {
	case <-ctx.Done():
		return false
	case <-time.After(pauseAfter(time.Since(began))):
		return true
	}
}

// look inspects a slice. What was freed meanwhile is passed over.
func (i *Inspector) look() error {
	first, err := i.o.Hold(i.next)
	if err != nil {
		return err
	}
	defer i.o.Log.Hold(0)
	if first != i.next {
		i.next, i.known = first, false
	}
	for last := min(i.o.Log.Committed(), i.next+slice-1); i.next <= last; i.next++ {
		entry := i.o.Log.Read(i.next)
		if why := i.wrong(entry); why != "" {
			i.broken.Add(1)
			i.o.Logger.Error("the log in memory is broken: delete this pod once the other copies are in sync, and look at the machine's memory",
				"partition", i.o.Name, "seq", i.next, "reason", why)
		}
		i.hash, i.known = order.Hash(entry), true
		i.seq.Store(i.next)
	}
	return nil
}

// pauseAfter is the pause behind a slice that took so long.
func pauseAfter(took time.Duration) time.Duration {
	return min((share-1)*min(took, maxPause), maxPause)
}

// wrong says why an entry cannot be the one at next, "" if it may be.
func (i *Inspector) wrong(entry []byte) string {
	var e order.Entry
	switch _, err := order.DecodeEntry(entry, &e); {
	case err != nil:
		return err.Error()
	case e.Seq != i.next:
		return fmt.Sprintf("entry %d stands at place %d", e.Seq, i.next)
	case i.known && e.PrevHash != i.hash:
		return fmt.Sprintf("it follows an entry of hash %016x, the one before has hash %016x", e.PrevHash, i.hash)
	}
	return ""
}
