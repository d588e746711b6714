package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/ordergrid/ordergrid/client"
	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// tradesPause is between two reads of a partition with --follow.
const tradesPause = 200 * time.Millisecond

type tradesFlags struct {
	reachFlags
	symbols []string
	output  string
	follow  bool
}

func tradesCommand(k *kubeFlags) *cobra.Command {
	var f tradesFlags
	cmd := &cobra.Command{
		Use:   "trades GRID",
		Short: "Show the trades of a grid that matches, and new ones",
		Long: `Shows the trades that the nodes hold, each once, in the order of their log, and with --follow new ones as they
are committed, until it is interrupted. A trade has the id of the execution of its incoming order, such as
p1/17.2, on every copy. Partitions have no order between them. Trades of entries that were freed are not shown.

` + reachHelp + `
Where the grid enforces authorization the permission Watch is needed, and Read for the names of symbols where
--symbol is not given.

Exit codes: 0, 2 wrong usage, 4 failed.`,
		Example: `  kubectl ordergrid trades exchange -f -n trading
  kubectl ordergrid trades exchange --symbol IBM,OIL -f
  kubectl ordergrid trades dev --endpoint 127.0.0.1:7400 -o json | jq .price`,
		Args: oneGrid,
		RunE: func(cmd *cobra.Command, args []string) error { return f.run(cmd, k, args[0]) },
	}
	f.register(cmd.Flags())
	cmd.Flags().StringSliceVar(&f.symbols, "symbol", nil, "only these; repeat or separate by commas; default all")
	cmd.Flags().BoolVarP(&f.follow, "follow", "f", false, "continue with new trades")
	cmd.Flags().StringVarP(&f.output, "output", "o", "text", "text, json (one object a line)")
	completeFlag(cmd, "output", fixedNames("text", "json"))
	return cmd
}

func (f *tradesFlags) run(cmd *cobra.Command, k *kubeFlags, grid string) error {
	if f.output != "text" && f.output != "json" {
		return usageError{fmt.Errorf("--output: value %q, allowed: text, json", f.output)}
	}
	c, done, err := f.dial(cmd, k, grid)
	if err != nil {
		return err
	}
	defer done()
	t := &tradeReader{client: c, out: cmd.OutOrStdout(), notes: cmd.ErrOrStderr(), json: f.output == "json", books: map[bookKey]*client.Book{}, next: map[wire.PartitionID]uint64{}}
	for _, symbol := range f.symbols {
		b, err := c.ReadBook(cmd.Context(), symbol, 1, "")
		if err != nil {
			return err
		}
		t.books[bookKey{b.Partition, b.Book}], t.only = &b, true
		t.next[b.Partition] = 1
	}
	if !t.only {
		for _, p := range c.Table() {
			t.next[p.ID] = 1
		}
	}
	return t.read(cmd.Context(), f.follow)
}

type bookKey struct {
	partition wire.PartitionID
	book      uint16
}

// tradeReader writes the trades of several partitions.
type tradeReader struct {
	client     *client.Client
	out, notes io.Writer
	json, only bool
	books      map[bookKey]*client.Book // nil: its symbol is not known
	next       map[wire.PartitionID]uint64
}

// read reads all partitions in turn, once or until it is interrupted.
func (t *tradeReader) read(ctx context.Context, follow bool) error {
	parts := make([]wire.PartitionID, 0, len(t.next))
	for p := range t.next {
		parts = append(parts, p)
	}
	slices.Sort(parts)
	for {
		for _, p := range parts {
			if err := t.partition(ctx, p); err != nil {
				if follow && errors.Is(ctx.Err(), context.Canceled) {
					return nil // interrupted, which is its regular end
				}
				return err
			}
		}
		if !follow {
			return nil
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(tradesPause):
		}
	}
}

func (t *tradeReader) partition(ctx context.Context, p wire.PartitionID) error {
	for {
		from := t.next[p]
		next, err := t.client.ReadExecutions(ctx, p, "", from, func(e client.Execution) error { return t.execution(ctx, &e) })
		t.next[p] = max(next, from)
		freed, gone := freedUpTo(err)
		if !gone {
			return err
		}
		if from > 1 {
			fmt.Fprintf(t.notes, "%s: entries %d to %d were freed before their trades could be read here\n", p, from, freed)
		}
		t.next[p] = freed + 1
	}
}

// execution writes a trade: both sides have a record, that of the order which came in counts. In an auction no order
// comes in, and the buyer's does.
func (t *tradeReader) execution(ctx context.Context, e *client.Execution) error {
	if e.Kind != client.ExecFilled || e.Auction && e.Side != 1 || !e.Auction && e.Passive {
		return nil
	}
	key := bookKey{e.Partition, e.Book}
	b, known := t.books[key]
	if !known {
		if t.only {
			return nil
		}
		b = t.bookOf(ctx, e)
		t.books[key] = b
	}
	return t.write(e, b)
}

// bookOf finds the book of a trade by an order of it that is held; nil if there is none.
func (t *tradeReader) bookOf(ctx context.Context, e *client.Execution) *client.Book {
	for _, seq := range []uint64{e.Order, e.Entry, e.Other} {
		o, err := t.client.Get(ctx, wire.OrderID{Partition: e.Partition, Seq: seq})
		if err != nil || o.Symbol == "" {
			continue
		}
		if b, err := t.client.ReadBook(ctx, o.Symbol, 1, ""); err == nil && b.Book == e.Book {
			return &b
		}
	}
	return nil
}

var sideNames = map[uint8]string{1: "buy", 2: "sell"}

func (t *tradeReader) write(e *client.Execution, b *client.Book) error {
	symbol, prices, qtys := fmt.Sprintf("book %d", e.Book), uint8(0), uint8(0)
	if b != nil {
		symbol, prices, qtys = b.Symbol, b.PriceDigits, b.QtyDigits
	}
	price, qty := client.Decimal(e.Price, prices), client.Decimal(e.Qty, qtys)
	if t.json {
		return json.NewEncoder(t.out).Encode(struct {
			ID      string `json:"id"`
			Symbol  string `json:"symbol"`
			Side    string `json:"side"`
			Price   string `json:"price"`
			Qty     string `json:"qty"`
			Order   uint64 `json:"order"`
			With    uint64 `json:"with"`
			Auction bool   `json:"auction,omitempty"`
		}{e.ID(), symbol, sideNames[e.Side], price, qty, e.Order, e.Other, e.Auction})
	}
	note := ""
	if e.Auction {
		note = "  auction"
	}
	_, err := fmt.Fprintf(t.out, "%-14s  %-8s  %-4s  %14s at %-14s  %s/%d with %s/%d%s\n", e.ID(), symbol, sideNames[e.Side], qty, price, e.Partition, e.Order, e.Partition, e.Other, note)
	return err
}
