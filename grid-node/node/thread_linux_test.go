package node

import "testing"

func TestRunDelay(t *testing.T) {
	for in, want := range map[string]int64{"12 345 6\n": 345, "0 0 0\n": 0, "": 0, "7": 0, "1 x2 3": 2, "1 99": 99} {
		if got := runDelay([]byte(in)); got != want {
			t.Errorf("%q: %d, want %d", in, got, want)
		}
	}
}
