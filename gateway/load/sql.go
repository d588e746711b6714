package load

import (
	"context"
	"fmt"
	"io"
	"regexp"
	"strings"

	"github.com/jackc/pgx/v5"
)

// sqlSource reads the result of a query, which PostgreSQL writes as a table with a heading (COPY … TO STDOUT).
type sqlSource struct {
	csvSource
	cancel context.CancelFunc
	done   chan error
	read   *io.PipeReader
}

var ordered = regexp.MustCompile(`(?i)\border\s+by\b`)

func openSQL(ctx context.Context, url, query string, shape Shape) (Source, error) {
	query = strings.TrimRight(strings.TrimSpace(query), ";")
	switch {
	case query == "":
		return nil, fmt.Errorf("query: none, allowed: SELECT … ORDER BY … for %s", FormatSQL)
	case !ordered.MatchString(query):
		return nil, fmt.Errorf("query: it has no ORDER BY, allowed: one that orders by a unique column; a load that is resumed has to read the same rows in the same order")
	}
	cfg, err := pgx.ParseConfig(url)
	if err != nil {
		return nil, fmt.Errorf("postgres: %w", err) // without the password
	}
	cfg.RuntimeParams["application_name"] = "ordergrid load"
	cfg.RuntimeParams["TimeZone"], cfg.RuntimeParams["DateStyle"] = "UTC", "ISO"
	cfg.RuntimeParams["default_transaction_read_only"] = "on"
	cfg.RuntimeParams["bytea_output"], cfg.RuntimeParams["extra_float_digits"] = "hex", "3"
	conn, err := pgx.ConnectConfig(ctx, cfg)
	if err != nil {
		return nil, fmt.Errorf("postgres: %w", err)
	}
	types, err := conn.PgConn().Prepare(ctx, "", query, nil)
	if err != nil {
		return nil, join(fmt.Errorf("query: %w", err), conn.Close(ctx))
	}
	f := shape.forms()
	var as []func(string) string
	for _, column := range types.Fields {
		as = append(as, f.ofSQL(column.DataTypeOID))
	}
	ctx, cancel := context.WithCancel(ctx)
	r, w := io.Pipe()
	s := &sqlSource{cancel: cancel, done: make(chan error, 1), read: r}
	go func() {
		_, err := conn.PgConn().CopyTo(ctx, w, "COPY ("+query+") TO STDOUT WITH (FORMAT csv, HEADER)")
		if err != nil {
			err = fmt.Errorf("query: %w", err)
		}
		_ = w.CloseWithError(err)
		s.done <- conn.Close(context.WithoutCancel(ctx))
	}()
	in := &input{name: "query", id: fmt.Sprintf("postgres %s/%s: %s%s", cfg.Host, cfg.Database, query, shape.id())}
	table, err := newTable(in, r, shape)
	if err != nil {
		return nil, join(err, s.Close())
	}
	s.csvSource = *table
	s.as = as
	return s, nil
}

// Close implements Source.
func (s *sqlSource) Close() error {
	s.cancel()
	_ = s.read.Close()
	return <-s.done
}
