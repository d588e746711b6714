package recorder

import (
	"time"

	"github.com/ordergrid/ordergrid/probe/drill/traffic"
)

// recent are the latencies of the last seconds.
type recent struct {
	ring [10]traffic.Latencies
	next int
}

func (r *recent) add(l traffic.Latencies) {
	r.ring[r.next] = l
	r.next = (r.next + 1) % len(r.ring)
}

func (r *recent) p99() time.Duration {
	var sum traffic.Latencies
	for i := range r.ring {
		for j, n := range r.ring[i] {
			sum[j] += n
		}
	}
	return sum.Quantile(0.99)
}
