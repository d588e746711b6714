package histogram

import (
	"math"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"google.golang.org/protobuf/proto"
)

// scrape is the scraped form of h.
func scrape(t *testing.T, h *Histogram) *Native {
	t.Helper()
	var m dto.Metric
	if err := Metric(prometheus.NewDesc("x_seconds", "x", nil, nil), h).Write(&m); err != nil {
		t.Fatal(err)
	}
	n, err := FromScrape(m.Histogram)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func TestQuantilesComeBackWithinABucket(t *testing.T) {
	var h Histogram
	for us := range 1000 {
		h.Observe(int64(us+1) * 1000)
	}
	n := scrape(t, &h)
	for _, q := range []float64{0.01, 0.5, 0.9, 0.99, 1} {
		if got, want := n.Quantile(q), q*1e-3; math.Abs(got-want)/want > 0.0906 { // 2^(1/8) - 1
			t.Errorf("quantile %v is %v, want about %v", q, got, want)
		}
	}
	if n.Count != 1000 || math.Abs(n.Sum-0.5005) > 1e-9 {
		t.Errorf("count %d, sum %v", n.Count, n.Sum)
	}
}

func TestOnlyWhatCameBetweenTwoScrapes(t *testing.T) {
	var h Histogram
	h.ObserveN(5_000_000_000, 100) // slow ones, before
	before := scrape(t, &h)
	h.ObserveN(100_000, 10)
	now := scrape(t, &h)
	now.Sub(before)
	if q := now.Quantile(0.99); now.Count != 10 || q > 110e-6 {
		t.Errorf("count %d, p99 %v", now.Count, q)
	}
	var sum Native
	for range 2 {
		if err := sum.Add(now); err != nil {
			t.Fatal(err)
		}
	}
	if sum.Count != 20 {
		t.Errorf("count %d", sum.Count)
	}

	var restarted Histogram
	restarted.ObserveN(100_000, 3)
	after := scrape(t, &restarted)
	after.Sub(before)
	if after.Count != 3 {
		t.Errorf("count %d after a restart, want 3", after.Count)
	}
	if q := (&Native{}).Quantile(0.5); !math.IsNaN(q) {
		t.Errorf("quantile without observations is %v", q)
	}
}

func TestFromScrapeRefuses(t *testing.T) {
	span := []*dto.BucketSpan{{Offset: proto.Int32(0), Length: proto.Uint32(2)}}
	for name, h := range map[string]*dto.Histogram{
		"schema":     {Schema: proto.Int32(-53)},
		"too few":    {PositiveSpan: span, PositiveDelta: []int64{1}},
		"below zero": {PositiveSpan: span, PositiveDelta: []int64{1, -2}},
	} {
		if _, err := FromScrape(h); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	n, _ := FromScrape(&dto.Histogram{Schema: proto.Int32(3)})
	if err := n.Add(&Native{Schema: 4}); err == nil {
		t.Error("another schema was added")
	}
}
