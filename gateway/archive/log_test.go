package archive

import (
	"context"
	"encoding/binary"
	"errors"
	"testing"
	"time"

	"github.com/ordergrid/ordergrid/client"
	"github.com/ordergrid/ordergrid/gateway/sink"
	"github.com/ordergrid/ordergrid/grid-node/order"
	"github.com/ordergrid/ordergrid/grid-node/wire"
	"github.com/ordergrid/ordergrid/probe/fixorder"
)

// testLog makes the committed log of a partition as a primary would: an epoch, a session, orders.
type testLog struct {
	t       testing.TB
	maker   *fixorder.Maker
	entries []client.LogEntry
	hash    uint64
	seq     uint64
	epoch   uint32
	lineage uint32
	client  uint64
}

// began is when the first entry was received.
var began = time.Date(2026, 3, 2, 9, 30, 0, 0, time.UTC)

func newLog(t testing.TB) *testLog {
	t.Helper()
	m, err := fixorder.NewMaker(fixorder.FIX44, fixorder.ID{Run: 7})
	if err != nil {
		t.Fatal(err)
	}
	l := &testLog{t: t, maker: m, lineage: 1}
	l.begin(1)
	l.add(order.Entry{Kind: order.KindSessionOpen, ClientSeq: 1}, binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint64(nil, 11), 22))
	return l
}

// logOf returns a log of n entries.
func logOf(t testing.TB, n int) *testLog {
	t.Helper()
	l := newLog(t)
	l.orders(n - len(l.entries))
	return l
}

// begin starts an epoch.
func (l *testLog) begin(epoch uint32) {
	l.epoch = epoch
	l.add(order.Entry{Kind: order.KindNoop}, binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint64(nil, uint64(l.lineage)), 99))
}

func (l *testLog) orders(n int) {
	for range n {
		l.client++
		fix := l.maker.Make(int64(l.client), int64(l.client), began, began)
		var o order.Order
		if err := order.Parse(fix, &o); err != nil {
			l.t.Fatal(err)
		}
		l.add(order.Entry{Kind: order.KindOrder, ClientSeq: l.client, Fields: o.Fields}, fix)
	}
}

func (l *testLog) add(e order.Entry, payload []byte) {
	l.seq++
	e.Size, e.Seq, e.PrevHash, e.Epoch = uint32(order.HeaderSize+len(payload)), l.seq, l.hash, l.epoch
	e.TimeNs = began.Add(time.Duration(l.seq) * time.Microsecond).UnixNano()
	b := make([]byte, order.HeaderSize, int(e.Size))
	e.Put(b)
	b = append(b, payload...)
	l.hash = order.Hash(b)
	l.entries = append(l.entries, client.LogEntry{Entry: e, Bytes: b})
}

// batch of the entries from..to.
func (l *testLog) batch(from, to uint64) *sink.Batch {
	b := &sink.Batch{Partition: part, From: from, Entries: l.entries[from-1 : to]}
	last := l.entries[to-1]
	b.Through = client.Position{Seq: to, Hash: order.Hash(last.Bytes), Lineage: l.lineage}
	for _, e := range b.Entries {
		b.Bytes += len(e.Bytes)
		if e.Kind == order.KindOrder {
			b.Orders++
		}
	}
	return b
}

const (
	grid = "trades"
	part = wire.PartitionID(3)
)

// small segments, so that a few batches are merged.
var small = Options{Grid: grid, SegmentEntries: 100}

func openWriter(t testing.TB, s Store, o Options) *writer {
	t.Helper()
	w, err := NewTarget(s, o).Open(t.Context(), part)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { w.Close() }) //nolint:errcheck // it never fails
	return w.(*writer)
}

// write writes the entries from..to in batches of n.
func write(t testing.TB, w sink.Writer, l *testLog, from, to, n uint64) {
	t.Helper()
	for ; from <= to; from += n {
		if err := w.Write(t.Context(), l.batch(from, min(from+n-1, to))); err != nil {
			t.Fatalf("entry %d: %v", from, err)
		}
	}
}

// settle waits until nothing is merged.
func (w *writer) settle() {
	for {
		w.mu.Lock()
		merging := w.merging
		w.mu.Unlock()
		if merging == nil {
			return
		}
		<-merging
	}
}

func verifyAll(t testing.TB, s Store) *PartitionReport {
	t.Helper()
	r, err := OpenReader(t.Context(), s, grid)
	if err != nil {
		t.Fatal(err)
	}
	report, err := r.Verify(t.Context(), part)
	if err != nil {
		t.Fatal(err)
	}
	return report
}

// holds fails unless the archive has exactly the entries from..to of the log, byte for byte.
func holds(t testing.TB, s Store, l *testLog, from, to uint64) *PartitionReport {
	t.Helper()
	report := verifyAll(t, s)
	if !report.Intact() || report.First != from || report.Last != to || report.Entries != to-from+1 {
		t.Fatalf("the archive has %d entries %d..%d and the problems %v, allowed: %d..%d and none", report.Entries, report.First, report.Last, report.Problems, from, to)
	}
	r, err := OpenReader(t.Context(), s, grid)
	if err != nil {
		t.Fatal(err)
	}
	next := from
	err = r.Entries(t.Context(), part, 0, 0, func(e *client.LogEntry) error {
		if e.Seq != next || string(e.Bytes) != string(l.entries[next-1].Bytes) {
			t.Fatalf("entry %d of the archive is not entry %d of the log", e.Seq, next)
		}
		next++
		return nil
	})
	if err != nil || next != to+1 {
		t.Fatalf("entries up to %d were read: %v", next-1, err)
	}
	return report
}

func permanent(t testing.TB, err error) *sink.PermanentError {
	t.Helper()
	var p *sink.PermanentError
	if !errors.As(err, &p) {
		t.Fatalf("the error is %v, allowed: one that is permanent", err)
	}
	return p
}

func names(t testing.TB, s Store, prefix string) (names []string) {
	t.Helper()
	for o, err := range s.List(context.Background(), prefix) {
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, o.Name)
	}
	return names
}
