package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/ordergrid/ordergrid/client"
	"github.com/ordergrid/ordergrid/grid-node/order"
	"github.com/ordergrid/ordergrid/grid-node/query"
	orderview "github.com/ordergrid/ordergrid/grid-node/view"
)

// maxChain bounds the messages of a chain that are shown.
const maxChain = 256

// chained is a message in the life of an order.
type chained struct {
	kind, id, orig string
	received       int64
}

// writeChain prints the messages before and behind an order: what it replaces or cancels, and what replaced or cancelled
// it. They may be in any partition: a message goes to that of its own ClOrdID.
func writeChain(ctx context.Context, w io.Writer, c *client.Client, o *client.Order) error {
	first := o.ClOrdID
	for orig, n := string(order.TagValue(o.FIX, 41)), 0; orig != "" && n < maxChain; n++ {
		before, err := c.GetByClOrdID(ctx, orig)
		if errors.Is(err, client.ErrNotFound) || errors.Is(err, client.ErrFreed) {
			fmt.Fprintf(w, "chain     %s names %s, which is not here\n", first, orig)
			break
		} else if err != nil {
			return err
		}
		first, orig = before.ClOrdID, string(order.TagValue(before.FIX, 41))
	}
	all, err := chainFrom(ctx, c, first)
	if err != nil {
		return fmt.Errorf("chain of %s: %w", first, err)
	}
	for _, m := range all {
		what := map[string]string{"D": "order", "G": "replaces " + m.orig, "F": "cancels " + m.orig}[m.kind]
		fmt.Fprintf(w, "chain     %s  %s, %s\n", time.Unix(0, m.received).UTC().Format(time.RFC3339Nano), m.id, what)
	}
	return nil
}

// chainFrom finds the messages that name an order, or one of those, in the order of their receipt.
func chainFrom(ctx context.Context, c *client.Client, first string) (all []chained, err error) {
	seen := map[string]bool{}
	field, ids := orderview.ClOrdID, []orderview.Value{orderview.TextValue(first)}
	for len(ids) > 0 && len(all) < maxChain {
		q := client.Query{Linearizable: true, Query: query.Query{Select: []orderview.Field{orderview.MsgType, orderview.ClOrdID, orderview.OrigClOrdID, orderview.Received},
			Where: &query.Expr{Op: query.In, Field: field, Values: ids}, Limit: maxChain}}
		a, err := c.Query(ctx, q)
		if err != nil {
			return nil, err
		}
		ids = nil
		for _, row := range a.Rows {
			m := chained{kind: row[0].Text, id: row[1].Text, orig: row[2].Text, received: row[3].Int}
			if !seen[m.id] {
				seen[m.id] = true
				all, ids = append(all, m), append(ids, row[1])
			}
		}
		field = orderview.OrigClOrdID
	}
	slices.SortStableFunc(all, func(a, b chained) int { return cmp.Compare(a.received, b.received) })
	return all, nil
}
