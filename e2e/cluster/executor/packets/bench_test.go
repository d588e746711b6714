package packets

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/ordergrid/ordergrid/controllers/failoverdrill/executor"
)

// BenchmarkRoundTrip shows what a delay adds beyond the requested time: its
// bypass cost is the round trip with a latency of 0 less that without a fault.
func BenchmarkRoundTrip(b *testing.B) {
	p := newPair(b)
	for _, latency := range []int{-1, 0, 1, 10, 50} {
		name := "none"
		if latency >= 0 {
			name = fmt.Sprintf("%dms", latency)
		}
		b.Run(name, func(b *testing.B) {
			conn := p.echo(b, peerAddr+":0")
			if latency >= 0 {
				p.start(b, Spec{Type: executor.NetworkDelay, Deadline: time.Now().Add(time.Hour), Parameters: executor.Parameters{Latency: ms(latency)}})
			}
			all := make([]time.Duration, 0, b.N)
			for b.Loop() {
				all = append(all, roundTrip(b, conn))
			}
			slices.Sort(all)
			for _, q := range []float64{0.5, 0.99} {
				extra := all[int(float64(len(all)-1)*q)] - time.Duration(max(latency, 0))*time.Millisecond
				b.ReportMetric(float64(extra.Nanoseconds())/1e3, fmt.Sprintf("us-beyond-p%g", 100*q))
			}
		})
	}
}
