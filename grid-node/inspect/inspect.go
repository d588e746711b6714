// Package inspect rereads the committed log of a replica in the background and checks what
// every reader relies on: each entry is whole and follows its predecessor by number and by
// hash. A finding is corrupted memory or a bug.
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
	// Every is how long new entries accumulate before they are read: an idle log costs
	// nothing, and a busy one a wake-up a second.
	Every = time.Second
	// slice is how many entries are held in the log and checked between pauses, in which
	// none is held. Checking takes 1/share of a processor: a burst would delay orders
	// where no processor is free, and entries in memory can wait. If more is written than
	// that, it is read later, or freed unread.
	slice    = 512
	share    = 50
	maxPause = 20 * time.Millisecond // a slice in which the process was suspended took long
)

// Options of an Inspector.
type Options struct {
	Name   string       // of the partition, for messages
	Log    *feed.Reader // of the inspector alone
	Logger *slog.Logger
	// Hold has Log hold the first entry from seq on that is not freed, and returns it.
	Hold func(seq uint64) (uint64, error)
	// Turns is shared by the inspectors of a process: only one at a time checks or pauses.
	Turns *Turns
}

// Turns limits all inspectors of a process together to the load of one.
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

// New returns an inspector that starts at the first entry held.
func New(o Options) *Inspector { return &Inspector{o: o, next: 1} }

// Seq returns the last entry checked.
func (i *Inspector) Seq() uint64 { return i.seq.Load() }

// Broken returns how many entries failed the checks.
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

// pass inspects what is committed by now and leaves later entries for the next pass: each
// slice is a wake-up of the loop, and reading a growing log would never end.
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

// turn inspects a slice and pauses after it; false: there is no more up to last, or not
// now.
func (i *Inspector) turn(ctx context.Context, last uint64) bool {
	began := time.Now()
	if err := i.look(); err != nil || i.next > last {
		return false // error: the loop is busy or stopping
	}
	select {
	case <-ctx.Done():
		return false
	case <-time.After(pauseAfter(time.Since(began))):
		return true
	}
}

// look inspects a slice. Entries freed in between are skipped.
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

// pauseAfter returns the pause after a slice that took so long.
func pauseAfter(took time.Duration) time.Duration {
	return min((share-1)*min(took, maxPause), maxPause)
}

// wrong returns why an entry cannot be the one at next, "" if it may be.
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
