package histogram

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"google.golang.org/protobuf/proto"
)

// Our buckets are those of client_golang's native histograms.
func TestHistogramIsANativeHistogram(t *testing.T) {
	theirs := prometheus.NewHistogram(prometheus.HistogramOpts{Name: "x", NativeHistogramBucketFactor: 1.1, NativeHistogramMaxBucketNumber: 1000})
	var ours Histogram
	rnd := rand.New(rand.NewPCG(1, 2))
	for range 20_000 {
		ns := int64(math.Exp(rnd.Float64() * 25)) // 1 ns to 72 s
		ours.Observe(ns)
		theirs.Observe(float64(ns) * 1e-9)
	}
	for _, ns := range []int64{1, 1 << 10, 1e9, 2e9, 4e9, 500_000_000} { // on bounds
		ours.Observe(ns)
		theirs.Observe(float64(ns) * 1e-9)
	}
	var a, b dto.Metric
	if err := (metric{h: &ours}).Write(&a); err != nil {
		t.Fatal(err)
	}
	if err := theirs.Write(&b); err != nil {
		t.Fatal(err)
	}
	if b.Histogram.GetSchema() != schema {
		t.Fatalf("their schema is %d", b.Histogram.GetSchema())
	}
	gotBuckets, wantBuckets := buckets(a.Histogram), buckets(b.Histogram)
	if len(gotBuckets) != len(wantBuckets) {
		t.Fatalf("%d buckets, want %d", len(gotBuckets), len(wantBuckets))
	}
	for k, n := range wantBuckets {
		if gotBuckets[k] != n {
			t.Errorf("bucket %d holds %d, want %d", k, gotBuckets[k], n)
		}
	}
	if a.Histogram.GetSampleCount() != b.Histogram.GetSampleCount() || math.Abs(a.Histogram.GetSampleSum()/b.Histogram.GetSampleSum()-1) > 1e-9 {
		t.Errorf("count and sum differ: %v %v", a.Histogram.GetSampleCount(), b.Histogram.GetSampleCount())
	}
}

// buckets decodes spans and deltas.
func buckets(h *dto.Histogram) map[int32]int64 {
	out := map[int32]int64{}
	var key int32
	var n int64
	i := 0
	for _, s := range h.PositiveSpan {
		key += s.GetOffset()
		for range s.GetLength() {
			n += h.PositiveDelta[i]
			if n != 0 {
				out[key] = n
			}
			key++
			i++
		}
	}
	return out
}

func TestClassicBuckets(t *testing.T) {
	var h Histogram
	h.ObserveN(900, 3)        // 0.9 µs, under 2^-20 s
	h.ObserveN(1_000, 5)      // 1 µs, over it
	h.Observe(10_000_000_000) // over all
	h.Observe(-5)
	var m dto.Metric
	if err := (metric{h: &h}).Write(&m); err != nil {
		t.Fatal(err)
	}
	b := m.Histogram.Bucket
	if len(b) != classicHigh-classicLow+1 || b[0].GetCumulativeCount() != 4 || b[1].GetCumulativeCount() != 9 ||
		b[len(b)-1].GetCumulativeCount() != 9 || m.Histogram.GetSampleCount() != 10 {
		t.Fatalf("%v", m.Histogram)
	}
	if proto.Size(&m) == 0 {
		t.Fatal("empty")
	}
}

func BenchmarkObserve(b *testing.B) {
	var h Histogram
	b.ReportAllocs()
	ns := int64(40_000)
	for b.Loop() {
		h.Observe(ns)
		ns ^= 0x3fff
	}
}
