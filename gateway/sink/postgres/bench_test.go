package postgres_test

import (
	"context"
	"math/big"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/ordergrid/ordergrid/client"
	"github.com/ordergrid/ordergrid/gateway/sink"
	"github.com/ordergrid/ordergrid/grid-node/order"
)

// BenchmarkBesideBareCopy: batches of the sink and of pgx's CopyFrom into the same table, in turn. Rows of the bare one
// are made before the clock starts; it has no fence.
func BenchmarkBesideBareCopy(b *testing.B) {
	p, o := migrated(b)
	w := open(b, o)
	conn, err := pgx.Connect(b.Context(), p.Admin())
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = conn.Close(context.Background()) })
	const size = 10_000
	s := newSource()
	var ours, bare time.Duration
	var n, m int
	for b.Loop() {
		batch := s.next(size)
		rows := rowsOf(batch)
		at := time.Now()
		if err := w.Write(b.Context(), batch); err != nil {
			b.Fatal(err)
		}
		ours += time.Since(at)
		n += batch.Orders
		at = time.Now()
		if _, err := conn.CopyFrom(b.Context(), pgx.Identifier{"ordergrid", "orders"}, columns, pgx.CopyFromRows(rows)); err != nil {
			b.Fatal(err)
		}
		bare += time.Since(at)
		m += len(rows)
	}
	perSecond, other := float64(n)/ours.Seconds(), float64(m)/bare.Seconds()
	b.ReportMetric(perSecond, "orders/s")
	b.ReportMetric(other, "bare/s")
	b.ReportMetric(perSecond/other, "ratio")
	b.ReportMetric(0, "ns/op")
}

var columns = []string{"grid", "partition", "seq", "epoch", "lineage", "hash", "received", "cl_ord_id", "symbol", "account", "side", "quantity", "price", "payload"}

// rowsOf are the orders of a batch for pgx, of another grid.
func rowsOf(b *sink.Batch) (rows [][]any) {
	for i := range b.Entries {
		e := &b.Entries[i]
		if e.Kind != order.KindOrder {
			continue
		}
		o, _ := (&client.LogEntry{Entry: e.Entry, Bytes: e.Bytes}).Order(0)
		quantity, price := pgtype.Numeric{Int: big.NewInt(100), Valid: true}, pgtype.Numeric{Int: big.NewInt(1225), Exp: -2, Valid: true}
		rows = append(rows, []any{"bare", int32(0), int64(e.Seq), int64(e.Epoch), int64(b.Through.Lineage), int64(o.Hash()), o.Received, o.ClOrdID, o.Symbol, o.Account, string(o.Side), quantity, price, o.FIX})
	}
	return rows
}
