package node

import (
	"context"
	"log/slog"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/ordergrid/ordergrid/client"
	"github.com/ordergrid/ordergrid/gateway/archive"
	"github.com/ordergrid/ordergrid/gateway/sink"
	"github.com/ordergrid/ordergrid/grid-node/order"
	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// storedLog is a real archive.
type storedLog struct{ *archive.Reader }

func (s storedLog) Entries(ctx context.Context, p wire.PartitionID, from uint64, f func([]byte) error) error {
	return s.Reader.Entries(ctx, p, from, 0, func(e *client.LogEntry) error { return f(e.Bytes) })
}

// stored writes a log into an archive in a directory, in batches of 5,000 as a sink would.
func stored(t *testing.T, k *keptLog) storedLog {
	t.Helper()
	s, err := archive.OpenDir(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	target := archive.NewTarget(s, archive.Options{Grid: "g", Logger: slog.New(slog.DiscardHandler)})
	w, err := target.Open(t.Context(), 0)
	if err != nil {
		t.Fatal(err)
	}
	for at := 0; at < len(k.entries); at += 5000 {
		batch := sink.Batch{From: uint64(at) + 1}
		for _, bytes := range k.entries[at:min(at+5000, len(k.entries))] {
			var e order.Entry
			if _, err := order.DecodeEntry(bytes, &e); err != nil {
				t.Fatal(err)
			}
			batch.Entries = append(batch.Entries, client.LogEntry{Entry: e, Bytes: bytes})
			batch.Through = client.Position{Seq: e.Seq, Hash: order.Hash(bytes), Lineage: 1}
		}
		if err := w.Write(t.Context(), &batch); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	r, err := archive.OpenReader(t.Context(), s, "g")
	if err != nil {
		t.Fatal(err)
	}
	return storedLog{r}
}

// TestRestoreSpeed restores a partition from an archive in a directory, and then lets a learner catch up with it, turn
// by turn in one run: entries/s of both, and their ratio. It measures, and asserts nothing about time.
func TestRestoreSpeed(t *testing.T) {
	orders, err := strconv.Atoi(os.Getenv("ORDERGRID_RESTORE_ORDERS"))
	if err != nil {
		t.Skip("ORDERGRID_RESTORE_ORDERS is not set: how many orders the archive is to have")
	}
	k, _, point := lostGrid(t, orders)
	from := stored(t, k)
	for range 5 {
		g, _ := restoredGrid(t, 2, point)
		g.base.LearnerRate = 16 << 30
		reach := func(n int) time.Duration {
			began := time.Now()
			for len(g.store.List()[0].InSync) < n {
				time.Sleep(time.Millisecond)
			}
			return time.Since(began)
		}
		g.base.Archive = from
		g.start(0)
		restored := reach(1)
		g.base.Archive = nil
		g.start(1)
		learned := reach(2)
		t.Logf("%d entries: restored %.0f/s, learned %.0f/s, ratio %.2f", point.Seq, float64(point.Seq)/restored.Seconds(), float64(point.Seq)/learned.Seconds(), learned.Seconds()/restored.Seconds())
		g.kill(0)
		g.kill(1)
	}
}
