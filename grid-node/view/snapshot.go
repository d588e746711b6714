package view

import (
	"fmt"
)

// maxReaders is how many snapshots of a view may be in use.
const maxReaders = 64

// Snapshot is the rows up to an entry, as they were when it was the last. Its methods are
// for one goroutine.
type Snapshot struct {
	v        *View
	pin      int
	base, at uint64
}

// TooOldError is returned when rows of a prefix were dropped.
type TooOldError struct{ Base, Wanted uint64 }

func (e *TooOldError) Error() string {
	return fmt.Sprintf("view: rows from entry %d on are wanted, allowed: from %d, those before were dropped; ask again from the first page", e.Wanted, e.Base+1)
}

// NotAppliedError is returned when a view has not come as far as asked.
type NotAppliedError struct{ Applied, Wanted uint64 }

func (e *NotAppliedError) Error() string {
	return fmt.Sprintf("view: rows up to entry %d are wanted, allowed: up to %d, the last applied; ask again later, or another copy", e.Wanted, e.Applied)
}

// Snapshot fixes the rows up to entry seq, or up to the last one applied if seq is 0. It
// must be released. Any goroutine may call it.
func (v *View) Snapshot(seq uint64) (*Snapshot, error) {
	for i := range v.pins {
		p := &v.pins[i]
		base := v.base.Load()
		if p.Load() != 0 || !p.CompareAndSwap(0, base+1) {
			continue
		}
		for { // rows up to a base that is still the base after it was pinned are not reused
			now := v.base.Load()
			if now == base {
				break
			}
			base = now
			p.Store(base + 1)
		}
		s := &Snapshot{v: v, pin: i, base: base, at: v.applied.Load()}
		switch {
		case seq > s.at:
			s.Release()
			return nil, &NotAppliedError{Applied: s.at, Wanted: seq}
		case seq != 0 && seq < base:
			s.Release()
			return nil, &TooOldError{Base: base, Wanted: seq}
		case seq != 0 && !mutant(mutPrefixIgnored):
			s.at = seq
		}
		return s, nil
	}
	return nil, fmt.Errorf("view: %d snapshots are in use, allowed: %d; release one", maxReaders, maxReaders)
}

// Release ends the use of a snapshot and of what it returned.
func (s *Snapshot) Release() { s.v.pins[s.pin].Store(0) }

// At returns the last entry of the snapshot.
func (s *Snapshot) At() uint64 { return s.at }

// Base returns the entry before the first of the snapshot.
func (s *Snapshot) Base() uint64 { return s.base }

// Begin lets the snapshot begin behind a later entry: its copy may hold rows that others have dropped.
func (s *Snapshot) Begin(base uint64) {
	if !mutant(mutPageBase) {
		s.base = max(s.base, min(base, s.at))
	}
}

// View returns the view.
func (s *Snapshot) View() *View { return s.v }

// Part is the rows of a snapshot in one chunk.
type Part struct {
	c        *chunk
	First    uint64 // seq of place 0
	From, To int    // places of the part's rows: From <= place < To
	last     uint64 // of the snapshot
}

// Parts returns the number of parts of the snapshot.
func (s *Snapshot) Parts() int {
	if s.at <= s.base {
		return 0
	}
	return int(s.at>>chunkBits-(s.base+1)>>chunkBits) + 1
}

// Part returns part i, the oldest first.
func (s *Snapshot) Part(i int) Part {
	return s.PartOf(((s.base + 1) >> chunkBits << chunkBits) + uint64(i)<<chunkBits)
}

// PartOf returns the part of a row.
func (s *Snapshot) PartOf(row uint64) Part {
	n := row >> chunkBits
	p := Part{c: s.v.chunkOf(row), First: n << chunkBits, From: 0, To: chunkRows, last: s.at}
	if s.base+1 > p.First {
		p.From = int(s.base + 1 - p.First)
	}
	if s.at+1 < p.First+chunkRows {
		p.To = int(s.at + 1 - p.First)
	}
	return p
}

// Has reports whether the row is in the snapshot and an order's.
func (s *Snapshot) Has(row uint64) bool {
	if row <= s.base || row > s.at {
		return false
	}
	return *at[byte](s.v.chunkOf(row), offMsgType, uint32(row)&(chunkRows-1)) != 0
}
