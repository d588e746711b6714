package rounds

import (
	"testing"
	"time"

	"github.com/ordergrid/ordergrid/hack/bench/generator"
	"github.com/ordergrid/ordergrid/probe/host"
)

// A second in which the hypervisor took the machine away is inconclusive about a move, as is the next.
func TestDisturbedSecondsAreInNoPart(t *testing.T) {
	begin := time.Unix(1000, 0)
	var s steal
	for i := range 41 { // ten seconds; of the fifth a tenth is stolen
		stolen := time.Duration(min(4, max(0, i-16))) * 50 * time.Millisecond
		s = append(s, host.Sample{At: begin.Add(time.Duration(i) * time.Second / 4), Total: time.Duration(i) * time.Second / 2, Steal: stolen})
	}
	for second, want := range []float64{0, 0, 0, 0, 10, 0} {
		from := begin.Add(time.Duration(second) * time.Second)
		if got := s.between(from, from.Add(time.Second)); got != want {
			t.Errorf("%v %% of second %d are stolen, want %v", got, second, want)
		}
	}
	if got := s.between(begin.Add(-2*time.Second), begin.Add(-time.Second)); got != 0 {
		t.Errorf("%v %% are stolen before it began", got)
	}
	m := &Move{}
	m.split(make([]generator.Second, 10), 3*time.Second, 6*time.Second, s.disturbs(begin, 3))
	if m.Disturbed != 2 || m.Before.For != 3*time.Second || m.During.For != time.Second || m.After.For != 4*time.Second {
		t.Errorf("%d seconds are left out, and %v, %v and %v counted, want 2, and 3s, 1s and 4s", m.Disturbed, m.Before.For, m.During.For, m.After.For)
	}
}
