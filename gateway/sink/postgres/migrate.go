package postgres

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/jackc/pgx/v5"

	"github.com/ordergrid/ordergrid/gateway/sink"
)

// Migrate makes the schema, or brings it to the version that this program writes, in one transaction. It does nothing to
// a schema of that version, and refuses a later one. Several at a time wait for each other.
func Migrate(ctx context.Context, o Options) (from, to int, err error) {
	if err := o.complete(); err != nil {
		return 0, 0, err
	}
	conn, err := connect(ctx, &o.Connection, application+" migrate")
	if err != nil {
		return 0, 0, err
	}
	defer func() { _ = disconnect(conn) }() // the transaction has ended
	tx, err := conn.Begin(ctx)
	if err != nil {
		return 0, 0, explain("migration of schema "+o.Schema, err)
	}
	if from, to, err = migrate(ctx, tx, &o); err != nil {
		_ = tx.Rollback(ctx) // the first error counts
		return from, from, err
	}
	return from, to, explain("migration of schema "+o.Schema, tx.Commit(ctx))
}

func migrate(ctx context.Context, tx pgx.Tx, o *Options) (from, to int, err error) {
	failed := func(err error) (int, int, error) { return from, from, explain("migration of schema "+o.Schema, err) }
	if _, err := tx.Exec(ctx, "SELECT pg_advisory_xact_lock(hashtextextended($1, 0))", "ordergrid schema "+o.Schema); err != nil {
		return failed(err)
	}
	var schema, versions bool
	if err := tx.QueryRow(ctx, `SELECT EXISTS (SELECT FROM pg_catalog.pg_namespace WHERE nspname = $1),
		EXISTS (SELECT FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = $1 AND c.relname = 'schema_version')`, o.Schema).Scan(&schema, &versions); err != nil {
		return failed(err)
	}
	name := pgx.Identifier{o.Schema}.Sanitize()
	if !schema {
		if _, err := tx.Exec(ctx, "CREATE SCHEMA "+name); err != nil {
			return failed(err)
		}
	}
	if versions {
		if from, err = versionOf(ctx, tx.Conn(), o.Schema); err != nil {
			return from, from, err
		}
	}
	if from > SchemaVersion() {
		return from, from, judgeVersion(o.Schema, from)
	}
	if _, err := tx.Exec(ctx, "SET LOCAL search_path = "+name+", pg_temp"); err != nil {
		return failed(err)
	}
	names, texts := migrations()
	for to = from; to < len(texts); to++ {
		o.Logger.Info("migration", "schema", o.Schema, "file", names[to])
		if _, err := tx.Conn().PgConn().Exec(ctx, texts[to]).ReadAll(); err != nil {
			return from, from, taken(o.Schema, explain(names[to]+" in schema "+o.Schema, err))
		}
	}
	if at, err := versionOf(ctx, tx.Conn(), o.Schema); err != nil || at != to {
		return from, from, fmt.Errorf("schema %s has version %d after the migrations, want %d: %w", o.Schema, at, to, err)
	}
	return from, to, nil
}

// taken explains a migration that meets tables of others.
func taken(schema string, err error) error {
	if state(err) == "42P07" {
		return &sink.PermanentError{What: "schema " + schema + " has tables of another origin", Err: err, Remedy: "give the sink a schema of its own"}
	}
	return err
}

// application is the name of the connections in pg_stat_activity.
const application = "ordergrid-sink"

func discard() *slog.Logger { return slog.New(slog.DiscardHandler) }
