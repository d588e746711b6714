package cli

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"strings"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"
	"google.golang.org/protobuf/encoding/protodelim"

	"github.com/ordergrid/ordergrid/e2e/testgrid"
	"github.com/ordergrid/ordergrid/probe/fixorder"
	"github.com/ordergrid/ordergrid/probe/live"
	"github.com/ordergrid/ordergrid/probe/published"
	"github.com/ordergrid/ordergrid/probe/report"
	"github.com/ordergrid/ordergrid/probe/runner"
	"github.com/ordergrid/ordergrid/probe/scenario"
)

// Scraped and reported figures are the same: counts exactly, quantiles within the width of a native
// histogram's bucket.
func TestScrapedFiguresAreTheReports(t *testing.T) {
	plan := smallPlan(t)
	g := testgrid.Start(t, testgrid.Options{MemoryMiB: 256})
	defer g.Stop() //nolint:errcheck // the test's own grid
	var metrics live.Metrics
	at, stop, err := metrics.Serve("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	url := "http://" + at.String() + "/metrics"

	r, err := runner.Prepare(t.Context(), runner.Config{Plan: plan, Endpoints: g.Endpoints, FIX: fixorder.FIX42, Run: fixorder.NewRun(), Probes: []int{0, 1},
		Shared: true, Progress: newProgress(io.Discard, plan), Live: &metrics})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close() //nolint:errcheck // the test's own run
	moved := watch(t, url)
	result, err := r.Run(t.Context(), time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	if values := moved(); values < 3 {
		t.Errorf("the counter of orders had %d values in all scrapes during the run; it has to move while orders flow", values)
	}
	families := scrape(t, url)
	for _, p := range result.Probes {
		compareProbe(t, families, plan.Scenario, &p)
	}
}

func smallPlan(t *testing.T) scenario.Plan {
	t.Helper()
	d, err := published.Load()
	if err != nil {
		t.Fatal(err)
	}
	warmup := 200 * time.Millisecond
	plan, err := scenario.New(d, "stac-pair", scenario.Options{Mode: scenario.Quick, Rates: []int{100, 400}, Repeats: 1, Warmup: &warmup, Measure: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	return plan
}

// watch scrapes until the returned function is called, which returns how many different values the
// counter of orders had.
func watch(t *testing.T, url string) (values func() int) {
	seen, end, done := map[float64]bool{}, make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for {
			select {
			case <-end:
				return
			case <-time.After(50 * time.Millisecond):
			}
			sum := 0.0
			for _, m := range scrape(t, url)["ordergrid_probe_orders_total"].GetMetric() {
				sum += m.GetCounter().GetValue()
			}
			seen[sum] = true
		}
	}()
	return func() int { close(end); <-done; return len(seen) }
}

// scrape reads metrics like Prometheus with native histograms.
func scrape(t *testing.T, url string) map[string]*dto.MetricFamily {
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Error(err)
		return nil
	}
	req.Header.Set("Accept", "application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited")
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Error(err)
		return nil
	}
	defer res.Body.Close()
	families, in := map[string]*dto.MetricFamily{}, bufio.NewReader(res.Body)
	for {
		var f dto.MetricFamily
		if err := protodelim.UnmarshalFrom(in, &f); errors.Is(err, io.EOF) {
			return families
		} else if err != nil {
			t.Error(err)
			return nil
		}
		families[f.GetName()] = &f
	}
}

func compareProbe(t *testing.T, families map[string]*dto.MetricFamily, name string, p *report.Probe) {
	t.Helper()
	var acked, created int64
	var want [4]report.Histogram
	for _, s := range p.Steps {
		acked, created = acked+s.Acked, created+s.Created
		for i, h := range []report.Histogram{s.CreateToEnd, s.SendToEnd, s.IntendedToEnd, s.Lag} {
			want[i].Merge(h)
		}
	}
	of := func(family string, labels map[string]string) *dto.Metric {
		labels["scenario"], labels["probe"] = name, p.Name
		for _, m := range families[family].GetMetric() {
			if hasLabels(m, labels) {
				return m
			}
		}
		t.Fatalf("%s has no series with %v", family, labels)
		return nil
	}
	if got := of("ordergrid_probe_orders_total", map[string]string{"outcome": "acknowledged"}).GetCounter().GetValue(); got != float64(acked) {
		t.Errorf("probe %s: %v orders acknowledged, the report has %d", p.Name, got, acked)
	}
	if got := of("ordergrid_probe_created_orders_total", map[string]string{}).GetCounter().GetValue(); got != float64(created) {
		t.Errorf("probe %s: %v orders created, the report has %d", p.Name, got, created)
	}
	for i, family := range []string{"create_to_end", "send_to_end", "intended_to_end", "schedule_lag"} {
		h := of("ordergrid_probe_"+family+"_seconds", map[string]string{}).GetHistogram()
		if h.GetSampleCount() != uint64(want[i].Count()) || want[i].Count() == 0 {
			t.Errorf("probe %s %s: %d samples, the report has %d", p.Name, family, h.GetSampleCount(), want[i].Count())
		}
		for _, q := range []float64{50, 90, 99, 100} {
			low, high := bucketOf(h, q)
			// HDR has three digits: a thousandth on both sides.
			if v := float64(want[i].Percentile(q)) * 1e-9; v < low*0.999 || v > high*1.001 {
				t.Errorf("probe %s %s p%v: %.9f s in the report, scraped between %.9f and %.9f", p.Name, family, q, v, low, high)
			}
		}
	}
}

func hasLabels(m *dto.Metric, want map[string]string) bool {
	n := 0
	for _, l := range m.GetLabel() {
		if v, ok := want[l.GetName()]; ok && v == l.GetValue() {
			n++
		}
	}
	return n == len(want)
}

// bucketOf is the native bucket that holds a percentile.
func bucketOf(h *dto.Histogram, percent float64) (low, high float64) {
	rank := max(1, uint64(math.Ceil(percent/100*float64(h.GetSampleCount()))))
	width := math.Exp2(math.Exp2(-float64(h.GetSchema())))
	key, at, sum, n := int32(0), 0, uint64(0), int64(0)
	for _, span := range h.GetPositiveSpan() {
		key += span.GetOffset()
		for range span.GetLength() {
			n += h.GetPositiveDelta()[at]
			if sum += uint64(n); sum >= rank {
				high = math.Pow(width, float64(key))
				return high / width, high
			}
			at, key = at+1, key+1
		}
	}
	return math.NaN(), math.NaN()
}

func TestAnAddressThatIsTaken(t *testing.T) {
	at, stop, err := (&live.Metrics{}).Serve("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	code, _, stderr := call("run", "--dev", "--scenario", "stac-pair", "--quick", "--http", at.String())
	if want := fmt.Sprintf("--http %s", at); code != ExitUsage || !strings.Contains(stderr, want) {
		t.Errorf("exit code %d, %q; want 2 and %q", code, stderr, want)
	}
}
