package audit

import (
	"slices"
	"testing"
)

func TestDense(t *testing.T) {
	d := Dense{Next: 5}
	for _, x := range []struct {
		n, missing uint64
		back       bool
		next       uint64
	}{{5, 0, false, 6}, {9, 3, false, 10}, {7, 0, true, 10}, {9, 0, true, 10}, {10, 0, false, 11}} {
		if missing, back := d.See(x.n); missing != x.missing || back != x.back || d.Next != x.next {
			t.Errorf("%d: %d missing, back %t, then %d; want %+v", x.n, missing, back, d.Next, x)
		}
	}
}

func TestTwice(t *testing.T) {
	var got []uint64
	Twice([]uint64{7, 1, 3, 7, 7, 1}, func(n uint64) { got = append(got, n) })
	if !slices.Equal(got, []uint64{1, 7, 7}) {
		t.Errorf("%v, want 1, 7, 7", got)
	}
}

func TestSet(t *testing.T) {
	var s Set
	if s.Holes() != 0 || s.Has(3) || s.Room() != 0 {
		t.Error("an empty set has something")
	}
	for _, n := range []uint64{0, 1, 2, 64, 130} {
		if s.Add(n) {
			t.Errorf("%d was there", n)
		}
	}
	if !s.Add(64) || !s.Has(130) || s.Has(131) || s.Has(1<<40) {
		t.Error("64 was added twice, 130 is there, and nothing above it")
	}
	if got := s.Holes(); got != 131-5 {
		t.Errorf("%d holes below 130, want %d", got, 131-5)
	}
	if s.Room() < 131 {
		t.Errorf("room for %d, 130 is in it", s.Room())
	}
}
