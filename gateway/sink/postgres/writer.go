package postgres

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/ordergrid/ordergrid/client"
	"github.com/ordergrid/ordergrid/gateway/sink"
	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// writer writes one partition over a connection of its own.
type writer struct {
	t         *Target
	conn      *pgx.Conn
	partition wire.PartitionID
	number    int64 // in the fence
	at        client.Position

	copy, copyExecutions, fence, others string // statements and tables

	rows          rows // for its buffer, as executions
	executions    executionRows
	from, through []int64
}

// Position implements sink.Writer.
func (w *writer) Position() client.Position { return w.at }

// Close implements sink.Writer.
func (w *writer) Close() error { return disconnect(w.conn) }

// Write implements sink.Writer: fence, entries without a row, orders, executions, in one transaction. The row of the fence comes
// first and stays locked until the end, so a writer that was replaced fails before it sends an order.
func (w *writer) Write(ctx context.Context, b *sink.Batch) error {
	if err := w.check(b); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, w.t.o.WriteTimeout)
	defer cancel()
	w.t.days.cover(ctx, w.conn, b)
	err := w.write(ctx, b)
	if err == nil {
		w.at = b.Through
		return nil
	}
	if errors.Is(err, sink.ErrFenced) || w.replaced() {
		err = fmt.Errorf("%s behind entry %d: %w", b.Partition, w.at.Seq, sink.ErrFenced)
	}
	_ = disconnect(w.conn) // it may be in a failed transaction
	return err
}

// check reports a batch that is not the next part of the log, and collects the runs of entries without a row: those that
// are no orders, or where executions are written alone those without any.
func (w *writer) check(b *sink.Batch) error {
	if b.Partition != w.partition || b.From != w.at.Seq+1 && w.at.Seq != 0 || uint64(len(b.Entries)) != b.Through.Seq-b.From+1 {
		return fmt.Errorf("batch of %s with %d entries from %d through %d, allowed: the next of %s behind entry %d", b.Partition, len(b.Entries), b.From, b.Through.Seq, w.partition, w.at.Seq)
	}
	w.from, w.through = w.from[:0], w.through[:0]
	orders, last, executions := 0, -1, b.Executions
	for i := range b.Entries {
		e := &b.Entries[i]
		switch {
		case e.Seq != b.From+uint64(i):
			return fmt.Errorf("batch of %s: entry %d at the place of %d", b.Partition, e.Seq, b.From+uint64(i))
		case e.Kind.IsOrder():
			orders++
		}
		before := len(executions)
		for len(executions) > 0 && executions[0].Entry <= e.Seq {
			executions = executions[1:]
		}
		if w.t.o.OnlyExecutions && len(executions) < before || !w.t.o.OnlyExecutions && e.Kind.IsOrder() {
			continue
		}
		if last < 0 || last != i-1 {
			w.from, w.through = append(w.from, int64(e.Seq)), append(w.through, int64(e.Seq))
		} else {
			w.through[len(w.through)-1] = int64(e.Seq)
		}
		last = i
	}
	if len(executions) > 0 {
		return fmt.Errorf("batch of %s from %d through %d has an execution of entry %d", b.Partition, b.From, b.Through.Seq, executions[0].Entry)
	}
	if orders != b.Orders {
		return fmt.Errorf("batch of %s from %d through %d has %d orders, its field Orders is %d", b.Partition, b.From, b.Through.Seq, orders, b.Orders)
	}
	return nil
}

const advance = `
UPDATE %[1]s SET lineage = $1, epoch = $2, seq = $3, hash = $4, first_seq = CASE seq WHEN 0 THEN $5 ELSE first_seq END, orders = orders + $6,
       received = coalesce($7, received), written = now()
WHERE grid = $8 AND "partition" = $9 AND writer = $10 AND seq = $11 AND hash = $12`

