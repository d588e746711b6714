package postgres

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"regexp"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/ordergrid/ordergrid/client"
	"github.com/ordergrid/ordergrid/gateway/sink"
	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// Options of a Target.
type Options struct {
	Grid       string // name of the grid in the tables
	Connection Connection
	Schema     string // DefaultSchema when empty
	// Executions are written too, of a grid that matches.
	Executions bool
	// OnlyExecutions are written, without the orders. Then others has the entries that did nothing.
	OnlyExecutions bool
	// DaysAhead is how many tables of days to come are kept ready: 1 to 366, 7 when 0.
	DaysAhead int
	// WriteTimeout bounds a batch: a minute when 0.
	WriteTimeout time.Duration
	Logger       *slog.Logger // none when nil
}

const (
	defaultDaysAhead    = 7
	defaultWriteTimeout = time.Minute
	maxGrid             = 253
)

// names of schemas that need no quotes in SQL, so that what a page or a person writes works.
var schemaName = regexp.MustCompile(`^[a-z_][a-z0-9_]{0,62}$`)

// complete checks the options and sets defaults.
func (o *Options) complete() error {
	if o.Schema == "" {
		o.Schema = DefaultSchema
	}
	if o.DaysAhead == 0 {
		o.DaysAhead = defaultDaysAhead
	}
	if o.WriteTimeout == 0 {
		o.WriteTimeout = defaultWriteTimeout
	}
	if o.Logger == nil {
		o.Logger = discard()
	}
	o.Executions = o.Executions || o.OnlyExecutions
	switch {
	case !schemaName.MatchString(o.Schema) || len(o.Schema) > 3 && o.Schema[:3] == "pg_":
		return fmt.Errorf("postgres: schema is %.80q, allowed: 1 to 63 lowercase letters, digits and underscores, not beginning with a digit or pg_", o.Schema)
	case len(o.Grid) > maxGrid:
		return fmt.Errorf("postgres: the grid's name has %d bytes, allowed: at most %d", len(o.Grid), maxGrid)
	case o.DaysAhead < 0 || o.DaysAhead > 366:
		return fmt.Errorf("postgres: days ahead are %d, allowed: 1..366", o.DaysAhead)
	case o.WriteTimeout < time.Second:
		return fmt.Errorf("postgres: the write time-out is %s, allowed: 1s or more", o.WriteTimeout)
	}
	return o.Connection.check()
}

// Target is a PostgreSQL database.
type Target struct {
	o    Options
	days days
}

var _ sink.Target = (*Target)(nil)

// New checks the options; it does not connect.
func New(o Options) (*Target, error) {
	if err := o.complete(); err != nil {
		return nil, err
	}
	if o.Grid == "" {
		return nil, errors.New("postgres: the grid has no name, allowed: 1 byte or more")
	}
	t := &Target{o: o}
	t.days.init(&t.o)
	return t, nil
}

// Close implements sink.Target. Every writer has a connection of its own.
func (t *Target) Close() error { return nil }

// Open implements sink.Target: it raises the writer's number in the fence.
func (t *Target) Open(ctx context.Context, p wire.PartitionID) (sink.Writer, error) {
	ctx, cancel := context.WithTimeout(ctx, t.o.WriteTimeout)
	defer cancel()
	conn, err := connect(ctx, &t.o.Connection, fmt.Sprintf("%s %s/%s", application, t.o.Grid, p))
	if err != nil {
		return nil, err
	}
	w, err := t.open(ctx, conn, p)
	if err != nil {
		_ = disconnect(conn) // the first error counts
		return nil, err
	}
	return w, nil
}

// session is what the guarantees need of a connection, whatever the defaults of database and user are: a commit is
// durable when it returns, and neither a lock nor a stopped writer holds anything up for long.
const session = `
SELECT CASE WHEN current_setting('synchronous_commit') IN ('off', 'local') THEN set_config('synchronous_commit', 'on', false) END,
       set_config('lock_timeout', '20s', false), set_config('idle_in_transaction_session_timeout', '60s', false), set_config('statement_timeout', '0', false)`

// terminate ends the connection of the writer before, so that its locks go. A user may end connections of its own; the
// start of the process tells it from another of the same number.
const terminate = `
SELECT pg_terminate_backend(a.pid) FROM %[1]s f JOIN pg_stat_activity a ON a.pid = f.backend AND a.backend_start = f.backend_start
WHERE f.grid = $1 AND f."partition" = $2 AND a.pid <> pg_backend_pid()`

const raise = `
INSERT INTO %[1]s AS f (grid, "partition", writer, opened, backend, backend_start)
VALUES ($1, $2, 1, now(), pg_backend_pid(), (SELECT backend_start FROM pg_stat_activity WHERE pid = pg_backend_pid()))
ON CONFLICT (grid, "partition") DO UPDATE SET writer = f.writer + 1, opened = excluded.opened, backend = excluded.backend, backend_start = excluded.backend_start
RETURNING writer, seq, hash, lineage`

func (t *Target) open(ctx context.Context, conn *pgx.Conn, p wire.PartitionID) (*writer, error) {
	if _, err := conn.Exec(ctx, session); err != nil {
		return nil, explain("settings of the connection", err)
	}
	if err := checkSchema(ctx, conn, t.o.Schema, needed(&t.o)); err != nil {
		return nil, err
	}
	fence := qualified(t.o.Schema, "fence")
	if err := t.checkContent(ctx, conn, fence, p); err != nil {
		return nil, err
	}
	if _, err := conn.Exec(ctx, fmt.Sprintf(terminate, fence), t.o.Grid, int32(p)); err != nil {
		t.o.Logger.Info("the connection of the writer before cannot be ended", "partition", p.String(), "reason", err)
	}
	w := &writer{t: t, conn: conn, partition: p, copy: copyStatement(t.o.Schema, "orders", orderColumns), copyExecutions: copyStatement(t.o.Schema, "executions", executionColumns), fence: fence, others: qualified(t.o.Schema, "others")}
	var seq, hash, lineage int64
	if err := conn.QueryRow(ctx, fmt.Sprintf(raise, fence), t.o.Grid, int32(p)).Scan(&w.number, &seq, &hash, &lineage); err != nil {
		return nil, explain(fmt.Sprintf("fence of %s", p), err)
	}
	w.at = client.Position{Seq: uint64(seq), Hash: uint64(hash), Lineage: uint32(lineage)}
	t.days.ahead(ctx, conn)
	return w, nil
}

// checkContent refuses to write orders behind a sink of executions alone, or executions alone behind one of orders: there
// would be a gap. The fence of the first has received and no orders. It comes before the writer in force is ended.
func (t *Target) checkContent(ctx context.Context, conn *pgx.Conn, fence string, p wire.PartitionID) error {
	var orders int64
	var received bool
	err := conn.QueryRow(ctx, "SELECT orders, received IS NOT NULL FROM "+fence+` WHERE grid = $1 AND "partition" = $2`, t.o.Grid, int32(p)).Scan(&orders, &received)
	const remedy = "let it write what it wrote before, or give it a schema of its own"
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return nil
	case err != nil:
		return explain(fmt.Sprintf("fence of %s", p), err)
	case t.o.OnlyExecutions && orders > 0:
		return &sink.PermanentError{What: fmt.Sprintf("the sink wrote %d orders of %s, and is to write executions alone now: there would be a gap", orders, p), Remedy: remedy}
	case !t.o.OnlyExecutions && orders == 0 && received:
		return &sink.PermanentError{What: fmt.Sprintf("the sink wrote executions of %s alone, and is to write orders now: there would be a gap", p), Remedy: remedy}
	}
	return nil
}
