package function

import "testing"

// BenchmarkFault is what calls that fail cost: a fuel of call, and what their fault and setting their memory back take
// beside it.
func BenchmarkFault(b *testing.B) {
	for name, bin := range hostileCompute() {
		b.Run(name, func(b *testing.B) {
			i := load(b, bin, Compute, Options{Fuel: 1_000_000, Pages: 64})
			c := &KeyCall{Region: []byte("positions"), Key: []byte("k")}
			fuel := int64(0)
			for b.Loop() {
				i.Invoke(b.Context(), c)
				fuel += i.Used()
			}
			b.ReportMetric(float64(fuel)/float64(b.N), "fuel/op")
		})
	}
}
