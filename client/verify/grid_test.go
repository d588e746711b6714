package verify_test

import (
	"bytes"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/ordergrid/ordergrid/client"
	"github.com/ordergrid/ordergrid/client/internal/devgrid"
	"github.com/ordergrid/ordergrid/client/verify"
)

func TestMain(m *testing.M) {
	code := m.Run()
	devgrid.Clean()
	os.Exit(code)
}

// TestRealGrid: replicas and file sinks of a real grid that is serving.
func TestRealGrid(t *testing.T) {
	dir := t.TempDir()
	g := devgrid.Run(t, "--sink", "file", "--dir", dir)
	c, err := client.Dial(t.Context(), client.Config{Endpoints: g.Endpoints, Grid: "dev"})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for i := range 500 {
		if _, err := c.Submit(t.Context(), devgrid.Order(fmt.Sprintf("V%d", i), 305)); err != nil {
			t.Fatal(err)
		}
	}
	var r *verify.Result
	var text bytes.Buffer
	for end := time.Now().Add(5 * time.Minute); ; time.Sleep(20 * time.Millisecond) {
		if r, err = verify.Run(t.Context(), verify.FromClient(c), verify.Options{SinkDir: dir, Grid: "dev"}); err != nil {
			t.Fatal(err)
		}
		text.Reset()
		r.WriteText(&text)
		if r.Problems > 0 {
			t.Fatalf("\n%s", &text)
		}
		sunk := uint64(0)
		for _, p := range r.Partitions {
			sunk += p.Sink.Orders
		}
		if r.Orders == 500 && sunk == 500 {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("the sink never had all orders\n%s", &text)
		}
	}
	nodes, err := verify.Run(t.Context(), verify.FromClient(c), verify.Options{NodeSinks: true})
	if err != nil || nodes.ExitCode() != verify.ExitEqual {
		t.Fatalf("through the nodes: %+v, %v", nodes, err)
	}
	for i, p := range nodes.Partitions {
		if want := r.Partitions[i].Sink; p.Sink.Orders != want.Orders || p.Sink.Missing != 0 || len(p.Sink.Files) == 0 {
			t.Errorf("%s: through the nodes %+v, from the directory %+v", p.ID, p.Sink, want)
		}
	}
	if r.ExitCode() != verify.ExitEqual {
		t.Errorf("exit code %d", r.ExitCode())
	}
	t.Logf("\n%s", &text)
}
