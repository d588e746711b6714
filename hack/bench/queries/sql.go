package queries

import (
	"context"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5/pgconn"
)

// sqlAsker is a client of PostgreSQL's protocol.
type sqlAsker struct {
	name     string
	conn     *pgconn.PgConn
	prepared []Op
}

func (s *sqlAsker) Name() string { return s.name }

// Ask implements Asker.
func (s *sqlAsker) Ask(ctx context.Context, q *Question, first, n int) ([]Took, error) {
	if !slices.Contains(s.prepared, q.Op) {
		if _, err := s.conn.Prepare(ctx, string(q.Op), q.SQL(), nil); err != nil {
			return nil, fmt.Errorf("%s: %w", q.SQL(), err)
		}
		s.prepared = append(s.prepared, q.Op)
	}
	return repeat(first, n, func(i int) (func() (Answer, error), error) {
		var args [][]byte
		if q.Op == Get {
			args = [][]byte{[]byte(q.key(i))}
		}
		r := s.conn.ExecPrepared(ctx, string(q.Op), args, nil, nil).Read()
		return func() (a Answer, err error) {
			for _, row := range r.Rows {
				cells := make([]string, len(row))
				for i := range row {
					cells[i] = string(row[i])
				}
				if err := q.cells(&a, cells); err != nil {
					return a, err
				}
			}
			return a, nil
		}, r.Err
	})
}
