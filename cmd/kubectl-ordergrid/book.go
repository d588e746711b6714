package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/ordergrid/ordergrid/client"
)

// bookPause is between two looks at a book with --follow.
const bookPause = 500 * time.Millisecond

type bookFlags struct {
	reachFlags
	depth  int
	orders bool
	follow bool
	output string
}

// look reads a book; what it returns writes it, nil if it is as it was at the last look.
type look func(context.Context) (func(io.Writer) error, error)

func bookCommand(k *kubeFlags) *cobra.Command {
	var f bookFlags
	cmd := &cobra.Command{
		Use:   "book GRID SYMBOL",
		Short: "Show the book of a symbol, in a grid that matches",
		Long: `Shows the best levels of a book as a ladder: what is offered above, what is bid below. It is the book after
a committed entry of the log, which every copy in sync has executed in the same way; what is hidden, stops,
and market orders in a call are not in it. With --follow it is shown anew whenever it has changed. With
--orders each order is shown, with its place in the queue of its price. An order is named by the entry that it
began with, such as p1/17, as executions name it; that says nothing of whose it is.

` + reachHelp + `
Where the grid enforces authorization the permission Watch is needed.

Exit codes: 0, 2 wrong usage, 4 failed.`,
		Example: `  kubectl ordergrid book exchange IBM -n trading
  kubectl ordergrid book exchange IBM -f --depth 5
  kubectl ordergrid book exchange IBM --orders -o json | jq '.bids[0].orders[] | {order, ahead}'
  kubectl ordergrid book dev OIL --endpoint 127.0.0.1:7400 -o json | jq .asks[0]`,
		Args: gridAndSymbol,
		RunE: func(cmd *cobra.Command, args []string) error { return f.run(cmd, k, args[0], args[1]) },
	}
	f.register(cmd.Flags())
	cmd.Flags().IntVar(&f.depth, "depth", 10, fmt.Sprintf("levels of each side, 1 to %d", client.MostLevels))
	cmd.Flags().BoolVar(&f.orders, "orders", false, "each order of these levels, with its place in the queue")
	cmd.Flags().BoolVarP(&f.follow, "follow", "f", false, "show it again when it has changed, until interrupted")
	cmd.Flags().StringVarP(&f.output, "output", "o", "text", "text, json (one object a line)")
	completeFlag(cmd, "output", fixedNames("text", "json"))
	return cmd
}

// gridAndSymbol checks the arguments of commands about one book.
func gridAndSymbol(cmd *cobra.Command, args []string) error {
	if len(args) != 2 || args[0] == "" || args[1] == "" {
		return usageError{fmt.Errorf("%d arguments, allowed: an OrderGrid and a symbol; see %s --help", len(args), cmd.CommandPath())}
	}
	return nil
}

func (f *bookFlags) run(cmd *cobra.Command, k *kubeFlags, grid, symbol string) error {
	switch {
	case f.output != "text" && f.output != "json":
		return usageError{fmt.Errorf("--output: value %q, allowed: text, json", f.output)}
	case f.depth < 1 || f.depth > client.MostLevels:
		return usageError{fmt.Errorf("--depth: value %d, allowed: 1 to %d", f.depth, client.MostLevels)}
	}
	c, done, err := f.dial(cmd, k, grid)
	if err != nil {
		return err
	}
	defer done()
	screen := f.follow && f.output == "text" && isTerminal(cmd.OutOrStdout())
	read := f.levels(c, symbol)
	if f.orders {
		read = f.queues(c, symbol)
	}
	for {
		write, err := read(cmd.Context())
		if err != nil {
			if f.follow && errors.Is(cmd.Context().Err(), context.Canceled) {
				return nil // interrupted, which is its regular end
			}
			return err
		}
		if write != nil {
			if screen {
				fmt.Fprint(cmd.OutOrStdout(), "\x1b[H\x1b[2J")
			}
			if err := write(cmd.OutOrStdout()); err != nil {
				return err
			}
		}
		if !f.follow {
			return nil
		}
		select {
		case <-cmd.Context().Done():
			return nil
		case <-time.After(bookPause):
		}
	}
}

