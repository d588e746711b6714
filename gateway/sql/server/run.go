package server

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/ordergrid/ordergrid/client"
	"github.com/ordergrid/ordergrid/gateway/sql"
	"github.com/ordergrid/ordergrid/grid-node/view"
	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// pageRows are asked for at a time, so that a portal keeps little.
const pageRows = 1000

// maxRun bounds the rows that are sorted in the gateway.
const maxRun = 50_000

// cursor goes through the rows of a plan. It keeps one page; between pages it holds nothing at
// the nodes.
type cursor struct {
	plan  *sql.Plan
	c     *conn
	fixed int // the next of Plan.Fixed
	once  bool

	entries  *entries // of a region
	gather   *sql.Gather
	question int
	page     *client.Page
	open     bool // the question has more pages, or was not asked yet
	rows     [][]view.Value
	ahead    [][]view.Value // read, beyond the run
	lines    []string       // of EXPLAIN
	skip     int64
	left     int64 // of LIMIT, -1 for none
}

func newCursor(p *sql.Plan, c *conn) *cursor {
	r := &cursor{plan: p, c: c, open: true, skip: p.Offset, left: p.Limit}
	if p.Region != nil {
		r.entries = newEntries(p.Region, c)
	}
	return r
}

// record is a row before it is encoded: one of these.
type record struct {
	values []view.Value
	fixed  []*string
	group  sql.Counted
}

// next is the next row: of a question, of a region, or fixed.
func (r *cursor) next(ctx context.Context) (row record, ok bool, err error) {
	if r.plan.Explain {
		return r.explained(ctx)
	}
	for r.left != 0 {
		row, ok, err = r.raw(ctx)
		if err != nil || !ok {
			return record{}, false, err
		}
		if r.skip > 0 {
			r.skip--
			continue
		}
		if r.left > 0 {
			r.left--
		}
		return row, true, nil
	}
	return record{}, false, nil
}

func (r *cursor) raw(ctx context.Context) (record, bool, error) {
	switch {
	case r.plan.Fixed != nil:
		if r.fixed == len(r.plan.Fixed) {
			return record{}, false, nil
		}
		r.fixed++
		return record{fixed: r.plan.Fixed[r.fixed-1]}, true, nil
	case r.plan.Constant:
		first := !r.once
		r.once = true
		return record{}, first, nil
	case r.entries != nil && r.plan.Gathers():
		return r.gathered(ctx)
	case r.entries != nil:
		row, ok, err := r.entries.next(ctx)
		return record{values: row}, ok, err
	}
	for len(r.rows) == 0 {
		if r.question == len(r.plan.Questions) {
			return record{}, false, nil
		}
		if err := r.fill(ctx); err != nil {
			return record{}, false, err
		}
		if len(r.rows) == 0 && !r.open && len(r.ahead) == 0 {
			r.question, r.page, r.open = r.question+1, nil, true
		}
	}
	row := r.rows[0]
	r.rows = r.rows[1:]
	return record{values: row}, true, nil
}

// fill gets the rows that come next: a page, a run of rows that are sorted here, or all groups.
func (r *cursor) fill(ctx context.Context) error {
	q := &r.plan.Questions[r.question]
	if q.Runs == nil {
		if !r.open {
			return nil
		}
		rows, err := r.ask(ctx, q)
		if r.rows = rows; r.plan.Grouped {
			sortRows(r.rows, r.plan.Keys)
		}
		return err
	}
	run := r.ahead
	r.ahead = nil
	for {
		for i := 1; i < len(run); i++ {
			if !equalIn(run[i-1], run[i], q.Runs[:q.Same]) {
				r.ahead, run = run[i:len(run):len(run)], run[:i:i]
				break
			}
		}
		if len(r.ahead) > 0 || !r.open {
			break
		}
		if len(run) > maxRun {
			e := sql.Refuse(sql.StateTooLarge, "more than %d rows are equal in the first %d keys of ORDER BY", maxRun, q.Same)
			e.Hint = "Add NULLS FIRST to ascending keys that may be null and NULLS LAST to descending ones: then the grid sorts."
			return e
		}
		more, err := r.ask(ctx, q)
		if err != nil {
			return err
		}
		run = append(run, more...)
	}
	sortRows(run, q.Runs)
	r.rows = run
	return nil
}

// ask gets a page.
func (r *cursor) ask(ctx context.Context, q *sql.Question) ([][]view.Value, error) {
	ask := client.Query{Query: q.Query, Page: r.page, Linearizable: r.c.settings.linearizable}
	if !r.plan.Grouped {
		ask.Limit = pageRows
		if n := r.left + r.skip; r.left >= 0 && n < pageRows && q.Runs == nil {
			ask.Limit = uint32(n)
		}
	}
	a, err := r.c.grid.Query(ctx, ask)
	if err != nil {
		return nil, err
	}
	r.page = a.Next
	r.open = a.Next != nil
	return a.Rows, nil
}

func equalIn(a, b []view.Value, keys []sql.Key) bool {
	return !slices.ContainsFunc(keys, func(k sql.Key) bool { return a[k.At].Compare(&b[k.At]) != 0 })
}

