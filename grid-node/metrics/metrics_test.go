package metrics

import (
	"errors"
	"math"
	"math/rand/v2"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	dto "github.com/prometheus/client_model/go"
	"google.golang.org/protobuf/proto"

	"github.com/ordergrid/ordergrid/grid-node/replica"
)

func full() *Snapshot {
	s := &Snapshot{TLSExpires: time.Unix(1e9, 0), Clients: 3, Peers: 1, MemoryUsed: 1 << 20, MemoryLimit: 1 << 30}
	s.Node.Alarm("ReplicationGap")
	s.Loop.Order.Observe(50_000)
	p := Partition{Name: "s0p0", Orders: 7, SinkSeq: 5, OldestNs: 2e9}
	p.Status = replica.Status{Role: replica.RolePrimary, Config: &replica.Config{Epoch: 4, Lineage: 1, InSync: make([]replica.Member, 2)}, LastSeq: 12, CommitSeq: 10}
	p.Counters.Acks = 9
	p.Counters.Rejects[2] = 4
	s.Partitions = []Partition{p}
	return s
}

func registry(s *Snapshot, err error) *Registry {
	return NewRegistry(&Collector{Snapshot: func() (*Snapshot, error) { return s, err }})
}

func lint(t *testing.T, r *Registry) {
	t.Helper()
	problems, err := testutil.GatherAndLint(r.Gatherer())
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		if strings.HasPrefix(p.Metric, prefix) { // the runtime's own names are not ours to choose
			t.Errorf("%s: %s", p.Metric, p.Text)
		}
	}
}

func TestValues(t *testing.T) {
	want := `
# HELP ordergrid_node_orders_total Orders answered by this node as primary, by outcome.
# TYPE ordergrid_node_orders_total counter
ordergrid_node_orders_total{outcome="acknowledged",partition="s0p0"} 9
ordergrid_node_orders_total{outcome="duplicate",partition="s0p0"} 0
ordergrid_node_orders_total{outcome="rejected",partition="s0p0"} 4
# HELP ordergrid_node_replication_lag_entries Entries stored and not yet known to be committed.
# TYPE ordergrid_node_replication_lag_entries gauge
ordergrid_node_replication_lag_entries{partition="s0p0"} 2
# HELP ordergrid_node_write_behind_depth_entries Committed entries that the write-behind sink does not hold yet.
# TYPE ordergrid_node_write_behind_depth_entries gauge
ordergrid_node_write_behind_depth_entries{partition="s0p0"} 5
# HELP ordergrid_node_write_behind_age_seconds Age of the oldest committed entry that the write-behind sink does not hold yet.
# TYPE ordergrid_node_write_behind_age_seconds gauge
ordergrid_node_write_behind_age_seconds{partition="s0p0"} 2
# HELP ordergrid_node_alarms_total Alarms raised, by kind.
# TYPE ordergrid_node_alarms_total counter
ordergrid_node_alarms_total{alarm="replication_gap"} 1
`
	names := []string{"orders_total", "replication_lag_entries", "write_behind_depth_entries", "write_behind_age_seconds", "alarms_total"}
	for i := range names {
		names[i] = prefix + names[i]
	}
	if err := testutil.GatherAndCompare(registry(full(), nil).Gatherer(), strings.NewReader(want), names...); err != nil {
		t.Error(err)
	}
}

// A loop that does not answer fails the scrape instead of showing old figures.
func TestSilentLoopFailsTheScrape(t *testing.T) {
	w := httptest.NewRecorder()
	registry(nil, errors.New("the loop did not answer within 1s")).Handler().ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	if w.Code != 500 || !strings.Contains(w.Body.String(), "did not answer") {
		t.Fatalf("status %d: %s", w.Code, w.Body)
	}
}

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
