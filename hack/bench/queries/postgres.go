package queries

import (
	"bytes"
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/ordergrid/ordergrid/e2e/downstream"
)

// Postgres is the PostgreSQL server of this machine.
type Postgres struct {
	server *downstream.Postgres
	conn   *pgconn.PgConn
	asker  *sqlAsker
	orders *Orders
}

// Name implements System.
func (p *Postgres) Name() string { return "postgresql" }

// Missing implements System.
func (p *Postgres) Missing() string {
	if _, err := downstream.FindPostgres(); err != nil {
		return err.Error()
	}
	return ""
}

// sharedMiB is memory for the rows of a million orders with their indexes.
const sharedMiB = 1024

// rowBytes is what a row takes with its indexes, in the cache of files too.
const rowBytes = 1024

// MemoryMiB implements System.
func (p *Postgres) MemoryMiB(orders int, _ bool) int64 {
	return sharedMiB + int64(orders)*rowBytes/mib
}

// Prepare implements System.
func (p *Postgres) Prepare(context.Context) error { return nil }

const schema = `create table orders (clordid text primary key, account text not null, symbol text not null, side text not null, price numeric(12,2) not null,
  orderqty integer not null, ordtype text not null, timeinforce text not null, transacttime timestamptz not null, message text not null);
create index on orders (account); create index on orders (price); create index on orders (transacttime)`

// Start implements System.
func (p *Postgres) Start(ctx context.Context, o *Orders) error {
	p.orders = o
	bin, err := downstream.FindPostgres()
	if err != nil {
		return err
	}
	if p.server, err = downstream.NewPostgres(bin, downstream.PostgresOptions{Settings: map[string]string{
		"shared_buffers": fmt.Sprintf("%dMB", sharedMiB), "max_wal_size": "4GB", "work_mem": "64MB", "maintenance_work_mem": "256MB",
		"autovacuum": "off", // Askers does what it would, at a time of its own
	}}); err != nil {
		return err
	}
	if p.conn, err = pgconn.Connect(ctx, p.server.Admin()); err != nil {
		return err
	}
	return p.exec(ctx, schema)
}

func (p *Postgres) exec(ctx context.Context, sql string) error {
	if err := p.conn.Exec(ctx, sql).Close(); err != nil {
		return fmt.Errorf("%s: %w", sql, err)
	}
	return nil
}

// Load implements System: a COPY of all.
func (p *Postgres) Load(ctx context.Context, batch []Order) (time.Duration, error) {
	var rows bytes.Buffer
	for i := range batch {
		x := &batch[i]
		fmt.Fprintf(&rows, "%s\t%s\t%s\t%s\t%d.%02d\t%d\t%s\t%s\t%s\t%s\n", x.ID, x.Account, x.Symbol, x.Side, x.Cents/100, x.Cents%100, x.Qty, x.OrdType, x.TIF,
			time.UnixMilli(x.Ms).UTC().Format("2006-01-02 15:04:05.000Z"), x.FIX)
	}
	begun := time.Now()
	_, err := p.conn.CopyFrom(ctx, &rows, "copy orders from stdin")
	return time.Since(begun), err
}

// Askers implements System.
func (p *Postgres) Askers(ctx context.Context) ([]Asker, error) {
	p.asker = &sqlAsker{name: p.Name(), conn: p.conn}
	return []Asker{p.asker}, p.exec(ctx, "vacuum analyze orders")
}

// Patch implements System.
func (p *Postgres) Patch(ctx context.Context) (time.Duration, string, error) {
	begun := time.Now()
	if err := p.exec(ctx, "update orders set timeinforce = '"+patchedTIF+"' where side = '2'"); err != nil {
		return 0, "", err
	}
	took := time.Since(begun)
	wrong, err := differs(ctx, p.asker, p.orders.AfterPatch()...)
	return took, wrong, err
}

// Drop implements System.
func (p *Postgres) Drop(ctx context.Context) (time.Duration, string, error) {
	begun := time.Now()
	if err := p.exec(ctx, "truncate orders"); err != nil {
		return 0, "", err
	}
	took := time.Since(begun)
	wrong, err := differs(ctx, p.asker, AfterDrop())
	return took, wrong, err
}

// PIDs implements System: none, since its workers come and go with each question.
func (p *Postgres) PIDs() []int { return nil }

// Notes implements System.
func (p *Postgres) Notes() []string {
	return []string{"postgresql: one server, which writes to disk and has no copy; loaded by COPY into indexes on account, price and time, then VACUUM ANALYZE; drop is TRUNCATE"}
}

// Stop implements System.
func (p *Postgres) Stop() error {
	if p.conn != nil {
		_ = p.conn.Close(context.Background()) // it ends with the server
	}
	if p.server != nil {
		p.server.Remove()
	}
	*p = Postgres{}
	return nil
}
