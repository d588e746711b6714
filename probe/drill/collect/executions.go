package collect

import (
	"context"
	"errors"
	"fmt"

	"github.com/ordergrid/ordergrid/client"
	"github.com/ordergrid/ordergrid/client/verify"
	"github.com/ordergrid/ordergrid/grid-node/match/replay"
	"github.com/ordergrid/ordergrid/grid-node/order"
	"github.com/ordergrid/ordergrid/grid-node/wire"
	"github.com/ordergrid/ordergrid/probe/drill/history"
	"github.com/ordergrid/ordergrid/probe/fixorder"
)

// BooksOf reads from its log what a partition of a grid that matches trades, for orders to be made
// of. The log has to be there from its beginning.
func BooksOf(ctx context.Context, c *client.Client, p wire.PartitionID) (books []fixorder.Book, err error) {
	log := replay.NewLog()
	_, err = c.ReadLog(ctx, p, "", 1, func(e client.LogEntry) error {
		if e.Kind != order.KindMarket {
			return nil
		}
		_, err := log.Entry(&e.Entry, order.Payload(e.Bytes))
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("what %s trades: %w", p, err)
	}
	for _, i := range log.Instruments() {
		books = append(books, fixorder.Book{Symbol: i.Symbol, Tick: i.Tick, Lot: i.Lot, Low: i.Low, High: i.High, Reference: i.Ref, PriceDigits: i.PriceDigits, QtyDigits: i.QtyDigits})
	}
	return books, nil
}

// readExecutions reads the logs of books, from their beginning, and what every copy that could be
// read says it did.
func readExecutions(ctx context.Context, c *client.Client, h *history.History) {
	var books []func() history.Books
	var copies []func() history.Copied
	for _, row := range c.Table() {
		books = append(books, func() history.Books { return readBooks(ctx, c, row) })
		for _, m := range row.Members {
			copies = append(copies, func() history.Copied { return readCopy(ctx, c, row.ID, m) })
		}
	}
	h.Books, h.Executions = atOnce(books), atOnce(copies)
}

func readBooks(ctx context.Context, c *client.Client, row client.PartitionInfo) history.Books {
	b := history.Books{Partition: row.ID}
	_, err := c.ReadLog(ctx, row.ID, row.Primary.Address, 1, func(e client.LogEntry) error {
		b.Entries = append(b.Entries, append([]byte(nil), e.Bytes...))
		if e.Kind == order.KindMarket {
			if m := order.MarketOf(order.Payload(e.Bytes)); m.Op == order.MarketDefine {
				b.Symbols = append(b.Symbols, string(m.Symbol))
			}
		}
		return nil
	})
	if err != nil {
		b.Error = err.Error()
	}
	return b
}

func readCopy(ctx context.Context, c *client.Client, p wire.PartitionID, m client.Member) history.Copied {
	x := history.Copied{Partition: p, Where: m.ID + " at " + m.Address, InSync: m.InSync}
	next, err := c.ReadExecutions(ctx, p, m.Address, 1, func(e client.Execution) error {
		r := verify.RecordOf(&e)
		x.Records = history.AppendExecution(x.Records, e.Entry, e.N, &r)
		return nil
	})
	if x.Through = next - 1; err != nil {
		x.Error = errors.Join(err, ctx.Err()).Error()
	}
	return x
}
