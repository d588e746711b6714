package sink

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	"github.com/ordergrid/ordergrid/e2e/downstream"
	"github.com/ordergrid/ordergrid/e2e/testgrid"
	"github.com/ordergrid/ordergrid/internal/golden"
)

func gather(t *testing.T, r *Runner) (reg *prometheus.Registry, families []*dto.MetricFamily) {
	t.Helper()
	reg = prometheus.NewPedanticRegistry()
	if err := reg.Register(r.Collector()); err != nil {
		t.Fatal(err)
	}
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	return reg, families
}

// counter is ordergrid_sink_errors_total of a kind, over all partitions.
func counter(t *testing.T, r *Runner, kind string) (sum float64) {
	t.Helper()
	_, families := gather(t, r)
	for _, f := range families {
		if f.GetName() != "ordergrid_sink_errors_total" {
			continue
		}
		for _, m := range f.GetMetric() {
			for _, l := range m.GetLabel() {
				if l.GetName() == "kind" && l.GetValue() == kind {
					sum += m.GetCounter().GetValue()
				}
			}
		}
	}
	return sum
}

// The pages of a sink that runs: metrics are those of docs/metrics.md, and readiness names what is not.
func TestPages(t *testing.T) {
	g := testgrid.Run(t, "--external-sink", "pages")
	c := downstream.Dial(t, g)
	m := newMemory()
	r, stop := run(t, c, m, "pages")
	load := downstream.StartLoad(t, c, 1)
	downstream.WaitFor(t, "orders", func() bool { return load.Count() > 10 })
	acked := load.Stop()
	downstream.WaitFor(t, "the target to hold them", func() bool { return m.holds(acked) })
	downstream.WaitFor(t, "readiness", func() bool { return r.Status().Ready })
	reg, _ := gather(t, r)
	golden.Metrics(t, "../../docs/metrics.md", reg, func(name string) bool { return strings.HasPrefix(name, "ordergrid_sink_") })
	get := func(path string) (int, string) {
		w := httptest.NewRecorder()
		r.Handler(reg).ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
		return w.Code, w.Body.String()
	}
	for path, want := range map[string]string{"/healthz": "ok", "/readyz": "ok", "/status": `"sink": "pages"`, "/metrics": `ordergrid_sink_lag_entries{partition="p0",sink="pages"}`} {
		if code, text := get(path); code != http.StatusOK || !strings.Contains(text, want) {
			t.Errorf("%s: %d %s, want %s", path, code, text, want)
		}
	}
	stop()
	r.parts[0].state.failed(kindWrite, errBroken)
	if code, text := get("/readyz"); code != http.StatusServiceUnavailable || !strings.Contains(text, "p0: write since ") || !strings.Contains(text, errBroken.Error()) {
		t.Errorf("/readyz: %d %s", code, text)
	}
	if code, _ := get("/healthz"); code != http.StatusOK {
		t.Errorf("/healthz: %d: a sink that fails is not to be restarted for it", code)
	}
}
