package traffic

import (
	"math"
	"testing"
	"time"
)

func TestBuckets(t *testing.T) {
	for ns := int64(0); ns < 1<<41; ns += 1 + ns/37 {
		i := bucketOf(ns)
		if i == buckets-1 {
			break
		}
		if b := bound(i); b < ns || b > ns+ns/perOctave || i > 0 && bound(i-1) >= ns {
			t.Fatalf("%d ns is in bucket %d, which ends at %d; the one before at %d", ns, i, b, bound(i-1))
		}
	}
	for _, ns := range []int64{-5, math.MinInt64, math.MaxInt64} {
		if i := bucketOf(ns); i < 0 || i >= buckets {
			t.Errorf("%d ns is in bucket %d", ns, i)
		}
	}
}

func TestLatencyQuantile(t *testing.T) {
	var l latencies
	for i := range 1000 {
		l.observe(int64(time.Duration(i) * time.Millisecond))
	}
	all := l.read()
	if q := all.Quantile(0.99); q < 989*time.Millisecond || q > 1052*time.Millisecond {
		t.Errorf("p99 of 0..999 ms is %s", q)
	}
	l.observe(int64(5 * time.Second))
	after := l.read()
	if d := after.Since(&all); d.Quantile(0.5) < 5*time.Second || d.Quantile(0.5) > 6*time.Second {
		t.Errorf("the one since has p50 %s", d.Quantile(0.5))
	}
	if (&Latencies{}).Quantile(0.99) != 0 {
		t.Error("without observations: not 0")
	}
}
