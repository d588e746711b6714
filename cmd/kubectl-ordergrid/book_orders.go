package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/ordergrid/ordergrid/client"
	"github.com/ordergrid/ordergrid/grid-node/shown"
)

// queues looks at a book order by order, and from the second time on at what has changed in it.
func (f *bookFlags) queues(c *client.Client, symbol string) look {
	var b client.OrderBook
	first := true
	return func(ctx context.Context) (func(io.Writer) error, error) {
		changed := first
		var r *client.OrdersRead
		for more := true; more || !b.Complete; more = r.More {
			var err error
			if r, err = c.ReadOrders(ctx, symbol, &b, ""); err != nil {
				return nil, err
			}
			anew, err := r.Apply(&b, func(*shown.Event) { changed = true })
			if err != nil {
				return nil, fmt.Errorf("read the orders of the book of %s at %s: %w", symbol, r.From, err)
			}
			changed = changed || anew
		}
		if first = false; !changed {
			return nil, nil
		}
		o := queuesObject(symbol, r.Partition.String(), r.Seq, &b, f.depth)
		return func(w io.Writer) error {
			if f.output == "json" {
				return json.NewEncoder(w).Encode(o)
			}
			return writeQueues(w, &o)
		}, nil
	}
}

// queuesJSON is a book order by order, with its numbers as decimal text.
type queuesJSON struct {
	Symbol string      `json:"symbol"`
	Orders int         `json:"orders"` // of all levels, those that are not shown too
	Bids   []queueJSON `json:"bids"`
	Asks   []queueJSON `json:"asks"`
	Part   string      `json:"partition"`
	Seq    uint64      `json:"seq"`
}

// queueJSON is the queue of a price.
type queueJSON struct {
	Price  string      `json:"price"`
	Qty    string      `json:"qty"`
	Orders []placeJSON `json:"orders"`
}

// placeJSON is an order at its place in the queue.
type placeJSON struct {
	Place int    `json:"place"` // from 1
	Order string `json:"order"`
	Qty   string `json:"qty"`
	Ahead string `json:"ahead"` // what the orders before it show
}

func queuesObject(symbol, part string, seq uint64, b *client.OrderBook, depth int) queuesJSON {
	side := func(list []shown.Order) []queueJSON {
		out := []queueJSON{}
		qty := func(v int64) string { return client.Decimal(v, b.QtyDigits) }
		total := int64(0)
		for i := range list {
			o := &list[i]
			if i == 0 || o.Price != list[i-1].Price {
				if len(out) == depth {
					break
				}
				out, total = append(out, queueJSON{Price: client.Decimal(o.Price, b.PriceDigits)}), 0
			}
			q := &out[len(out)-1]
			q.Orders = append(q.Orders, placeJSON{len(q.Orders) + 1, fmt.Sprintf("%s/%d", part, o.ID), qty(o.Qty), qty(total)})
			total += o.Qty
			q.Qty = qty(total)
		}
		return out
	}
	return queuesJSON{Symbol: symbol, Orders: b.Len(), Part: part, Seq: seq, Bids: side(b.Orders(shown.Buy)), Asks: side(b.Orders(shown.Sell))}
}

// writeQueues writes asks from the highest price down to the best, then bids from the best down, the first of each price
// before the others.
func writeQueues(w io.Writer, o *queuesJSON) error {
	var t strings.Builder
	fmt.Fprintf(&t, "%s  %d orders  %s/%d\n", o.Symbol, o.Orders, o.Part, o.Seq)
	row := func(cells ...any) {
		t.WriteString(strings.TrimRight(fmt.Sprintf("%7v %16v %14v %14v %14v %16v %7v", cells...), " ") + "\n")
	}
	row("place", "order", "bid", "price", "ask", "order", "place")
	for i := len(o.Asks) - 1; i >= 0; i-- {
		for _, p := range o.Asks[i].Orders {
			row("", "", "", o.Asks[i].Price, p.Qty, p.Order, p.Place)
		}
	}
	for _, q := range o.Bids {
		for _, p := range q.Orders {
			row(p.Place, p.Order, p.Qty, q.Price, "", "", "")
		}
	}
	if len(o.Asks)+len(o.Bids) == 0 {
		t.WriteString("no orders\n")
	}
	_, err := io.WriteString(w, t.String())
	return err
}
