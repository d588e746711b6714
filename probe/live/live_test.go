package live

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/ordergrid/ordergrid/internal/golden"
	"github.com/ordergrid/ordergrid/probe/load"
)

// ended is a run of one step that has ended: four orders, one of them created
// before the measured part and one never sent.
func ended(t *testing.T) *Metrics {
	t.Helper()
	m := &Metrics{}
	r := m.Begin("stac-pair", 3, []string{"A", "B"}, func() Client { return Client{Retries: 1, Redirects: 2, Connects: 3} })
	schedule, err := load.NewSteady(1000, 0)
	if err != nil {
		t.Fatal(err)
	}
	const ms = int64(time.Millisecond)
	orders := []load.Order{
		{T1: 1, T2: 2, T3: ms, Fate: load.Acked},
		{T1: ms, T2: ms + 1, T3: ms + 2*ms, Fate: load.Acked},
		{T1: 2*ms + 500, T2: 3 * ms, T3: 4 * ms, Fate: load.Rejected},
		{T1: 3 * ms},
	}
	rd := reader{Share: Share{Probe: "A", Orders: orders, Schedule: schedule, Progress: &load.Progress{}, Begin: ms}, run: r, to: r.probes[0], base: 10}
	r.step = 2
	for i := range orders {
		rd.count(i)
	}
	r.probes[0].created = 5
	r.End()
	return m
}

func TestValues(t *testing.T) {
	want := `
# HELP ordergrid_probe_orders_total Orders that have an outcome: acknowledged, rejected, unknown (no answer in time), unsent (left over when the rate ended).
# TYPE ordergrid_probe_orders_total counter
ordergrid_probe_orders_total{outcome="acknowledged",probe="A",scenario="stac-pair"} 2
ordergrid_probe_orders_total{outcome="acknowledged",probe="B",scenario="stac-pair"} 0
ordergrid_probe_orders_total{outcome="rejected",probe="A",scenario="stac-pair"} 1
ordergrid_probe_orders_total{outcome="rejected",probe="B",scenario="stac-pair"} 0
ordergrid_probe_orders_total{outcome="unknown",probe="A",scenario="stac-pair"} 0
ordergrid_probe_orders_total{outcome="unknown",probe="B",scenario="stac-pair"} 0
ordergrid_probe_orders_total{outcome="unsent",probe="A",scenario="stac-pair"} 1
ordergrid_probe_orders_total{outcome="unsent",probe="B",scenario="stac-pair"} 0
# HELP ordergrid_probe_backlog_orders Orders created that have no outcome yet.
# TYPE ordergrid_probe_backlog_orders gauge
ordergrid_probe_backlog_orders{probe="A",scenario="stac-pair"} 1
ordergrid_probe_backlog_orders{probe="B",scenario="stac-pair"} 0
# HELP ordergrid_probe_client_redirects_total Answers that named another node as the partition's primary, or none.
# TYPE ordergrid_probe_client_redirects_total counter
ordergrid_probe_client_redirects_total{scenario="stac-pair"} 2
# HELP ordergrid_probe_step Number of the present or last rate and repeat of the scenario's plan, from 1; 0 before the first.
# TYPE ordergrid_probe_step gauge
ordergrid_probe_step{scenario="stac-pair"} 2
`
	m := ended(t)
	if err := testutil.GatherAndCompare(m.Registry(), strings.NewReader(want), prefix+"orders_total", prefix+"backlog_orders", prefix+"client_redirects_total", prefix+"step"); err != nil {
		t.Error(err)
	}
	s := m.runs[0].probes[0]
	if s.onLag.Count() != 3 || s.createToEnd.Count() != 1 || s.sendToEnd.Count() != 1 || s.intended.Count() != 1 {
		t.Errorf("histograms hold %d lags and %d, %d, %d latencies; want 3 of what was created in the measured part, and 1 of what was acknowledged of it",
			s.onLag.Count(), s.createToEnd.Count(), s.sendToEnd.Count(), s.intended.Count())
	}
}

// A probe that is not scraped has no metrics, and no special cases.
func TestNone(t *testing.T) {
	var m *Metrics
	r := m.Begin("stac-pair", 1, []string{"A"}, nil)
	r.Follow(1, []Share{{Probe: "A"}})()
	r.End()
}

func TestEveryMetricIsOnThePage(t *testing.T) {
	reg := prometheus.NewRegistry()
	reg.MustRegister(ended(t))
	golden.Metrics(t, "../../docs/metrics.md", reg, func(name string) bool { return strings.HasPrefix(name, prefix) })
	if problems, err := testutil.GatherAndLint(reg); err != nil || len(problems) > 0 {
		t.Errorf("promlint: %v %v", problems, err)
	}
	families, err := reg.Gather()
	if err != nil || len(families) != len(allDescs) {
		t.Errorf("%d metrics are sent, %d described; %v", len(families), len(allDescs), err)
	}
}

func TestRate(t *testing.T) {
	schedule, err := load.NewSteady(250, 0)
	if err != nil {
		t.Fatal(err)
	}
	r := reader{Share: Share{Schedule: schedule}}
	for _, c := range []struct {
		at   time.Duration
		want float64
	}{{-time.Second, 0}, {0, 0}, {100 * time.Millisecond, 250}, {time.Second, 250}, {90 * time.Second, 250}} {
		if got := r.rate(int64(c.at)); got != c.want {
			t.Errorf("rate at %v is %v, want %v", c.at, got, c.want)
		}
	}
}

// TestConnectionsAreBounded: one more than an address may have ends the one that is idle for
// longest; new clients are served.
func TestConnectionsAreBounded(t *testing.T) {
	at, stop, err := (&Metrics{}).Serve("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	ask := func(c net.Conn) error {
		if _, err := io.WriteString(c, "GET /metrics HTTP/1.1\r\nHost: probe\r\n\r\n"); err != nil {
			return err
		}
		resp, err := http.ReadResponse(bufio.NewReader(c), nil)
		if err == nil {
			_, err = io.Copy(io.Discard, resp.Body)
		}
		return err
	}
	var conns []net.Conn
	for range 65 {
		c, err := net.Dial("tcp", at.String())
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = c.Close() }()
		if err := ask(c); err != nil {
			t.Fatalf("connection %d: %v", len(conns), err)
		}
		conns = append(conns, c)
	}
	ended := 0 // the server knows that a connection is idle a moment after its client has the answer
	for _, c := range conns[:64] {
		if ask(c) != nil {
			ended++
		}
	}
	if ended != 1 {
		t.Errorf("%d of 65 connections of one address were ended, want 1: 64 are allowed", ended)
	}
	if err := ask(conns[64]); err != nil {
		t.Errorf("the newest: %v", err)
	}
}