// sortRows puts rows in PostgreSQL's order.
func sortRows(rows [][]view.Value, keys []sql.Key) {
	slices.SortStableFunc(rows, func(x, y []view.Value) int {
		for _, k := range keys {
			a, b := &x[k.At], &y[k.At]
			an, bn := a.Kind == view.Null, b.Kind == view.Null
			if an || bn {
				if an == bn {
					continue
				}
				if an == k.NullsFirst {
					return -1
				}
				return 1
			}
			if c := a.Compare(b); c != 0 {
				if k.Desc {
					return -c
				}
				return c
			}
		}
		return 0
	})
}

// explained are the plans of the nodes.
func (r *cursor) explained(ctx context.Context) (record, bool, error) {
	if !r.once {
		r.once = true
		var err error
		if r.lines, err = r.explain(ctx); err != nil {
			return record{}, false, err
		}
	}
	if len(r.lines) == 0 {
		return record{}, false, nil
	}
	line := r.lines[0]
	r.lines = r.lines[1:]
	return record{fixed: []*string{&line}}, true, nil
}

func (r *cursor) explain(ctx context.Context) (lines []string, err error) {
	if r.entries != nil {
		lines = r.entries.explain()
		if r.plan.Gathers() {
			lines = append(lines, "rows are sorted, or groups made, in the gateway when all are read")
		}
		return lines, nil
	}
	if len(r.plan.Questions) == 0 {
		return []string{"no question is asked"}, nil
	}
	for i, q := range r.plan.Questions {
		if len(r.plan.Questions) > 1 {
			lines = append(lines, fmt.Sprintf("question %d of %d: rows with and without a value of the first key", i+1, len(r.plan.Questions)))
		}
		for p := range r.c.grid.Table() {
			id := wire.PartitionID(p)
			text, err := r.c.grid.Explain(ctx, id, client.Query{Query: q.Query})
			if err != nil {
				return nil, err
			}
			lines = append(lines, fmt.Sprintf("partition %s", id))
			for line := range strings.SplitSeq(strings.TrimRight(text, "\n"), "\n") {
				lines = append(lines, "  "+line)
			}
		}
		if q.Runs != nil {
			lines = append(lines, fmt.Sprintf("rows that are equal in the first %d keys are sorted in the gateway: absent values last", q.Same))
		}
	}
	return lines, nil
}

// gridError is an error of the grid as SQL, of a statement about a table. own: the gateway asked in its own name, so what is
// not permitted is so to the gateway, and not to the user.
func gridError(err error, table string, own bool) *sql.Error {
	var refused *sql.Error
	var q *client.QueryError
	switch {
	case errors.As(err, &refused):
		return refused
	case errors.As(err, &q) && q.Code == wire.QueryTimedOut:
		return sql.Refuse(sql.StateCancelled, "%s: %s", errTimeout, q.Error())
	case errors.As(err, &q):
		code := map[wire.QueryEndCode]string{
			wire.QueryRefused: sql.StateUnsupported, wire.QueryBound: sql.StateTooLarge, wire.QueryTooOld: "72000", wire.QueryBehind: sql.StateCannotConnect,
			wire.QueryDiverged: sql.StateInternal, wire.QueryCancelled: sql.StateCancelled,
			wire.QueryIncomplete: "53200", wire.QueryLeaving: sql.StateCannotConnect}[q.Code]
		if code == "" {
			code = sql.StateInternal
		}
		return sql.Refuse(code, "%s", q.Error())
	case errors.Is(err, client.ErrRegionUnknown):
		return sql.Refuse(sql.StateTable, "relation \"%s.%s\" does not exist", sql.RegionsName, table)
	case errors.Is(err, client.ErrNotPermitted) && own:
		e := sql.Refuse(sql.StatePrivilege, "permission denied for table %s to the gateway, not to the user", table)
		e.Hint = "The certificate of the gateway needs the permission Query, and Read for regions and " + linearizable + "."
		return e
	case errors.Is(err, client.ErrNotPermitted):
		e := sql.Refuse(sql.StatePrivilege, "permission denied for table %s", table)
		e.Hint = "A rule of spec.security.authorization gives a subject the permissions Query, and Read for regions and " + linearizable + "."
		return e
	case errors.Is(err, client.ErrUnauthenticated):
		return sql.Refuse(sql.StateAuthorization, "the grid does not accept the token any more: connect again with a new one")
	case errors.Is(err, client.ErrUnsupported) && table == sql.TableName:
		e := sql.Refuse(sql.StateNotReady, "%s", err)
		e.Hint = "Nodes answer questions when they keep views (--views)."
		return e
	case errors.Is(err, context.DeadlineExceeded):
		return sql.Refuse(sql.StateCancelled, "%s: %s", errTimeout, err)
	case errors.Is(err, client.ErrUnavailable):
		return sql.Refuse(sql.StateCannotConnect, "%s", err)
	}
	return sql.Refuse(sql.StateStorage, "%s", err)
}
