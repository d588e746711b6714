package node

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"

	"github.com/ordergrid/ordergrid/client"
	"github.com/ordergrid/ordergrid/grid-node/arbiter"
	"github.com/ordergrid/ordergrid/grid-node/arbiter/memory"
	"github.com/ordergrid/ordergrid/grid-node/nodestatus"
	"github.com/ordergrid/ordergrid/grid-node/order"
	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// keptLog is an archive in memory, which can be damaged.
type keptLog struct {
	mu      sync.Mutex
	entries [][]byte
	lack    uint64 // this entry is missing
	ends    uint64 // and those from this one on; 0: none
	reads   int
}

func (k *keptLog) Entries(ctx context.Context, _ wire.PartitionID, from uint64, f func([]byte) error) error {
	k.mu.Lock()
	k.reads++
	entries, lack, ends := k.entries, k.lack, k.ends
	k.mu.Unlock()
	for _, e := range entries[from-1:] {
		if seq := order.Seq(e); ends > 0 && seq >= ends || ctx.Err() != nil {
			return ctx.Err()
		} else if seq == lack {
			continue
		}
		if err := f(e); err != nil {
			return err
		}
	}
	return nil
}

func (k *keptLog) set(lack, ends uint64) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.lack, k.ends, k.reads = lack, ends, 0
}

func (k *keptLog) count() int {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.reads
}

// said is a log that a test reads.
type said struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *said) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(b)
}

func (s *said) has(text string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.Contains(s.b.String(), text)
}

// lostGrid is a grid of one partition that had orders, and what is left of it.
func lostGrid(t *testing.T, orders int) (*keptLog, []client.Receipt, arbiter.Restore) {
	t.Helper()
	g := newGrid(t, 1, 1).up()
	c := g.client()
	receipts := submit(t, c, "lost", orders)
	k := &keptLog{}
	if _, err := c.ReadLog(t.Context(), 0, "", 1, func(e client.LogEntry) error {
		k.entries = append(k.entries, bytes.Clone(e.Bytes))
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	rec := g.store.List()[0]
	g.kill(0)
	last := k.entries[len(k.entries)-1]
	return k, receipts, arbiter.Restore{Seq: order.Seq(last), Hash: fmt.Sprintf("%016x", order.Hash(last)), Epoch: rec.Epoch, Lineage: rec.Lineage}
}

// restoredGrid is a new grid whose record is to be restored.
func restoredGrid(t *testing.T, nodes int, from arbiter.Restore) (*grid, *said) {
	t.Helper()
	g := newGrid(t, nodes, 1)
	g.store = memory.NewStore(map[string]arbiter.Spec{PartitionName("g", 0): {Grid: "g", Replicas: nodes, MinInSync: 1, PreferredPod: "g-s0-0", Restore: &from}})
	g.arb = g.store
	s := &said{}
	g.base.Log = slog.New(slog.NewTextHandler(s, nil))
	return g, s
}

// reports: all pages of a node tell how far the archive is loaded, and why it is not.
func (g *grid) reports(i int, why string, through uint64) bool {
	var s nodestatus.Node
	_, status := g.nodes[i].get(nodestatus.Path)
	if err := json.Unmarshal([]byte(status), &s); err != nil {
		g.t.Fatal(err)
	}
	_, ready := g.nodes[i].get("/readyz")
	_, metrics := g.nodes[i].get("/metrics")
	p := s.Partitions[0]
	return p.Restore != nil && p.Restore.ThroughSeq == through && strings.Contains(p.Restore.Error, why) && p.LastSeq < through &&
		strings.Contains(ready, "loaded from the archive, up to entry ") && strings.Contains(ready, why) &&
		strings.Contains(metrics, "ordergrid_node_restore_remaining_entries") && !strings.Contains(metrics, `ordergrid_node_restore_failures_total{partition="p0"} 0`)
}

// TestRestored: both nodes load more than one part, one claims, and the grid has every
// order.
func TestRestored(t *testing.T) {
	k, receipts, point := lostGrid(t, 500)
	g, _ := restoredGrid(t, 2, point)
	g.base.Archive = k
	g.up()
	c := g.client()
	for _, r := range receipts {
		if o, err := c.Get(t.Context(), r.ID()); err != nil || o.Epoch != r.Epoch {
			t.Fatalf("order %s: %+v, %v", r.ID(), o, err)
		}
	}
	if r := submit(t, c, "new", 1)[0]; r.Seq <= point.Seq || r.Lineage != 2 {
		t.Errorf("a new order is %+v, the recovery point is %d", r, point.Seq)
	}
	if rec := g.store.List()[0]; rec.Lineage != point.Lineage+1 || rec.Epoch <= point.Epoch {
		t.Errorf("the record is %+v", rec)
	}
	g.verify("")
}

// TestRestoreRefused: what is not the log of the record is not claimed, and the reason names the entry. Once
// the archive is put right it is loaded, by the same node.
func TestRestoreRefused(t *testing.T) {
	k, receipts, point := lostGrid(t, 300)
	for _, c := range []struct {
		name       string
		lack, ends uint64
		want       string
	}{
		{"an entry is missing", 100, 0, "entry 101: it follows entry 99, allowed: entry 100"},
		{"the end is missing", 0, 200, fmt.Sprintf("the archive ends before the recovery point of the record, entry %d", point.Seq)},
	} {
		t.Run(c.name, func(t *testing.T) {
			k.set(c.lack, c.ends)
			g, log := restoredGrid(t, 1, point)
			g.base.Archive = k
			g.start(0)
			g.until(func() bool { return log.has(c.want) && k.count() > 1 }, "the node does not report %q, or does not try again", c.want)
			if rec := g.store.List()[0]; rec.Epoch != 0 {
				t.Fatalf("the partition was claimed: %+v", rec)
			}
			g.until(func() bool { return g.reports(0, c.want, point.Seq) }, "/status, /readyz or /metrics does not have it")
			k.set(0, 0)
			g.ready()
			last := receipts[len(receipts)-1]
			if got, err := g.client().Get(t.Context(), last.ID()); err != nil || got.Epoch != last.Epoch {
				t.Errorf("the last order: %+v, %v", got, err)
			}
		})
	}
	t.Run("another hash", func(t *testing.T) {
		other := point
		other.Hash = "0123456789abcdef"
		k.set(0, 0)
		g, log := restoredGrid(t, 1, other)
		g.base.Archive = k
		g.start(0)
		g.until(func() bool { return log.has("the archive is of another history") && k.count() > 1 }, "it is not reported")
		if rec := g.store.List()[0]; rec.Epoch != 0 {
			t.Fatalf("the partition was claimed: %+v", rec)
		}
	})
	t.Run("no archive", func(t *testing.T) {
		g, log := restoredGrid(t, 1, point)
		g.start(0)
		g.until(func() bool { return log.has("give every node --restore-from") }, "it is not reported")
		if rec := g.store.List()[0]; rec.Epoch != 0 {
			t.Fatalf("the partition was claimed: %+v", rec)
		}
	})
}
