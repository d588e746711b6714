package main

import (
	"bytes"
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/ordergrid/ordergrid/client"
	"github.com/ordergrid/ordergrid/gateway/archive"
	"github.com/ordergrid/ordergrid/gateway/sink"
	"github.com/ordergrid/ordergrid/grid-node/order"
	"github.com/ordergrid/ordergrid/probe/fixorder"
)

// archived writes the log of a partition with 20 orders of a kind into a directory, and returns the name of its batch.
func archived(t *testing.T, dir string, kind order.Kind) string {
	t.Helper()
	s, err := archive.OpenDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	target := archive.NewTarget(s, archive.Options{Grid: "trades"})
	w, err := target.Open(t.Context(), 1)
	if err != nil {
		t.Fatal(err)
	}
	b := sink.Batch{Partition: 1, From: 1}
	add := func(e order.Entry, payload []byte) {
		e.Seq, e.PrevHash, e.Epoch, e.TimeNs = uint64(len(b.Entries)+1), b.Through.Hash, 4, 1_767_000_000_000_000_000
		e.Size = uint32(order.HeaderSize + len(payload))
		p := make([]byte, order.HeaderSize)
		e.Put(p)
		p = append(p, payload...)
		b.Entries = append(b.Entries, client.LogEntry{Entry: e, Bytes: p})
		b.Through = client.Position{Seq: e.Seq, Hash: order.Hash(p), Lineage: 1}
	}
	add(order.Entry{Kind: order.KindNoop}, binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint64(nil, 1), 7))
	add(order.Entry{Kind: order.KindSessionOpen, ClientSeq: 1}, make([]byte, 16))
	m, err := fixorder.NewMaker(fixorder.FIX42, fixorder.ID{})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 20 {
		fix := bytes.Clone(m.Make(int64(i), int64(i+1), time.Unix(1_767_000_000, 0), time.Unix(1_767_000_000, 0)))
		var o order.Order
		if err := order.Parse(fix, &o); err != nil {
			t.Fatal(err)
		}
		if kind == order.KindExecute {
			o.Fields, fix = o.Fields.Instructed(), append((&order.Instruction{Op: order.InstructEnter}).Append(nil), fix...)
		}
		add(order.Entry{Kind: kind, ClientSeq: uint64(i + 1), Fields: o.Fields}, fix)
	}
	if err := errors.Join(w.Write(t.Context(), &b), w.Close(), target.Close()); err != nil {
		t.Fatal(err)
	}
	return filepath.Join(dir, "trades/p1/tail/00000000000000000001-000001.ogs")
}

// coded returns what a command prints, its error too, and its exit code.
func coded(args ...string) (string, int) {
	out, err := run(args...)
	var exit exitError
	var usage usageError
	switch {
	case err == nil:
		return out, 0
	case errors.As(err, &exit):
		return out, int(exit)
	case errors.As(err, &usage):
		return out + err.Error(), exitUsage
	}
	return out + err.Error(), exitFailed
}

// TestArchiveOfMatchedOrders: the order messages of a partition that matches are orders, and read as they were sent.
func TestArchiveOfMatchedOrders(t *testing.T) {
	stored, matched := t.TempDir(), t.TempDir()
	archived(t, stored, order.KindOrder)
	archived(t, matched, order.KindExecute)
	for _, args := range []string{"ls DIR", "verify DIR", "cat DIR -o fix", "cat DIR -o fix --clordid " + fixorder.ID{}.ClOrdID(7), "cat DIR -o text --from 3 --to 3"} {
		var said [2]string
		for i, dir := range []string{stored, matched} {
			out, code := coded(append([]string{"archive"}, strings.Fields(strings.ReplaceAll(args, "DIR", dir))...)...)
			if said[i] = out; code != 0 || out == "" {
				t.Fatalf("%s: exit code %d:\n%s", args, code, out)
			}
		}
		if strings.HasPrefix(args, "cat") && said[0] != said[1] {
			t.Errorf("%s: of a grid that matches\n%s\nof one that stores\n%s", args, said[1], said[0])
		} else if orders := regexp.MustCompile(`\b20\b`); !strings.HasPrefix(args, "cat") && !orders.MatchString(said[1]) {
			t.Errorf("%s: 20 orders are not counted:\n%s", args, said[1])
		}
	}
}

func TestArchiveCommands(t *testing.T) {
	dir := t.TempDir()
	object := archived(t, dir, order.KindOrder)
	id := fixorder.ID{}.ClOrdID(7)
	for _, c := range []struct {
		args string
		code int
		want string
	}{
		{"ls DIR", 0, "p1/tail/00000000000000000001-000001.ogs  1      22    20"},
		{"ls DIR -o json", 0, `"first":1,"last":22,"entries":22,"orders":20`},
		{"verify DIR", 0, "INTACT"},
		{"verify DIR -o json", 0, `"orders": 20`},
		{"cat DIR --clordid " + id, 0, `"id":"p1/10"`},
		{"cat DIR --from 3 --to 3 -o fix", 0, "8=FIX.4.2"},
		{"cat DIR --clordid nothing", 1, "no order of the archive has it"},
		{"restore --dry-run DIR", 0, "RESTORABLE"},
		{"restore DIR", 2, "--dry-run"},
		{"ls", 2, "the URL of one archive"},
		{"ls DIR -o yaml", 2, "table, json"},
		{"ls ftp://x", 2, `scheme "ftp"`},
		{"cat DIR --from 5 --to 4", 2, "--to: value 4"},
		{"ls DIR --partition p9", 4, "has no p9"},
		{"ls DIR --grid other", 4, `no grid "other", allowed: trades`},
		{"verify DIR/nothing", 4, "is empty"},
	} {
		args := append([]string{"archive"}, strings.Fields(strings.ReplaceAll(c.args, "DIR", dir))...)
		if out, code := coded(args...); code != c.code || !strings.Contains(out, c.want) {
			t.Errorf("%s: exit code %d, allowed: %d with %q:\n%s", c.args, code, c.code, c.want, out)
		}
	}
	data, err := os.ReadFile(object)
	if err != nil {
		t.Fatal(err)
	}
	data[len(data)-30] ^= 4
	if err := os.WriteFile(object, data, 0o600); err != nil {
		t.Fatal(err)
	}
	for args, want := range map[string]string{"verify": "DAMAGED", "cat": "PROBLEM trades/p1/tail/00000000000000000001-000001.ogs, block 1", "restore --dry-run": "NOT RESTORABLE"} {
		if out, code := coded(append(append([]string{"archive"}, strings.Fields(args)...), dir)...); code != 1 || !strings.Contains(out, want) {
			t.Errorf("%s of a damaged archive: exit code %d:\n%s", args, code, out)
		}
	}
	if err := os.Remove(object); err != nil {
		t.Fatal(err)
	}
	if out, code := coded("archive", "verify", dir); code != 1 || !strings.Contains(out, "EMPTY") {
		t.Errorf("verify of an archive without entries: exit code %d:\n%s", code, out)
	}
}
