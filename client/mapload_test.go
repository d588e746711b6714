package client

import (
	"testing"

	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// Slices go to the copy in sync that has the fewest of them, whichever partition it is of.
func TestMapLoad(t *testing.T) {
	member := func(addr string, inSync bool) Member { return Member{ID: addr, Address: addr, InSync: inSync} }
	parts := []PartitionInfo{
		{ID: 0, Members: []Member{member("a", true), member("b", true), member("behind", false), member("", true)}},
		{ID: 1, Members: []Member{member("c", true), member("a", true)}},
	}
	l := mapLoad{slices: map[string]int{}, done: map[string]int{}}
	place := func(slice int, wantAt wire.PartitionID, want string) {
		t.Helper()
		if at, addr := l.place(parts, slice); at != wantAt || addr != want {
			t.Errorf("slice %d is placed at %q of %s, want %q of %s; there are %v", slice, addr, at, want, wantAt, l.slices)
		}
	}
	place(0, 0, "a")
	place(1, 1, "c")
	place(2, 0, "b")
	place(3, 1, "c") // all have one
	l.move("b", "")
	place(4, 0, "b") // the only one without
	l.move("a", "b") // another attempt
	l.move("c", "c")
	place(6, 0, "a")
	if l.slices["a"] != 1 || l.slices["b"] != 2 || l.slices["c"] != 2 || l.slices["behind"]+l.slices[""] != 0 {
		t.Errorf("there are %v", l.slices)
	}
	for i := range parts {
		parts[i].Members = nil
	}
	place(7, 1, "") // of no known copy: retried until there is one
	if l.slices[""] != 0 {
		t.Errorf("there are %v", l.slices)
	}
}

// Equal slices by three workers are as many at each of two copies, also where one is always a little earlier: three at
// once must not leave the last one behind another at the copy that is done first.
func TestMapLoadEndsTogether(t *testing.T) {
	parts := []PartitionInfo{{Members: []Member{{ID: "a", Address: "a", InSync: true}, {ID: "b", Address: "b", InSync: true}}}}
	for _, workers := range []int{1, 2, 3, 4, 8} {
		const all = 10
		l := mapLoad{slices: map[string]int{}, done: map[string]int{}}
		begun, at := 0, map[string]int{}
		place := func() {
			if begun < all {
				_, addr := l.place(parts, begun)
				begun++
				at[addr]++
			}
		}
		for range workers {
			place()
		}
		for turn := 0; begun < all; turn++ { // each copy computes one, a before b
			for _, addr := range []string{"a", "b"} {
				if l.slices[addr] > 0 {
					l.move(addr, "")
					place()
				}
			}
		}
		if at["a"] != at["b"] {
			t.Errorf("%d workers: %v", workers, at)
		}
	}
}
