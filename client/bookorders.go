package client

import (
	"context"
	"fmt"

	"github.com/ordergrid/ordergrid/grid-node/shown"
	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// OrderBook is what a book shows, order by order. The zero OrderBook has to be read.
type OrderBook = shown.Book

// OrdersRead is what a node answered about the orders of a book.
type OrdersRead struct {
	Partition wire.PartitionID
	From      string // address of the node
	Seq       uint64 // the entry, which is committed
	More      bool   // there are further changes up to it
	answer    wire.OrdersShown
}

// Apply brings the book that was asked for up to the answer, and calls event, if it is not nil, with each change of an order
// that is there or was. It reports whether the answer does not continue the book: then that was begun anew. After an error
// the book is one that has to be read.
func (r *OrdersRead) Apply(b *OrderBook, event func(*shown.Event)) (anew bool, err error) {
	if anew, err = b.Apply(&r.answer, event); err != nil {
		b.Forget()
	}
	return anew, err
}

// ReadOrders reads what has changed in the book of a symbol, and up to 256 of the orders that an OrderBook lacks, which is
// Complete when it has them all. Apply puts that into the book, which must not change meanwhile. replica is as for ReadBook:
// any member may answer the next question, as changes have the same places at all of them. What it shows is committed. A
// *RejectError with CodeUnknownInstrument: the partition does not trade the symbol.
func (c *Client) ReadOrders(ctx context.Context, symbol string, b *OrderBook, replica string) (*OrdersRead, error) {
	if symbol == "" || len(symbol) > wire.MaxString {
		return nil, fmt.Errorf("client: ReadOrders: symbol of %d bytes, allowed: 1 to %d", len(symbol), wire.MaxString)
	}
	r := &OrdersRead{Partition: c.RouteSymbol(symbol), From: replica}
	ask := wire.ReadOrders{Most: wire.MostShown, Symbol: []byte(symbol)}
	b.Ask(&ask)
	call := func(ctx context.Context, addr string) error {
		return c.call(ctx, addr, func(dst []byte, reqID uint64) []byte {
			ask.ReqID = reqID
			return wire.AppendReadOrders(dst, r.Partition, &ask)
		}, func(frame []byte) error {
			if err := wire.DecodeOrdersShown(frame, &r.answer); err != nil {
				return err
			}
			r.answer.Rows = append([]byte(nil), r.answer.Rows...) // frame is valid until this returns
			return nil
		})
	}
	var err error
	if replica != "" {
		err = call(ctx, replica)
	} else {
		r.From, err = c.retry(ctx, r.Partition, false, call)
	}
	if err != nil {
		return nil, fmt.Errorf("read the orders of the book of %s in %s: %w", symbol, r.Partition, err)
	}
	r.Seq, r.More = r.answer.Seq, r.answer.Flags&wire.OrdersMore != 0
	return r, nil
}
