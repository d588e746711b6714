package load

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/ordergrid/ordergrid/probe/clock"
	"github.com/ordergrid/ordergrid/probe/fixorder"
)

// instant answers at once, so that only the probe itself is measured.
type instant struct{ seq uint64 }

func (s *instant) Submit(context.Context, []byte) (Receipt, error) {
	s.seq++
	return Receipt{Seq: s.seq, Epoch: 1, Copies: 1}, nil
}

func (s *instant) Fate(error) Fate { return Unknown }

// BenchmarkProbeItself reports the probe's overhead per order at 6,000/s: how late orders are
// created, the time from creation to a publishing thread, and an empty submit call. Figures depend
// on the machine; nothing is asserted.
func BenchmarkProbeItself(b *testing.B) {
	const rate, n = 6000, 12_000
	for range b.N {
		p := &Probe{Name: "A", ID: fixorder.ID{Run: 1}, Version: fixorder.FIX42}
		for range 4 {
			p.Threads = append(p.Threads, &instant{})
		}
		sched, err := NewSteady(rate, 0)
		if err != nil {
			b.Fatal(err)
		}
		room, err := NewOrders(n)
		if err != nil {
			b.Fatal(err)
		}
		start := clock.Now() + int64(10*time.Millisecond)
		orders := room.First(n)
		if _, err := p.Run(b.Context(), Step{Schedule: sched, Start: start, DrainLimit: time.Second}, orders); err != nil {
			b.Fatal(err)
		}
		var lag, handover, call []int64
		for i, o := range orders {
			lag = append(lag, o.T1-start-sched.Offset(int64(i)))
			handover = append(handover, o.T2-o.T1)
			call = append(call, o.T3-o.T2)
		}
		for name, v := range map[string][]int64{"lag": lag, "handover": handover, "call": call} {
			slices.Sort(v)
			b.ReportMetric(float64(v[n/2]), name+"-p50-ns")
			b.ReportMetric(float64(v[n*99/100]), name+"-p99-ns")
		}
		if err := room.Close(); err != nil {
			b.Fatal(err)
		}
	}
}
