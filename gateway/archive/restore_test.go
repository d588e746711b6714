package archive_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ordergrid/ordergrid/client"
	"github.com/ordergrid/ordergrid/e2e/downstream"
	"github.com/ordergrid/ordergrid/e2e/testgrid"
	"github.com/ordergrid/ordergrid/gateway/archive"
	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// A grid with orders is archived, all of it is killed, and another one is restored from the archive. It has every
// archived order, answers its sessions as the first one did, goes on behind, and so does the archive. A damaged archive
// is refused.
func TestGridRestored(t *testing.T) {
	dir := t.TempDir()
	first := testgrid.Run(t, "--external-sink", "archive")
	writer := startWriter(t, first, dir)
	c := downstream.Dial(t, first)
	load := downstream.StartLoad(t, c, 4)
	session := testgrid.OpenSession(t, c.Table()[0].Primary.Address, 1)
	var acks []wire.Ack
	for n := range uint64(5) {
		acks = append(acks, session.Submit(n+1))
	}
	downstream.WaitFor(t, "3000 orders", func() bool { return load.Count() > 3000 })
	orders := load.Stop()
	points := map[wire.PartitionID]uint64{}
	for id := range orders {
		points[id.Partition] = max(points[id.Partition], id.Seq)
	}
	r := openArchive(t, dir)
	downstream.WaitFor(t, "the archive to hold all orders", func() bool {
		for p, seq := range points {
			if v, err := r.Verify(t.Context(), p); err != nil || v.Last < seq {
				return false
			}
		}
		return true
	})
	writer.Kill()
	first.Kill()
	if len(points) != 2 || points[0] < acks[4].Seq {
		t.Fatalf("orders up to %v, the session's up to %d", points, acks[4].Seq)
	}

	refuseDamaged(t, dir)

	second := testgrid.Run(t, "--external-sink", "archive", "--restore-from", dir)
	c = downstream.Dial(t, second)
	downstream.WaitForCopies(t, c)
	hasOrders(t, c, orders)
	answersAgain(t, c.Table()[0].Primary.Address, acks, points[0])
	writer = startWriter(t, second, dir) // the same archive goes on
	more, err := c.Submit(t.Context(), testgrid.Order("BEHIND", 305))
	if err != nil || more.Seq <= points[more.Partition] || more.Lineage != 2 {
		t.Fatalf("a new order: %+v, %v", more, err)
	}
	downstream.WaitFor(t, "the archive to go on", func() bool {
		v, err := r.Verify(t.Context(), more.Partition)
		return err == nil && v.Intact() && v.Last >= more.Seq && v.Lineage == 2
	})
	writer.Stop()
	out, err := exec.Command(testgrid.Program(t, "grid-node"), "verify", "--grid", "dev", "--endpoint", strings.Join(second.Endpoints, ",")).CombinedOutput()
	if err != nil || !bytes.Contains(bytes.ToUpper(out), []byte("EQUAL")) {
		t.Errorf("verify: %v\n%s", err, out)
	}
}

func startWriter(t *testing.T, g *testgrid.Grid, dir string) *downstream.Sink {
	t.Helper()
	return downstream.StartSink(t, g, "archive", "archive", "--url", dir, "--linger", "50ms", "--segment-entries", "2000")
}

// hasOrders: each acknowledged order is found by its number and by its ClOrdID.
func hasOrders(t *testing.T, c *client.Client, orders map[wire.OrderID]string) {
	t.Helper()
	for id, clOrdID := range orders {
		if o, err := c.Get(t.Context(), id); err != nil || !bytes.Contains(o.FIX, []byte("\x0111="+clOrdID+"\x01")) {
			t.Fatalf("order %s, acknowledged as %s: %v, %q", clOrdID, id, err, o.FIX)
		}
		if o, err := c.GetByClOrdID(t.Context(), clOrdID); err != nil || o.ID != id {
			t.Fatalf("order %s, acknowledged as %s: %v, %v", clOrdID, id, err, o.ID)
		}
	}
}

// answersAgain: the session has the answers that it was given, and goes on behind the recovery point.
func answersAgain(t *testing.T, primary string, acks []wire.Ack, point uint64) {
	t.Helper()
	s := testgrid.OpenSession(t, primary, 2)
	for i, was := range acks {
		got := s.Submit(uint64(i) + 1)
		if got.Seq != was.Seq || got.Epoch != was.Epoch || got.Hash != was.Hash || got.Flags&wire.AckDup == 0 || got.Lineage != was.Lineage+1 {
			t.Errorf("order %d of the session was answered %+v, and is again %+v", i+1, was, got)
		}
	}
	if got := s.Submit(uint64(len(acks)) + 1); got.Flags&wire.AckDup != 0 || got.Seq <= point {
		t.Errorf("a new order of the session is answered %+v; the recovery point is %d or more", got, point)
	}
}

// refuseDamaged: a byte of the archive is another one. No grid is started from it, and the reason names the entry.
func refuseDamaged(t *testing.T, dir string) {
	t.Helper()
	damaged := t.TempDir()
	if err := os.CopyFS(damaged, os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	objects, err := filepath.Glob(filepath.Join(damaged, "dev", "*", "*", "*"))
	if err != nil || len(objects) == 0 {
		t.Fatalf("%d objects, %v", len(objects), err)
	}
	largest, size := "", int64(0)
	for _, o := range objects {
		if i, err := os.Stat(o); err == nil && i.Size() > size {
			largest, size = o, i.Size()
		}
	}
	b, err := os.ReadFile(largest)
	if err != nil {
		t.Fatal(err)
	}
	b[len(b)/2] ^= 1
	if err := os.WriteFile(largest, b, 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command(testgrid.Program(t, "grid-node"), "dev", "--json", "--port", "0", "--http-port", "0", "--restore-from", damaged).CombinedOutput()
	if err == nil || !bytes.Contains(out, []byte("cannot be restored")) || !bytes.Contains(out, []byte("entries up to ")) || bytes.Contains(out, []byte("endpoints")) {
		t.Errorf("a damaged archive: %v\n%s", err, out)
	}
	t.Logf("a damaged archive is refused:\n%s", out)
}

func openArchive(t *testing.T, dir string) *archive.Reader {
	t.Helper()
	s, err := archive.OpenDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var r *archive.Reader
	downstream.WaitFor(t, "the archive to begin", func() bool {
		r, err = archive.OpenReader(t.Context(), s, "dev")
		return err == nil
	})
	return r
}
