package listener

import (
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/ordergrid/ordergrid/client"
	"github.com/ordergrid/ordergrid/e2e/testgrid"
	"github.com/ordergrid/ordergrid/internal/golden"
)

// Every metric is on the page as it is exported; and it counts.
func TestMetrics(t *testing.T) {
	g := testgrid.Run(t)
	c, err := client.Dial(t.Context(), client.Config{Endpoints: g.Endpoints})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close() //nolint:errcheck // it never fails
	before, err := c.Submit(t.Context(), testgrid.Order("BEFORE", 305))
	if err != nil {
		t.Fatal(err)
	}
	for known := uint64(0); known < before.Seq; { // a backup learns a little later what is committed
		f, err := c.Follow(t.Context(), client.FollowOptions{Partition: before.Partition, AtEnd: true})
		if err != nil {
			t.Fatal(err)
		}
		b, err := f.Next(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		known = b.Through.Seq
		_ = f.Close()
	}
	file := files(t)
	a, err := OpenAccess(Files{Clients: file("clients.json", `{"clients": [{"name": "a", "tokenFile": "`+file("token", tokenA)+`", "topics": ["orders.>"]}]}`)})
	if err != nil {
		t.Fatal(err)
	}
	l, err := New(Config{Client: c, Listen: []string{"127.0.0.1:0"}, Access: a, Backlog: 100})
	if err != nil {
		t.Fatal(err)
	}
	if lines := l.NotReady(); len(lines) != 1 {
		t.Errorf("before it runs: %q", lines)
	}
	done := make(chan error, 1)
	go func() { done <- l.Run(t.Context()) }()
	select {
	case <-l.Started():
	case err := <-done:
		t.Fatal(err)
	}
	if lines := l.NotReady(); len(lines) != 0 {
		t.Errorf("not ready: %q", lines)
	}
	if _, err := c.Submit(t.Context(), testgrid.Order("BEHIND", 305)); err != nil {
		t.Fatal(err)
	}
	for end := time.Now().Add(20 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		s := l.Status()
		if orders := s.Partitions[0].Orders + s.Partitions[1].Orders; s.Ready && orders == 2 {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("status %+v", s)
		}
	}
	reg := prometheus.NewPedanticRegistry()
	reg.MustRegister(l.Collector())
	owns := func(name string) bool { return strings.HasPrefix(name, "ordergrid_stream_") }
	golden.Metrics(t, "../../../docs/metrics.md", reg, owns)
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() == "ordergrid_stream_published_total" && f.Metric[0].GetCounter().GetValue() != 2 {
			t.Errorf("published: %v, want 2", f.Metric[0])
		}
		if f.GetName() == "ordergrid_stream_delay_seconds" && f.Metric[0].GetHistogram().GetSampleCount() != 1 {
			t.Errorf("delays: %v, want that of the order behind the start", f.Metric[0].GetHistogram().GetSampleCount())
		}
	}
}
