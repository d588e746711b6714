package machine

import (
	"fmt"
	"strings"
	"testing"

	"github.com/ordergrid/ordergrid/grid-node/order"
)

// said applies a position of a reader as the next entry, or returns the error.
func said(m *Machine, seq, to uint64, name string) error {
	e := &order.Entry{Kind: order.KindReader, Seq: seq}
	payload := order.AppendReader(nil, to, name)
	if err := m.Check(e, payload); err != nil {
		return err
	}
	m.Apply(e, payload)
	return nil
}

func TestReadersComeMoveAndGo(t *testing.T) {
	var m Machine
	m.Begin(8, 0)
	for i, step := range []struct {
		to          uint64
		name        string
		archive, db int64 // -1: the log has no such reader
	}{
		{10, "db", -1, 10}, {20, "archive", 20, 10}, {15, "db", 20, 15},
		{5, "db", 20, 15}, // a position never goes back
		{order.ReaderGone, "archive", -1, 15}, {3, "archive", 3, 15}, {order.ReaderGone, "db", 3, -1}, {order.ReaderGone, "archive", -1, -1},
	} {
		if err := said(&m, uint64(100+i), step.to, step.name); err != nil {
			t.Fatalf("step %d: %v", i, err)
		}
		for name, want := range map[string]int64{"archive": step.archive, "db": step.db} {
			if p, found := m.Cursors.Reader(name); found != (want >= 0) || found && p.To != uint64(want) {
				t.Errorf("step %d: %s is at %+v, %t; want %d", i, name, p, found, want)
			}
		}
		if m.Digest() != m.Recount() || (m.Cursors.sum == 0) != (len(m.Cursors.Readers) == 0) {
			t.Errorf("step %d: the digest is not of the readers there are", i)
		}
	}
	if m.Cursors.Data != 0 {
		t.Error("a position counts as data")
	}
}

func TestReadersAreRefused(t *testing.T) {
	var m Machine
	m.Begin(8, 0)
	for i := range MaxReaders {
		if err := said(&m, 100, 50, fmt.Sprint("r", i)); err != nil {
			t.Fatal(err)
		}
	}
	for name, c := range map[string]struct {
		to   uint64
		name string
		want string
	}{
		"one too many":      {50, "another", `reader "another" is the 17th, allowed: 16`},
		"of no entry":       {100, "r1", `reader "r1" holds entries up to 100, allowed: entries before it`},
		"gone, never there": {order.ReaderGone, "another", `reader "another" goes, allowed: one that the log has`},
	} {
		if err := said(&m, 100, c.to, c.name); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}

func TestMovingAReaderAllocatesNothing(t *testing.T) {
	var m Machine
	m.Begin(8, 0)
	e, payload := &order.Entry{Kind: order.KindReader, Seq: 100}, order.AppendReader(nil, 50, "db")
	if n := testing.AllocsPerRun(100, func() {
		if m.Check(e, payload) == nil {
			m.Apply(e, payload)
		}
	}); n > 0 {
		t.Errorf("%v allocations", n)
	}
}
