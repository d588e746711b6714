package kafka

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/ordergrid/ordergrid/client"
	"github.com/ordergrid/ordergrid/gateway/sink"
	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// writer has a transactional producer of its own.
type writer struct {
	t  *Target
	cl *kgo.Client
	p  wire.PartitionID
	places

	at      client.Position
	held    position // what the next record of the positions topic goes on from
	err     error    // of the first Write that failed: the client must not recover by itself what may be fenced
	records records

	mu     sync.Mutex
	failed error // of a record of the present transaction
	next   int64 // behind the last order that was acknowledged
	nextX  int64 // behind the last execution that was
}

// Position implements sink.Writer.
func (w *writer) Position() client.Position { return w.at }

// Close implements sink.Writer. A transaction that is open is left to the next Open, or to its timeout.
func (w *writer) Close() error {
	w.cl.Close()
	return nil
}

// Write implements sink.Writer.
func (w *writer) Write(ctx context.Context, b *sink.Batch) error {
	if w.err != nil {
		return w.err
	}
	w.err = w.t.explain(w.write(ctx, b))
	return w.err
}

func (w *writer) write(ctx context.Context, b *sink.Batch) error {
	if err := w.cl.BeginTransaction(); err != nil {
		return fmt.Errorf("begin transaction: %w", err)
	}
	w.failed, w.next, w.nextX = nil, 0, 0
	next := w.held
	next.Version, next.Grid, next.Sink = positionVersion, w.t.cfg.Grid, w.t.cfg.Sink
	rs := &w.records
	rs.begin(w, b.Orders, len(b.Executions))
	for i := range b.Entries {
		e := &b.Entries[i]
		if next.Epoch = e.Epoch; !e.Kind.IsOrder() || w.orders == nil {
			continue
		}
		w.cl.Produce(ctx, rs.order(e, b.Through.Lineage, next.LastOrder), w.produced)
		next.LastOrder = e.Seq
	}
	w.executed(ctx, b, &next)
	next.Lineage, next.Seq, next.Hash = b.Through.Lineage, b.Through.Seq, fmt.Sprintf("%016x", b.Through.Hash)
	if w.orders != nil {
		next.Offset += int64(b.Orders) // at least: markers come in between
	}
	value, err := json.Marshal(&next)
	if err != nil {
		return err
	}
	w.cl.Produce(ctx, &kgo.Record{Topic: w.positions.topic, Partition: w.positions.partition, Key: []byte(w.p.String()), Value: value}, w.produced)
	if err := w.cl.Flush(ctx); err != nil {
		return fmt.Errorf("write entries %d..%d: %w", b.From, b.Through.Seq, err)
	}
	if w.failed != nil {
		return fmt.Errorf("write entries %d..%d: %w", b.From, b.Through.Seq, w.failed)
	}
	if err := w.cl.EndTransaction(ctx, kgo.TryCommit); err != nil {
		return fmt.Errorf("commit entries %d..%d: %w", b.From, b.Through.Seq, err)
	}
	next.Offset = max(next.Offset, w.next)
	if next.Executions != nil {
		next.Executions.Offset = max(next.Executions.Offset, w.nextX)
	}
	w.held, w.at = next, b.Through
	return nil
}

// executed produces the executions of a batch, and moves the next position over them.
func (w *writer) executed(ctx context.Context, b *sink.Batch, next *position) {
	if w.executions == nil {
		return
	}
	held := *next.Executions
	entries, epoch := b.Entries, uint32(0)
	for i := range b.Executions {
		e := &b.Executions[i]
		for len(entries) > 0 && entries[0].Seq <= e.Entry {
			epoch, entries = entries[0].Epoch, entries[1:]
		}
		w.cl.Produce(ctx, w.records.execution(e, b.Through.Lineage, epoch, held.Last), w.produced)
		held.Last = executionID(e)
	}
	held.Offset += int64(len(b.Executions)) // at least: markers come in between
	next.Executions = &held
}

// produced is called when a record is acknowledged or given up.
func (w *writer) produced(r *kgo.Record, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case err != nil && w.failed == nil:
		w.failed = err
	case err == nil && w.orders != nil && r.Topic == w.orders.topic:
		w.next = max(w.next, r.Offset+1)
	case err == nil && w.executions != nil && r.Topic == w.executions.topic:
		w.nextX = max(w.nextX, r.Offset+1)
	}
}
