package replica

import (
	"testing"

	"github.com/ordergrid/ordergrid/grid-node/match"
	"github.com/ordergrid/ordergrid/grid-node/store"
)

// TestDequeOfBlocks: elements stay what they are while chunks come from blocks and from the heap in
// turns, and a block is used again once it is free.
func TestDequeOfBlocks(t *testing.T) {
	const blocks = 3 // of one chunk each
	lent := 0
	d := &deque[match.Record]{lend: func() []byte {
		if lent == blocks {
			return nil
		}
		lent++
		return make([]byte, store.LendBytes)
	}}
	check := func(from, to uint64) {
		t.Helper()
		for i := from; i < to; i++ {
			if got := d.at(i).Order; got != i {
				t.Fatalf("element %d is %d", i, got)
			}
		}
	}
	fill := func(to uint64) {
		for d.next < to {
			d.push(&match.Record{Order: d.next})
		}
	}
	count := func() (n int) {
		for _, c := range d.chunks {
			if c.lent {
				n++
			}
		}
		return n
	}
	d.begin(5)
	fill(5 + 5*dequeChunk)
	check(5, d.next)
	if n := count(); n != blocks || len(d.chunks) != 5 {
		t.Errorf("%d of %d chunks are of blocks, want %d of 5", n, len(d.chunks), blocks)
	}
	for range 20 {
		at := d.first + 2*dequeChunk + 7
		d.freeTo(at)
		fill(d.next + 2*dequeChunk)
		check(at, d.next)
	}
	if n := count(); n != blocks {
		t.Errorf("%d chunks are of blocks, want %d: those that were free are used first", n, blocks)
	}
	d.begin(1000)
	if len(d.free) != blocks || len(d.chunks) != 0 {
		t.Errorf("%d blocks are free, want all %d", len(d.free), blocks)
	}
	fill(1000 + blocks*dequeChunk)
	check(1000, d.next)
	if n := count(); n != blocks || lent != blocks {
		t.Errorf("%d chunks are of blocks, %d of them lent, want %d", n, lent, blocks)
	}
}

// TestExecLogOfBlocks: entries and records take the blocks of a store.
func TestExecLogOfBlocks(t *testing.T) {
	s, err := store.New(store.Options{Lends: 64 << 20})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	s.Prefault(64 << 20)
	x := &execLog{}
	x.lent(s.Lend)
	x.begin(0, match.Position{})
	const entries = 10 * dequeChunk
	for seq := uint64(1); seq <= entries; seq++ {
		x.add(match.Position{ExecSeq: 2 * seq, ExecHash: seq}, []match.Record{{Order: seq}, {Order: seq, Other: 1}})
	}
	for seq := uint64(1); seq <= entries; seq++ {
		first, n := x.of(seq)
		if n != 2 || x.at(seq).ExecHash != seq || x.records.at(first).Order != seq || x.records.at(first+1).Other != 1 {
			t.Fatalf("entry %d has %d records from %d on, position %+v", seq, n, first, x.at(seq))
		}
	}
	for _, c := range x.records.chunks {
		if !c.lent {
			t.Fatal("records are in the Go heap though there are blocks")
		}
	}
	for range entries {
		x.free()
	}
	if len(x.records.free) != 20 || len(x.entries.free) != 10 {
		t.Errorf("%d and %d chunks are free, want 20 and 10", len(x.records.free), len(x.entries.free))
	}
}
