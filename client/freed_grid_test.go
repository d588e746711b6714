package client_test

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/ordergrid/ordergrid/client"
	"github.com/ordergrid/ordergrid/client/verify"
	"github.com/ordergrid/ordergrid/e2e/testgrid"
)

// TestGridFreesDownstream sends a grid of real processes several times the orders it has memory
// for. It frees what its file sink holds and takes them all; freed entries are reported as freed; a
// killed process comes back with a snapshot; and every acknowledged order is either held or in a
// file.
func TestGridFreesDownstream(t *testing.T) {
	const limit = 96 << 20
	dir := t.TempDir()
	g := testgrid.Run(t, "--memory-limit", "96Mi", "--sink", "file", "--dir", dir, "--", "--retention", "free-downstream", "--high-watermark", "60")
	c := dial(t, g, func(c *client.Config) { c.RequestTimeout = 5 * time.Minute })
	waitForRedundancy(t, c)
	var (
		mu    sync.Mutex
		acked = map[string]client.Receipt{}
		wg    sync.WaitGroup
	)
	const writers, each = 16, 9000
	for w := range writers {
		wg.Go(func() {
			for i := 0; i < each; {
				id := fmt.Sprintf("FREE-%d-%d", w, i)
				r, err := c.Submit(t.Context(), testgrid.Order(id, 1100))
				switch {
				case err == nil:
					mu.Lock()
					acked[id] = r
					mu.Unlock()
					i++
				case errors.Is(err, client.ErrCapacity): // faster than the disk: refused, and retried
					time.Sleep(5 * time.Millisecond)
				default:
					t.Errorf("order %s: %v", id, err)
					return
				}
			}
		})
	}
	wg.Wait()
	if t.Failed() {
		return
	}
	first := acked["FREE-0-0"]
	var freed *client.FreedError
	if _, err := c.Get(t.Context(), first.ID()); !errors.As(err, &freed) || freed.Freed < first.Seq {
		t.Errorf("the first order of the day: %v", err)
	}
	if _, err := c.GetByClOrdID(t.Context(), "FREE-0-0"); !errors.Is(err, client.ErrFreed) {
		t.Errorf("the first order of the day by its ClOrdID: %v", err)
	}
	if _, err := c.ReadLog(t.Context(), first.Partition, "", 1, func(client.LogEntry) error { return nil }); !errors.Is(err, client.ErrSnapshotRequired) {
		t.Errorf("the log from its beginning: %v", err)
	}
	nodes, err := g.Nodes()
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range nodes {
		peak := peakRSS(t, n.PID)
		t.Logf("%s: %d MiB resident at most, of %d", n.Pod, peak>>20, limit>>20)
		if peak > limit {
			t.Errorf("%s used up to %d bytes of %d", n.Pod, peak, limit)
		}
	}
	if err := syscall.Kill(nodes[1].PID, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	last := fmt.Sprintf("FREE-%d-%d", writers-1, each-1)
	if _, err := c.Submit(t.Context(), testgrid.Order("AFTER", 300)); err != nil {
		t.Fatal(err)
	}
	waitForRedundancy(t, c)
	if o, err := c.GetByClOrdID(t.Context(), last); err != nil || o.ID != acked[last].ID() {
		t.Errorf("the last order: %v, %v", o.ID, err)
	}
	res, err := verify.Run(t.Context(), verify.FromClient(c), verify.Options{SinkDir: dir, Grid: "dev"})
	if err != nil || res.Problems != 0 || res.Unread != 0 {
		t.Errorf("verify: %v", err)
	}
	for _, p := range res.Partitions {
		for _, text := range p.Problems {
			t.Error(text)
		}
		if p.Sink.Error != "" {
			t.Error(p.Sink.Error)
		}
		for _, r := range p.Replicas {
			if r.Error != "" {
				t.Error(r.Error)
			}
		}
		t.Logf("%s: entries up to %d freed, %d common", p.ID, p.Freed, p.Common)
		if p.Freed == 0 {
			t.Errorf("%s: nothing was freed", p.ID)
		}
	}
	lost := 0
	for id := range without(t, acked, dir) {
		if _, err := c.GetByClOrdID(t.Context(), id); err != nil {
			lost++
			t.Errorf("order %s is in no file, and: %v", id, err)
		}
	}
	t.Logf("%d orders acknowledged, %d lost", len(acked), lost)
}

// without leaves the orders that no sink file has.
func without(t *testing.T, acked map[string]client.Receipt, dir string) map[string]client.Receipt {
	files, err := filepath.Glob(filepath.Join(dir, "*", "*.log*"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no sink files: %v", err)
	}
	rest := map[string]client.Receipt{}
	for id, r := range acked {
		rest[id] = r
	}
	for _, name := range files {
		f, err := os.Open(name)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		s := bufio.NewScanner(f)
		s.Buffer(nil, 1<<20)
		for s.Scan() {
			if column := bytes.Split(s.Bytes(), []byte{'\t'}); len(column) > 8 {
				delete(rest, string(column[8]))
			}
		}
	}
	return rest
}
