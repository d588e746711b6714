package verify_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/ordergrid/ordergrid/client"
	"github.com/ordergrid/ordergrid/client/verify"
	"github.com/ordergrid/ordergrid/e2e/testgrid"
	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// TestRealGrid: replicas and file sinks of a real grid that is serving.
func TestRealGrid(t *testing.T) {
	dir := t.TempDir()
	g := testgrid.Run(t, "--sink", "file", "--dir", dir)
	c, err := client.Dial(t.Context(), client.Config{Endpoints: g.Endpoints, Grid: "dev"})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for i := range 500 {
		if _, err := c.Submit(t.Context(), testgrid.Order(fmt.Sprintf("V%d", i), 305)); err != nil {
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

// TestRealGridAfterAMove: a partition moved to the pods of another shard, and has sink
// files on those of both.
func TestRealGridAfterAMove(t *testing.T) {
	g := testgrid.Run(t, "--shards", "2", "--sink", "file", "--dir", t.TempDir())
	c, err := client.Dial(t.Context(), client.Config{Endpoints: g.Endpoints, Grid: "dev", RequestTimeout: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	const part = wire.PartitionID(0)
	submit := func(name string) {
		t.Helper()
		for i := range 200 {
			if _, err := c.SubmitTo(t.Context(), part, testgrid.Order(fmt.Sprintf("%s%d", name, i), 305)); err != nil {
				t.Fatal(err)
			}
		}
	}
	check := func(files int, orders uint64) {
		t.Helper()
		for end := time.Now().Add(5 * time.Minute); ; time.Sleep(50 * time.Millisecond) {
			r, err := verify.Run(t.Context(), verify.FromClient(c), verify.Options{NodeSinks: true, Partitions: []wire.PartitionID{part}})
			if err != nil {
				t.Fatal(err)
			}
			s := r.Partitions[0].Sink
			if r.ExitCode() == verify.ExitEqual && s.Orders == orders && s.Missing == 0 && len(s.Files) >= files {
				return
			}
			if time.Now().After(end) {
				var text bytes.Buffer
				r.WriteText(&text) //nolint:errcheck // a buffer
				t.Fatalf("want %d orders in %d files or more:\n%s", orders, files, &text)
			}
		}
	}
	submit("BEFORE")
	check(1, 200)
	if err := g.SetSpec("dev-p0", `{"shard":1,"pods":["dev-s1-0","dev-s1-1"],"preferredPod":"dev-s1-0"}`); err != nil {
		t.Fatal(err)
	}
	for there := 0; there != 2; {
		if err := c.Refresh(t.Context()); err != nil {
			t.Fatal(err)
		}
		info := c.Table()[part]
		if there = 0; !strings.HasPrefix(info.Primary.ID, "dev-s1-") || len(info.Members) != 2 {
			continue
		}
		for _, m := range info.Members {
			if m.InSync && strings.HasPrefix(m.ID, "dev-s1-") {
				there++
			}
		}
	}
	submit("AFTER")
	check(2, 400)
}
