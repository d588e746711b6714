package replica

import (
	"fmt"
	"testing"
)

// TestCopyNames: the names of sources are held as long as their copies.
func TestCopyNames(t *testing.T) {
	var x fixCopies
	for i := range 1000 {
		n, again := x.take(fmt.Sprint("S", i)), x.take(fmt.Sprint("S", i))
		if n != again || x.names[n].name != fmt.Sprint("S", i) {
			t.Fatalf("S%d is at %d and %d: %q", i, n, again, x.names[n].name)
		}
		if x.leave(n); x.names[n].copies != 1 {
			t.Fatalf("%d copies of S%d, want 1", x.names[n].copies, i)
		}
		x.leave(n)
	}
	if len(x.names) != 1 || len(x.known) != 0 {
		t.Errorf("%d names and %d known once there are no copies, want 1 place and none", len(x.names), len(x.known))
	}
}

// TestCopiesOfAnEntryAreWalked: numbers that are asked for in order are found, and the copies of
// their entry are looked at once in all: an entry may have tens of thousands.
func TestCopiesOfAnEntryAreWalked(t *testing.T) {
	const targets, n = 16, 500
	var x fixCopies
	for seq := uint64(1); seq <= 3; seq++ {
		for i := range uint64(n) {
			for slot := range uint32(targets) {
				x.list.push(&fixCopy{seq: seq, slot: slot, number: seq*n + i})
			}
		}
	}
	var w copyWalk
	for seq := uint64(1); seq <= 3; seq++ {
		if c := w.as(&x, seq, 7, seq*n-1); c != nil {
			t.Fatalf("entry %d has copy %d of number %d", seq, c.number, seq*n-1)
		}
		for i := range uint64(n) {
			from := w.at
			c := w.as(&x, seq, 7, seq*n+i)
			if c == nil || c.seq != seq || c.slot != 7 || c.number != seq*n+i {
				t.Fatalf("number %d of entry %d is copy %+v", seq*n+i, seq, c)
			}
			if i > 0 && w.at-from > targets {
				t.Fatalf("%d copies were looked at for number %d, want %d or fewer", w.at-from, seq*n+i, targets)
			}
		}
		if c := w.as(&x, seq, 7, (seq+1)*n); c != nil {
			t.Fatalf("entry %d has copy %d", seq, c.number)
		}
	}
}