func (w *writer) write(ctx context.Context, b *sink.Batch) error {
	what := fmt.Sprintf("entries %d to %d of %s", b.From, b.Through.Seq, b.Partition)
	last, orders := &b.Entries[len(b.Entries)-1], b.Orders
	if w.t.o.OnlyExecutions {
		orders = 0
	}
	var batch pgx.Batch
	batch.BeginTx(pgx.TxOptions{})
	batch.Queue(fmt.Sprintf(advance, w.fence), int64(b.Through.Lineage), int64(last.Epoch), int64(b.Through.Seq), int64(b.Through.Hash), int64(b.From), int64(orders),
		received(b.Entries), w.t.o.Grid, int32(w.partition), w.number, int64(w.at.Seq), int64(w.at.Hash))
	if len(w.from) > 0 {
		batch.Queue(`INSERT INTO `+w.others+` SELECT $1, $2, f, t FROM unnest($3::bigint[], $4::bigint[]) AS x (f, t)`, w.t.o.Grid, int32(w.partition), w.from, w.through)
	}
	results := w.conn.SendBatch(ctx, &batch)
	tx := results.Tx()
	_, err := results.Exec() // begin
	if err == nil {
		tag, failed := results.Exec()
		if err = failed; err == nil && tag.RowsAffected() != 1 {
			_ = results.Close() // the row decides
			return w.refused(ctx, what)
		}
	}
	if closed := results.Close(); err == nil {
		err = closed
	}
	if err != nil {
		return explain(what, err)
	}
	if orders > 0 {
		if err := w.copyOrders(ctx, b); err != nil {
			return explain(what, err)
		}
	}
	if len(b.Executions) > 0 {
		if err := w.copyExecuted(ctx, b); err != nil {
			return explain(what, err)
		}
	}
	return explain(what, tx.Commit(ctx))
}

func (w *writer) copyOrders(ctx context.Context, b *sink.Batch) error {
	r := &w.rows
	*r = rows{copyData: r.copyData, grid: []byte(w.t.o.Grid), part: w.partition, entries: b.Entries, lineage: w.lineage(b)}
	r.begin(r.next)
	tag, err := w.conn.PgConn().CopyFrom(ctx, r, w.copy)
	r.entries = nil
	switch {
	case r.err != nil:
		return &sink.PermanentError{What: "COPY", Err: r.err, Remedy: "report it: the grid accepts no such order"}
	case err != nil:
		return err
	case tag.RowsAffected() != int64(b.Orders):
		return fmt.Errorf("%d orders were copied, want %d", tag.RowsAffected(), b.Orders)
	}
	return nil
}

func (w *writer) copyExecuted(ctx context.Context, b *sink.Batch) error {
	r := &w.executions
	*r = executionRows{copyData: r.copyData, grid: []byte(w.t.o.Grid), part: w.partition, list: b.Executions, entries: b.Entries, lineage: w.lineage(b)}
	r.begin(r.next)
	tag, err := w.conn.PgConn().CopyFrom(ctx, r, w.copyExecutions)
	r.list, r.entries = nil, nil
	if err == nil && tag.RowsAffected() != int64(len(b.Executions)) {
		err = fmt.Errorf("%d executions were copied, want %d", tag.RowsAffected(), len(b.Executions))
	}
	return err
}

// lineage is that of the log before the batch.
func (w *writer) lineage(b *sink.Batch) uint32 {
	if w.at.Lineage == 0 {
		return b.Through.Lineage
	}
	return w.at.Lineage
}

// received is when the last order of a batch was received; nil if it has none.
func received(entries []client.LogEntry) *time.Time {
	for i := len(entries) - 1; i >= 0; i-- {
		if entries[i].Kind.IsOrder() {
			at := time.Unix(0, entries[i].TimeNs).UTC()
			return &at
		}
	}
	return nil
}

// refused reports why the fence's row is not as this writer left it.
func (w *writer) refused(ctx context.Context, what string) error {
	if _, err := w.conn.Exec(ctx, "ROLLBACK"); err != nil {
		return explain(what, err)
	}
	number, seq, err := w.row(ctx, w.conn)
	switch {
	case err == nil && number != w.number:
		return sink.ErrFenced
	case errors.Is(err, pgx.ErrNoRows):
		return &sink.PermanentError{What: fmt.Sprintf("the row of %s in %s is gone", w.partition, w.fence), Remedy: "put it back with seq, hash, lineage and epoch of the last entry in orders and others, or empty the tables"}
	case err != nil:
		return explain(what, err)
	}
	return fmt.Errorf("%s: the row of %s in %s is at entry %d, was left at %d: it was changed by hand; it is read again", what, w.partition, w.fence, seq, w.at.Seq)
}

func (w *writer) row(ctx context.Context, conn *pgx.Conn) (number, seq int64, err error) {
	err = conn.QueryRow(ctx, "SELECT writer, seq FROM "+w.fence+` WHERE grid = $1 AND "partition" = $2`, w.t.o.Grid, int32(w.partition)).Scan(&number, &seq)
	return number, seq, err
}

// replaced reports whether a lost connection was ended by another writer: it looks at the fence over a new one. An error
// there means no.
func (w *writer) replaced() bool {
	if !w.conn.IsClosed() {
		return false
	}
	ctx, cancel := context.WithTimeout(context.Background(), connectTimeout)
	defer cancel()
	conn, err := connect(ctx, &w.t.o.Connection, application+" fence")
	if err != nil {
		return false
	}
	defer func() { _ = disconnect(conn) }() // it only read
	number, _, err := w.row(ctx, conn)
	return err == nil && number != w.number
}
