package server

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/ordergrid/ordergrid/client"
	"github.com/ordergrid/ordergrid/gateway/sql"
	"github.com/ordergrid/ordergrid/grid-node/view"
	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// entries goes through those entries of a region that are rows of a plan. It keeps one page; between pages it holds
// nothing at the nodes.
type entries struct {
	plan *sql.Region
	r    *client.Region
	mode client.ReadMode
	keys []string             // that are not read yet, and then
	at   *client.ScanPosition // of the next page; nil: there is none
	page [][]view.Value
}

func newEntries(p *sql.Region, c *conn) *entries {
	e := &entries{plan: p, r: c.grid.Region(p.Name), mode: client.Backup}
	if c.settings.linearizable {
		e.mode = client.Confirmed
	}
	switch {
	case !p.Reads() || len(p.Prefix) > wire.MaxRegionPair-1:
	case p.Get:
		e.keys = p.Keys
	default:
		e.at = &client.ScanPosition{}
	}
	return e
}

// next is the next row.
func (e *entries) next(ctx context.Context) ([]view.Value, bool, error) {
	for len(e.page) == 0 {
		switch {
		case len(e.keys) > 0:
			key := e.keys[0]
			if e.keys = e.keys[1:]; len(key) > wire.MaxRegionPair {
				continue // it has no value
			}
			one, err := e.r.Get(ctx, []byte(key), client.WithMode(e.mode))
			if err == nil {
				err = e.add(&one)
			}
			if err != nil && !errors.Is(err, client.ErrNotFound) {
				return nil, false, err
			}
		case e.at != nil:
			at, err := e.r.ScanPage(ctx, []byte(e.plan.Prefix), *e.at, func(one client.Entry) error { return e.add(&one) }, client.WithMode(e.mode))
			if err != nil {
				return nil, false, err
			}
			e.at = at
		default:
			return nil, false, nil
		}
	}
	row := e.page[0]
	e.page = e.page[1:]
	return row, true, nil
}

// add keeps an entry if it is a row.
func (e *entries) add(one *client.Entry) error {
	row := rowOf(one)
	has, err := e.plan.Has(row)
	if err != nil {
		return err
	}
	if has {
		e.page = append(e.page, row)
	}
	return nil
}

// rowOf an entry are its columns as sql has them of a region.
func rowOf(one *client.Entry) []view.Value {
	row := []view.Value{view.TextValue(string(one.Key)), view.TextValue(string(one.Value)), view.IntValue(int64(one.Version)), {}, view.IntValue(int64(one.Partition))}
	if !one.Expires.IsZero() {
		row[3] = view.TimeValue(one.Expires.UnixNano())
	}
	return row
}

func (e *entries) explain() []string {
	from := map[bool]string{true: "confirmed by the copies", false: "from any copy in sync"}[e.mode == client.Confirmed]
	switch {
	case !e.plan.Reads():
		return []string{"nothing is read"}
	case e.plan.Get:
		return []string{fmt.Sprintf("region %s: %d keys are read, %s", e.plan.Name, len(e.plan.Keys), from), "the conditions are tested in the gateway"}
	}
	what := "all keys"
	if e.plan.Prefix != "" {
		what = fmt.Sprintf("keys that begin with %q", strings.ToValidUTF8(e.plan.Prefix, "\uFFFD"))
	}
	return []string{fmt.Sprintf("region %s: scan of %s in pages, partition by partition, %s", e.plan.Name, what, from), "the conditions are tested in the gateway"}
}
