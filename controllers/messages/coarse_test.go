package messages

import "testing"

// TestCoarse: status is written when a figure reaches the next step only.
func TestCoarse(t *testing.T) {
	for n, want := range map[int64]int64{-5: 0, 0: 0, 1: 1, 2: 2, 4: 2, 5: 5, 9: 5, 10: 10, 19: 10, 75: 50, 999: 500, 70_003: 50_000, 9_000_000_000_000_000_000: 5_000_000_000_000_000_000} {
		if got := Coarse(n); got != want {
			t.Errorf("Coarse(%d) is %d, want %d", n, got, want)
		}
	}
}

// TestSome: a message names the first few.
func TestSome(t *testing.T) {
	if got := Some([]string{"a", "b", "c", "d"}); got != "a, b, c, d" {
		t.Error(got)
	}
	if got := Some([]string{"a", "b", "c", "d", "e", "f"}); got != "a, b, c, d and 2 more" {
		t.Error(got)
	}
}
