package sink

import (
	"bytes"
	"context"
	"errors"
	"os"
	"sync"
	"testing"

	"github.com/ordergrid/ordergrid/client"
	"github.com/ordergrid/ordergrid/grid-node/order"
	"github.com/ordergrid/ordergrid/grid-node/wire"
)

func TestMain(m *testing.M) {
	code := m.Run()
	os.Exit(code)
}

// memory is a Target that is there for the time of a test: what real ones do is tested with them. It keeps what it is
// given as long as that is the chained log of a partition, and fails when it is told to.
type memory struct {
	mu   sync.Mutex
	logs map[wire.PartitionID]*memoryLog
	// fail is asked before (durable false) and after a batch is kept; an error of after leaves it unknown.
	fail   func(durable bool) error
	opened int
	broken error // the first thing that must not be
}

type memoryLog struct {
	writer  *memoryWriter
	at      client.Position
	entries [][]byte
	batches int
	largest int
}

func newMemory() *memory { return &memory{logs: map[wire.PartitionID]*memoryLog{}} }

func (m *memory) log(p wire.PartitionID) *memoryLog {
	if m.logs[p] == nil {
		m.logs[p] = &memoryLog{}
	}
	return m.logs[p]
}

func (m *memory) Open(_ context.Context, p wire.PartitionID) (Writer, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.opened++
	l := m.log(p)
	l.writer = &memoryWriter{m: m, l: l}
	return l.writer, nil
}

func (m *memory) Close() error { return nil }

type memoryWriter struct {
	m *memory
	l *memoryLog
}

func (w *memoryWriter) Position() client.Position {
	w.m.mu.Lock()
	defer w.m.mu.Unlock()
	return w.l.at
}

func (w *memoryWriter) Write(ctx context.Context, b *Batch) error {
	if w.m.fail != nil {
		if err := w.m.fail(false); err != nil {
			return err
		}
	}
	w.m.mu.Lock()
	defer w.m.mu.Unlock()
	switch {
	case w.l.writer != w:
		return ErrFenced
	case ctx.Err() != nil:
		return ctx.Err()
	}
	if err := w.check(b); err != nil {
		w.m.broken = errors.Join(w.m.broken, err)
	}
	for i := range b.Entries {
		w.l.entries = append(w.l.entries, bytes.Clone(b.Entries[i].Bytes))
	}
	w.l.at, w.l.batches, w.l.largest = b.Through, w.l.batches+1, max(w.l.largest, len(b.Entries))
	if w.m.fail != nil {
		return w.m.fail(true)
	}
	return nil
}

// check compares a batch with what the interface promises.
func (w *memoryWriter) check(b *Batch) error {
	size, orders, hash, seq := 0, 0, w.l.at.Hash, b.From-1
	for i := range b.Entries {
		e := &b.Entries[i]
		if e.Seq != seq+1 || hash != 0 && e.PrevHash != hash {
			return errors.New("a batch is no run of the log")
		}
		if e.Kind == order.KindOrder {
			orders++
		}
		size, seq, hash = size+len(e.Bytes), e.Seq, order.Hash(e.Bytes)
	}
	switch {
	case w.l.at.Seq != 0 && b.From != w.l.at.Seq+1:
		return errors.New("a batch does not follow the one before")
	case b.Through.Seq != seq || b.Through.Hash != hash || b.Through.Lineage == 0 || b.Bytes != size || b.Orders != orders || len(b.Entries) == 0:
		return errors.New("a batch does not say what is in it")
	}
	return nil
}

func (w *memoryWriter) Close() error { return nil }
