package server

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/ordergrid/ordergrid/client"
	"github.com/ordergrid/ordergrid/e2e/testgrid"
)

// BenchmarkGet gets an order by its key: by SQL, prepared, with a parameter and without, and by the client of the grid,
// in turns. Figures are medians, and the ratio of each to that of the client. The listener is in this process, so that
// the gateway of a figure has no process to wake.
func BenchmarkGet(b *testing.B) {
	g := testgrid.Start(b, testgrid.Options{MemoryMiB: 768, Args: []string{"--views", "256Mi", "--view-rows", "65536", "--log-level", "error"}})
	c, err := client.Dial(b.Context(), client.Config{Endpoints: g.Endpoints, IO: client.IONet})
	if err != nil {
		b.Fatal(err)
	}
	defer c.Close() //nolint:errcheck // it never fails
	const id = "C000007"
	if _, err := c.Submit(b.Context(), testgrid.Order(id, 300)); err != nil {
		b.Fatal(err)
	}
	sql := benchConnect(b, Config{Listen: "127.0.0.1:0", Open: true, Grid: c})
	const text = "select clordid, account, symbol, price, orderqty from orders where clordid = "
	for name, where := range map[string]string{"constant": "'" + id + "'", "parameter": "$1"} {
		if _, err := sql.Prepare(b.Context(), name, text+where, nil); err != nil {
			b.Fatal(err)
		}
	}
	rows := func(name string, values [][]byte) error {
		a := sql.ExecPrepared(b.Context(), name, values, nil, nil).Read()
		if a.Err == nil && len(a.Rows) != 1 {
			return fmt.Errorf("%d rows, want 1", len(a.Rows))
		}
		return a.Err
	}
	ways := []struct {
		name string
		get  func() error
	}{
		{"client", func() error { _, err := c.GetByClOrdID(b.Context(), id); return err }},
		{"sql", func() error { return rows("constant", nil) }},
		{"sql-parameter", func() error { return rows("parameter", [][]byte{[]byte(id)}) }},
	}
	took := make([][]time.Duration, len(ways))
	for b.Loop() {
		for i, way := range ways {
			begun := time.Now()
			if err := way.get(); err != nil {
				b.Fatalf("%s: %v", way.name, err)
			}
			took[i] = append(took[i], time.Since(begun))
		}
	}
	middle := func(i int) float64 {
		slices.Sort(took[i])
		return float64(took[i][len(took[i])/2].Nanoseconds())
	}
	for i, way := range ways {
		b.ReportMetric(middle(i)/1e3, way.name+"-us")
		if i > 0 {
			b.ReportMetric(middle(i)/middle(0), way.name+"-x")
		}
	}
}

func benchConnect(b *testing.B, cfg Config) *pgconn.PgConn {
	s, err := New(cfg)
	if err != nil {
		b.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx) }()
	b.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			b.Error(err)
		}
	})
	sql, err := pgconn.Connect(b.Context(), fmt.Sprintf("postgres://me@%s/grid?sslmode=disable", s.Addr()))
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = sql.Close(context.Background()) }) // the server ends it otherwise
	return sql
}
