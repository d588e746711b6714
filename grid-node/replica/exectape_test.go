package replica

import (
	"sync/atomic"
	"testing"

	"github.com/ordergrid/ordergrid/grid-node/match"
)

// TestExecTape reads records while others are added and freed, as the race detector watches: each once, in order.
func TestExecTape(t *testing.T) {
	const entries = 40_000
	x := &execLog{}
	x.begin(10, match.Position{ExecSeq: 3})
	var committed, held atomic.Uint64
	committed.Store(10)
	held.Store(11)
	done := make(chan uint64)
	go func() {
		tape, n := &ExecTape{log: x, next: 11, at: 3}, uint64(3)
		var out []match.Record
		for tape.next <= 10+entries {
			if tape.next > committed.Load() {
				continue
			}
			seq := tape.next
			if seq%7 == 0 {
				n = n + seq%3
				tape.Skip()
				held.Store(tape.next)
				continue
			}
			out = tape.Next(out[:0])
			if len(out) != int(seq%3) {
				t.Errorf("entry %d has %d records, want %d", seq, len(out), seq%3)
			}
			for _, r := range out {
				if n++; r.Order != n || r.Other != seq {
					t.Errorf("record %d of entry %d is that of %d, %d", n, seq, r.Order, r.Other)
				}
			}
			held.Store(tape.next)
		}
		done <- n
	}()
	n, base := uint64(3), uint64(10)
	for seq := uint64(11); seq <= 10+entries; seq++ {
		var records []match.Record
		for range seq % 3 {
			n++
			records = append(records, match.Record{Order: n, Other: seq})
		}
		x.add(match.Position{ExecSeq: n}, records)
		committed.Store(seq)
		for base+1 < held.Load() && base+1 < seq {
			base++
			x.free()
		}
	}
	if got := <-done; got != n {
		t.Errorf("%d records were read, want %d", got, n)
	}
}
