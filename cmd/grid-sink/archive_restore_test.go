package main

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/ordergrid/ordergrid/client"
	"github.com/ordergrid/ordergrid/gateway/archive"
	"github.com/ordergrid/ordergrid/gateway/sink"
	"github.com/ordergrid/ordergrid/grid-node/order"
	"github.com/ordergrid/ordergrid/grid-node/wire"
	"github.com/ordergrid/ordergrid/internal/command"
)

// archiveOf writes one entry of each partition.
func archiveOf(t *testing.T, parts ...wire.PartitionID) (dir string) {
	t.Helper()
	dir = t.TempDir()
	s, err := archive.OpenDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	target := archive.NewTarget(s, archive.Options{Grid: "trades"})
	for _, p := range parts {
		e := order.Entry{Kind: order.KindNoop, Seq: 1, Epoch: 4, TimeNs: 1_767_000_000_000_000_000, Size: order.HeaderSize + 16}
		b := make([]byte, order.HeaderSize, order.HeaderSize+16)
		e.Put(b)
		b = binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint64(b, 3), 7)
		w, err := target.Open(t.Context(), p)
		if err != nil {
			t.Fatal(err)
		}
		batch := sink.Batch{Partition: p, From: 1, Entries: []client.LogEntry{{Entry: e, Bytes: b}}, Through: client.Position{Seq: 1, Hash: order.Hash(b), Lineage: 3}}
		if err := errors.Join(w.Write(t.Context(), &batch), w.Close()); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// The operator reads the recovery point, or why there is none, and whether to try again.
func TestRestorePoint(t *testing.T) {
	dir := archiveOf(t, 0, 1)
	for _, c := range []struct{ args, want string }{ // in this order
		{"--partition 0 --partitions 3", ""},
		{"--partition 1 --partitions 2", ""},
		{"--partition 0 --partitions 1", "it has p1 of grid trades, and the restored grid has 1 partitions; create the grid with as many"},
		{"--partition 2 --partitions 3", "it has no p2 of grid trades, only p0 to p1; create the grid with as many"},
		{"--partition 2 --partitions 3 --empty-if-missing", ""},
		{"--partition 0 --partitions 2 --owner other", "taken for the restore of another grid, which begins lineage 4 behind entry 1"},
		{"--partition 0 --partitions 2 --owner other --supersede", ""},
	} {
		root, out := rootCommand(), &bytes.Buffer{}
		root.SetArgs(append(strings.Fields("archive restore-point --grid trades --owner me --url"), append([]string{dir}, strings.Fields(c.args)...)...))
		root.SetOut(out)
		root.SetErr(out)
		err := root.ExecuteContext(t.Context())
		if c.want != "" {
			if command.ExitCode(err) != exitRefused || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%s: %v, want a refusal with %q", c.args, err, c.want)
			}
			continue
		}
		var p archive.RecoveryPoint
		if err != nil || json.Unmarshal(out.Bytes(), &p) != nil {
			t.Errorf("%s: %v\n%s", c.args, err, out)
			continue
		}
		if empty := strings.Contains(c.args, "missing"); p.Seq == 0 != empty || !empty && (p.Epoch != 4 || p.Lineage < 3 || len(p.Hash) != 16) {
			t.Errorf("%s: %+v", c.args, p)
		}
	}
}
