package published

import (
	"math"
	"testing"
)

// The published times of workers are those of whole executions that they take from one queue, as far as there is a core
// for each worker, and not of the whole divided by the number of workers.
func TestWorkersTakeWholeExecutions(t *testing.T) {
	d, err := Load()
	if err != nil {
		t.Fatal(err)
	}
	s, _ := d.Scenario(AsyncScenario)
	exact, _, err := s.Workers()
	if err != nil {
		t.Fatal(err)
	}
	const cores, most = 8, 0.03
	one, divided := d.WorkersUs(1), 0.0
	for n := 1; n <= cores; n++ {
		turns := math.Ceil(float64(exact.Executions) / float64(n))
		share := d.WorkersUs(n) / one
		if off := math.Abs(share*float64(exact.Executions)/turns - 1); off > most {
			t.Errorf("%d workers take %.4f of the time of one, %.0f turns of %d executions would be %.4f", n, share, turns, exact.Executions, turns/float64(exact.Executions))
		}
		divided = max(divided, math.Abs(share*float64(n)-1))
	}
	if divided < 3*most {
		t.Errorf("divided by the number of workers they are within %.3f as well", divided)
	}
}