// levels looks at the best levels of a book.
func (f *bookFlags) levels(c *client.Client, symbol string) look {
	last, first := uint64(0), true
	return func(ctx context.Context) (func(io.Writer) error, error) {
		b, err := c.ReadBook(ctx, symbol, f.depth, "")
		if err != nil || !first && b.ExecSeq == last {
			return nil, err
		}
		first, last = false, b.ExecSeq
		return func(w io.Writer) error { return f.write(w, &b) }, nil
	}
}

// bookJSON is a book with its numbers as decimal text.
type bookJSON struct {
	Symbol  string      `json:"symbol"`
	State   string      `json:"state"`
	Until   string      `json:"until,omitempty"`
	Last    string      `json:"last,omitempty"`
	Low     string      `json:"low"`
	High    string      `json:"high"`
	Bids    []levelJSON `json:"bids"`
	Asks    []levelJSON `json:"asks"`
	Part    string      `json:"partition"`
	Seq     uint64      `json:"seq"`
	ExecSeq uint64      `json:"execSeq"`
}

type levelJSON struct {
	Price  string `json:"price"`
	Qty    string `json:"qty"`
	Orders uint32 `json:"orders"`
}

func (f *bookFlags) write(w io.Writer, b *client.Book) error {
	if f.output == "json" {
		return json.NewEncoder(w).Encode(bookObject(b))
	}
	return writeLadder(w, b)
}

func bookObject(b *client.Book) bookJSON {
	price := func(v int64) string { return client.Decimal(v, b.PriceDigits) }
	o := bookJSON{Symbol: b.Symbol, State: b.State.String(), Low: price(b.Low), High: price(b.High), Part: b.Partition.String(), Seq: b.Seq, ExecSeq: b.ExecSeq, Bids: []levelJSON{}, Asks: []levelJSON{}}
	if b.Traded {
		o.Last = price(b.Last)
	}
	if !b.Until.IsZero() {
		o.Until = b.Until.UTC().Format(time.RFC3339Nano)
	}
	for _, l := range b.Bids {
		o.Bids = append(o.Bids, levelJSON{price(l.Price), client.Decimal(l.Qty, b.QtyDigits), l.Orders})
	}
	for _, l := range b.Asks {
		o.Asks = append(o.Asks, levelJSON{price(l.Price), client.Decimal(l.Qty, b.QtyDigits), l.Orders})
	}
	return o
}

// writeLadder writes asks from the highest down to the best, then bids from the best down.
func writeLadder(w io.Writer, b *client.Book) error {
	o := bookObject(b)
	head := o.Symbol + "  " + o.State
	if o.Until != "" {
		head += " until " + o.Until
	}
	if o.Last != "" {
		head += "  last " + o.Last
	}
	var t strings.Builder
	fmt.Fprintf(&t, "%s  band %s to %s  %s/%d\n", head, o.Low, o.High, o.Part, o.Seq)
	const row = "%7s %14s %14s %14s %7s\n"
	fmt.Fprintf(&t, row, "orders", "bid", "price", "ask", "orders")
	for i := len(o.Asks) - 1; i >= 0; i-- {
		l := o.Asks[i]
		fmt.Fprintf(&t, row, "", "", l.Price, l.Qty, fmt.Sprint(l.Orders))
	}
	for _, l := range o.Bids {
		t.WriteString(strings.TrimRight(fmt.Sprintf(row, fmt.Sprint(l.Orders), l.Qty, l.Price, "", ""), " \n") + "\n")
	}
	if len(o.Asks)+len(o.Bids) == 0 {
		t.WriteString("no orders\n")
	}
	_, err := io.WriteString(w, t.String())
	return err
}
