package view

import (
	"fmt"
)

// Source is the log that a Follower applies; see store.Store.
type Source interface {
	Log
	Get(seq uint64) []byte    // also of an entry that is not committed
	HashAt(seq uint64) uint64 // 0 if it is not known
	Committed() uint64        // the last entry that is committed
	Base() (seq, hash uint64) // the last one that is freed
	Last() (seq, hash uint64) // the last one that is stored
}

// Follower keeps a view at the end of the committed log, a bounded number of entries at a time. It is for the
// goroutine that writes the log. The node and the simulator run it.
type Follower struct {
	View *View
	log  Source
}

// dropWork rows dropped count as one entry applied.
const dropWork = 8

// Follow makes a view of what the log holds. Options.Log and Base are the log's.
func Follow(log Source, o Options) (*Follower, error) {
	o.Log = log
	o.Base, _ = log.Base()
	v, err := New(o)
	if err != nil {
		return nil, err
	}
	return &Follower{View: v, log: log}, nil
}

// Drop drops rows up to entry mayFree, which the log lets go of, at most n. It returns what that was in entries
// applied, and whether there are more.
func (f *Follower) Drop(mayFree uint64, n int) (work int, more bool) {
	base, to := f.View.Base(), min(mayFree, f.View.Applied())
	if mutant(mutDropsEarly) {
		to = f.View.Applied()
	}
	if to <= base || mutant(mutDropsLate) {
		return 0, false
	}
	now := min(to, base+uint64(n))
	f.View.Drop(now)
	return int(now-base)/dropWork + 1, now < to
}

// Holds returns the first entry that the log must keep for the view and for those who read it, 0 for none.
func (f *Follower) Holds() uint64 {
	first := f.View.Needed()
	if f.Over() || mutant(mutDropsLate) {
		return 0
	}
	if mutant(mutReadersForgotten) {
		return f.View.Base() + 1
	}
	return first
}

// Over reports whether the view ended before the log does, and neither a row is left nor a snapshot in use: another may
// take its place.
func (f *Follower) Over() bool {
	v := f.View
	return v.Incomplete() != nil && v.Base() == v.Applied() && !v.inUse()
}

// Apply applies committed entries, at least few and at most many where it is far behind, and publishes them. After an
// error the view ends before the log does.
func (f *Follower) Apply(few, many uint64) (work int, more bool, err error) {
	v := f.View
	next, committed := v.Applied()+1, f.log.Committed()
	if mutant(mutAppliesUncommitted) {
		committed, _ = f.log.Last()
	}
	if next > committed || v.Incomplete() != nil {
		return 0, false, nil
	}
	last := min(committed, next+min(max(few, (committed-next)/8), many)-1)
	if v.blind = 0; mutant(mutSkipsEntry) && last > next {
		v.blind = last
	}
	err = v.applyAll(next, last, f.log.Get)
	v.Publish()
	return int(last + 1 - next), err == nil && last < committed, err
}

// HistoryError is returned when the log has another entry at a place than the one that was named.
type HistoryError struct{ Seq, Hash, Wanted uint64 }

func (e *HistoryError) Error() string {
	return fmt.Sprintf("entry %d has hash %016x, that of the log %016x: it is of another history", e.Seq, e.Wanted, e.Hash)
}

// Has reports whether the log has this entry, as far as it is known. A hash of 0 is any.
func (f *Follower) Has(seq, hash uint64) error {
	if known := f.log.HashAt(seq); hash != 0 && known != 0 && known != hash && !mutant(mutHistoryUnchecked) {
		return &HistoryError{Seq: seq, Hash: known, Wanted: hash}
	}
	return nil
}
