package archive_test

import (
	"bytes"
	"testing"

	"github.com/ordergrid/ordergrid/client"
	"github.com/ordergrid/ordergrid/e2e/downstream"
	"github.com/ordergrid/ordergrid/e2e/testgrid"
	"github.com/ordergrid/ordergrid/gateway/archive"
	"github.com/ordergrid/ordergrid/grid-node/order"
	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// Primaries are killed under load, and grid-sink too, without warning. The archive is the log of the grid, byte for byte,
// with every order that was acknowledged, and a replay of it has the sessions.
func TestGridKilled(t *testing.T) {
	kills := downstream.Kills(t, 2)
	dir := t.TempDir()
	g := testgrid.Run(t, "--external-sink", "archive")
	c := downstream.Dial(t, g)
	begin := func() *downstream.Sink {
		return downstream.StartSink(t, g, "archive", "archive", "--url", dir, "--linger", "50ms", "--segment-entries", "2000")
	}
	writer := begin()
	acked, last := downstream.KillUnderLoad(t, c, g, kills, 1000, func(int) {
		writer.Kill()
		writer = begin()
	})
	s, err := archive.OpenDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	r, err := archive.OpenReader(t.Context(), s, "dev")
	if err != nil {
		t.Fatal(err)
	}
	downstream.WaitFor(t, "the archive to hold all orders", func() bool {
		for p, seq := range last {
			if v, err := r.Verify(t.Context(), p); err != nil || !v.Intact() {
				t.Fatalf("%s: %v %v", p, v, err)
			} else if v.Last < seq {
				return false
			}
		}
		return true
	})
	writer.Stop()
	for p := range last {
		compare(t, c, r, p, acked)
	}
	t.Logf("%d primaries and %d times grid-sink killed; %d orders acknowledged", kills, kills, len(acked))
}

// compare compares a partition with the log of its primary.
func compare(t *testing.T, c *client.Client, r *archive.Reader, p wire.PartitionID, acked map[wire.OrderID]string) {
	t.Helper()
	var archived [][]byte
	orders := map[uint64]string{}
	err := r.Entries(t.Context(), p, 0, 0, func(e *client.LogEntry) error {
		archived = append(archived, bytes.Clone(e.Bytes))
		if e.Kind == order.KindOrder {
			orders[e.Seq] = string(order.ClOrdID(e.Bytes))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for id, clOrdID := range acked {
		if id.Partition == p && orders[id.Seq] != clOrdID {
			t.Errorf("order %s was acknowledged as %s, and is in the archive as %q", clOrdID, id, orders[id.Seq])
		}
	}
	same := 0
	_, err = c.ReadLog(t.Context(), p, "", 1, func(e client.LogEntry) error {
		if int(e.Seq) <= len(archived) && !bytes.Equal(e.Bytes, archived[e.Seq-1]) {
			t.Errorf("%s: entry %d of the archive differs from the log's", p, e.Seq)
		}
		same++
		return nil
	})
	if err != nil || same < len(archived) {
		t.Fatalf("%s: the archive has %d entries, the log %d: %v", p, len(archived), same, err)
	}
	state, err := r.Replay(t.Context(), p)
	if err != nil || state.Problem != nil || state.Orders != uint64(len(orders)) || state.Sessions == 0 {
		t.Errorf("%s: the replay is %+v, %v", p, state, err)
	}
}
