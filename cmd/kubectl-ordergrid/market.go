package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/ordergrid/ordergrid/client"
	"github.com/ordergrid/ordergrid/grid-node/order"
)

type marketFlags struct {
	reachFlags
	reason   string
	duration time.Duration
	http     []string
	output   string
}

// marketActs are what a person can do with a book.
var marketActs = map[string]client.MarketOp{
	"halt":    {State: client.BookHalted},
	"resume":  {State: client.BookOpen},
	"open":    {State: client.BookOpen},
	"close":   {State: client.BookClosed},
	"call":    {State: client.BookCall},
	"uncross": {State: client.BookOpen, Uncross: true},
	"band":    {},
}

func marketCommand(k *kubeFlags) *cobra.Command {
	var f marketFlags
	cmd := &cobra.Command{
		Use:   "market GRID [SYMBOL [halt|resume|open|close|call|uncross|band LOW HIGH]]",
		Short: "Show the state and phase of books; halt, resume, open, close or uncross one, or move its price band",
		Long: `Without anything to do, shows the state of each book, or that of a symbol, since when, and the phase of the
calendar that it is to be in, with the next one: by the pages of the nodes that lead the partitions, or those at
--http without Kubernetes. A book that a person has opened, closed or halted is in another state than its phase.

With it, changes the state of a book or its price band, in a grid that matches. It takes effect at one place of the log, for all copies,
and the reason is in the log; who gave it is not.

  halt     only cancels are accepted; with --for trading resumes by itself, with the first
           order of the book from then on
  resume   a halted or closed book trades again; open is the same
  close    only cancels are accepted
  call     orders are collected for an auction
  uncross  the call ends: one price for all that can trade, then the book is open
  band     new orders have prices from LOW to HIGH, and market orders trade no further; what
           rests outside stays. Before a negative price write --

` + reachHelp + `
Where the grid enforces authorization the permission Admin is needed to change a book.

Exit codes: 0 done, 2 wrong usage, 4 failed or refused by the book.`,
		Example: `  kubectl ordergrid market exchange -n trading
  kubectl ordergrid market exchange IBM -o json
  kubectl ordergrid market exchange IBM halt --reason "news pending" -n trading
  kubectl ordergrid market exchange IBM halt --for 5m --reason "volatility"
  kubectl ordergrid market exchange OIL uncross --reason "opening auction"
  kubectl ordergrid market exchange IBM band 120 130 --reason "limit up, limit down"`,
		Args: func(cmd *cobra.Command, args []string) error {
			switch band := len(args) > 2 && args[2] == "band"; {
			case len(args) == 1 || len(args) == 2:
				return nil
			case band && len(args) != 5:
				return usageError{fmt.Errorf("%d arguments, allowed: an OrderGrid, a symbol, band, and the lowest and the highest price; see %s --help", len(args), cmd.CommandPath())}
			case !band && len(args) != 3:
				return usageError{fmt.Errorf("%d arguments, allowed: an OrderGrid, a symbol and what to do; see %s --help", len(args), cmd.CommandPath())}
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) < 3 {
				return f.show(cmd, k, args[0], strings.Join(args[1:], ""))
			}
			return f.run(cmd, k, args)
		},
	}
	f.register(cmd.Flags())
	cmd.Flags().StringVar(&f.reason, "reason", "", "why, for the log: up to 128 bytes on one line (required for a change)")
	cmd.Flags().StringSliceVar(&f.http, "http", nil, "to show books: host:port of a node's HTTP pages; Kubernetes is not used then")
	cmd.Flags().StringVarP(&f.output, "output", "o", "text", "of what is shown: text, json")
	completeFlag(cmd, "output", fixedNames("text", "json"))
	cmd.Flags().DurationVar(&f.duration, "for", 0, "of a halt: how long; default until it is resumed")
	return cmd
}

func (f *marketFlags) run(cmd *cobra.Command, k *kubeFlags, args []string) error {
	op, known := marketActs[args[2]]
	switch {
	case !known:
		return usageError{fmt.Errorf("%q: allowed: halt, resume, open, close, call, uncross, band", args[2])}
	case f.reason == "" || len(f.reason) > 128:
		return usageError{fmt.Errorf("--reason: %d bytes, allowed: 1 to 128: it stands in the log", len(f.reason))}
	case f.duration < 0 || f.duration != 0 && op.State != client.BookHalted:
		return usageError{fmt.Errorf("--for: value %s, allowed: more than 0, and with halt only", f.duration)}
	}
	op.Symbol, op.Reason = args[1], f.reason
	if f.duration > 0 {
		op.Until = time.Now().Add(f.duration)
	}
	c, done, err := f.dial(cmd, k, args[0])
	if err != nil {
		return err
	}
	defer done()
	if args[2] == "band" {
		if op.Band, err = bandOf(cmd.Context(), c, op.Symbol, args[3:]); err != nil {
			return err
		}
	}
	seq, state, err := c.Market(cmd.Context(), op)
	if err != nil {
		return err
	}
	if op.Band != nil {
		_, err = fmt.Fprintf(cmd.OutOrStdout(), "%s has the band %s, by entry %s/%d\n", op.Symbol, strings.Join(args[3:], " to "), c.RouteSymbol(op.Symbol), seq)
		return err
	}
	_, err = fmt.Fprintf(cmd.OutOrStdout(), "%s is %s, by entry %s/%d\n", op.Symbol, state, c.RouteSymbol(op.Symbol), seq)
	return err
}

// bandOf reads the lowest and the highest price of a band with the digits that prices of the symbol have.
func bandOf(ctx context.Context, c *client.Client, symbol string, prices []string) (*client.PriceBand, error) {
	b, err := c.ReadBook(ctx, symbol, 1, "")
	if err != nil {
		return nil, err
	}
	var units [2]int64
	for i, text := range prices {
		var ok bool
		if units[i], ok = order.Units([]byte(text), b.PriceDigits); !ok {
			return nil, usageError{fmt.Errorf("price %q, allowed: a decimal number with at most %d digits behind the point", text, b.PriceDigits)}
		}
	}
	if units[0] > units[1] {
		return nil, usageError{fmt.Errorf("a band of %s to %s, allowed: the lowest price first", prices[0], prices[1])}
	}
	return &client.PriceBand{Low: units[0], High: units[1]}, nil
}
