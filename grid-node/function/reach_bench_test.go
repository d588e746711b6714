package function

import (
	"math"
	"slices"
	"testing"
	"time"
)

// BenchmarkReach compares, in turns, each computation metered with the same unmetered and in Go, so that a busy machine
// disturbs all alike: NAME-metered-x and NAME-go-x are ratios of medians, all-metered-x and all-go-x their geometric means.
// Metering is to cost at most 1.3 times, computing at most 1.6 times what it costs in Go.
//
//	go test ./grid-node/function -run xxx -bench Reach -benchtime 200x
func BenchmarkReach(b *testing.B) {
	bin := testdata(b, "compute.wasm")
	i, plain := load(b, bin, Compute, Options{Fuel: 1 << 40}), unmetered(b, bin, Compute, Options{Pages: defaultPages})
	took := make([][3][]time.Duration, len(computations))
	timed := func(to *[]time.Duration, call func()) {
		begun := time.Now()
		call()
		*to = append(*to, time.Since(begun))
	}
	for range b.N {
		for k, c := range computations {
			args := computeArgs(byte(k), c.n)
			timed(&took[k][0], func() {
				if _, _, f := i.Compute(b.Context(), args); f != None {
					b.Fatal(f)
				}
			})
			timed(&took[k][1], func() { plain.compute(b, args) })
			if c.run != nil {
				timed(&took[k][2], func() { sink = c.run(c.n) })
			}
		}
	}
	median := func(list []time.Duration) float64 {
		slices.Sort(list)
		return float64(list[len(list)/2])
	}
	var logs [2]float64 // sums of logarithms
	var n [2]float64
	for k, c := range computations {
		metered := median(took[k][0])
		for i, than := range []string{"-metered-x", "-go-x"} {
			if other := took[k][1+i]; len(other) > 0 {
				x := metered / median(other)
				b.ReportMetric(x, c.name+than)
				logs[i], n[i] = logs[i]+math.Log(x), n[i]+1
			}
		}
	}
	b.ReportMetric(math.Exp(logs[0]/n[0]), "all-metered-x")
	b.ReportMetric(math.Exp(logs[1]/n[1]), "all-go-x")
	b.ReportMetric(0, "ns/op") // of all together: of no use
}
