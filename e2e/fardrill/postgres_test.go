package fardrill

import (
	"bytes"
	"context"
	"fmt"
	"io"

	"github.com/jackc/pgx/v5"

	"github.com/ordergrid/ordergrid/e2e/downstream"
	"github.com/ordergrid/ordergrid/grid-node/order"
	"github.com/ordergrid/ordergrid/grid-node/wire"
	"github.com/ordergrid/ordergrid/probe/drill/collect"
)

// tables are the orders of a grid in PostgreSQL, as a recorder reads them: in the lines of a file sink.
type tables struct {
	server     *downstream.Postgres
	partitions int
}

// List implements collect.Sinks.
func (s tables) List(context.Context) (map[string]collect.Open, error) {
	out := map[string]collect.Open{}
	for i := range s.partitions {
		p := wire.PartitionID(i)
		out[fmt.Sprintf("of %s at PostgreSQL", p)] = func(ctx context.Context) (io.ReadCloser, error) { return s.read(ctx, p) }
	}
	return out, nil
}

// rows has orders and, with a kind that is no order's, each entry between them. Of those the table knows where they are.
const rows = `SELECT seq, epoch, lineage, hash, cl_ord_id, payload FROM ordergrid.orders WHERE "partition" = $1
UNION ALL SELECT s, 0, 0, 0, '', '' FROM ordergrid.others, generate_series(seq, through) s WHERE "partition" = $1
ORDER BY seq`

func (s tables) read(ctx context.Context, p wire.PartitionID) (io.ReadCloser, error) {
	c, err := pgx.Connect(ctx, s.server.Admin())
	if err != nil {
		return nil, err
	}
	defer func() { _ = c.Close(ctx) }()
	list, err := c.Query(ctx, rows, int(p))
	if err != nil {
		return nil, err
	}
	defer list.Close()
	var b bytes.Buffer
	fmt.Fprintf(&b, "# ordergrid sink v1 partition=%s\n", p)
	epoch, lineage := int64(0), int64(0) // those of an entry that is no order are not kept
	for list.Next() {
		var seq, e, l, hash int64
		var id string
		var fix []byte
		if err := list.Scan(&seq, &e, &l, &hash, &id, &fix); err != nil {
			return nil, err
		}
		kind := order.KindNoop
		if id != "" {
			kind, epoch, lineage = order.KindOrder, e, l
		}
		fmt.Fprintf(&b, "%d\t%d\t%d\t%s\t\t\t\t%016x\t%s\t%s\n", seq, epoch, lineage, kind, uint64(hash), id, bytes.ReplaceAll(fix, []byte{1}, []byte{'|'}))
	}
	return io.NopCloser(&b), list.Err()
}
