package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/ordergrid/ordergrid/client"
	"github.com/ordergrid/ordergrid/grid-node/wire"
	"github.com/ordergrid/ordergrid/internal/ordertext"
)

// exitNotFound means that a requested order does not exist.
const exitNotFound = 1

type getFlags struct {
	reachFlags
	mode, output string
	chain        bool
	timeout      time.Duration
}

func getCommand(k *kubeFlags) *cobra.Command {
	var f getFlags
	cmd := &cobra.Command{
		Use:   "get GRID ORDER...",
		Short: "Read orders by ClOrdID or by their id, such as p1/17",
		Long: `Reads committed orders. ORDER is a ClOrdID (FIX tag 11), or the id in a receipt: partition and
sequence number, such as p1/17, with epoch and hash if it may be old: p1/17@3-1c9f0e2a77b3d401.
Then no other order with that number is returned, assigned after an accepted loss of data
or in a grid recreated under its name. With the epoch alone, p1/17@3, that holds within one
grid. A ClOrdID that looks like an id is written clordid:VALUE.

` + reachHelp + `

Exit codes: 0 all there, 1 one is not there, was freed, or is another order now, 2 wrong usage, 4 failed.`,
		Example: `  kubectl ordergrid get trades first-order -n trading
  kubectl ordergrid get trades p1/17 p1/18@3 -o json
  kubectl ordergrid get dev first-order --endpoint 127.0.0.1:7400 -o fix`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) < 2 {
				return usageError{fmt.Errorf("%d arguments, allowed: an OrderGrid and one order or more; see %s --help", len(args), cmd.CommandPath())}
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error { return f.run(cmd, k, args[0], args[1:]) },
	}
	f.register(cmd.Flags())
	cmd.Flags().StringVar(&f.mode, "mode", "confirmed", client.ReadModeHelp)
	cmd.Flags().StringVarP(&f.output, "output", "o", "text", strings.Join(ordertext.Formats, ", ")+" (the message byte for byte)")
	cmd.Flags().BoolVar(&f.chain, "chain", false, "with text: also what the order replaces or cancels, and what replaced or cancelled it, in all partitions (of grids with spec.views)")
	cmd.Flags().DurationVar(&f.timeout, "timeout", time.Minute, "for everything")
	return cmd
}

func (f *getFlags) run(cmd *cobra.Command, k *kubeFlags, grid string, orders []string) error {
	if err := ordertext.CheckFormat("--output", f.output); err != nil {
		return usageError{err}
	}
	if f.chain && f.output != "text" {
		return usageError{fmt.Errorf("--chain with --output %s, allowed: text", f.output)}
	}
	mode, err := client.ParseReadMode(f.mode)
	if err != nil {
		return usageError{fmt.Errorf("--mode: %w", err)}
	}
	ctx, cancel := context.WithTimeout(cmd.Context(), f.timeout)
	defer cancel()
	cmd.SetContext(ctx)
	c, done, err := f.dial(cmd, k, grid)
	if err != nil {
		return err
	}
	defer done()
	missing := false
	for i, key := range orders {
		o, err := fetchOrder(ctx, c, key, mode)
		if errors.Is(err, client.ErrNotFound) || errors.Is(err, client.ErrFreed) || errors.Is(err, client.ErrOtherOrder) {
			fmt.Fprintf(cmd.ErrOrStderr(), "%s: %v\n", key, err)
			missing = true
			continue
		}
		if err != nil {
			return fmt.Errorf("%s: %w", key, err)
		}
		if err := writeOrder(cmd.OutOrStdout(), f.output, &o, i > 0); err != nil {
			return err
		}
		if f.chain {
			if err := writeChain(ctx, cmd.OutOrStdout(), c, &o); err != nil {
				return err
			}
		}
	}
	if missing {
		return exitError(exitNotFound)
	}
	return nil
}

func fetchOrder(ctx context.Context, c *client.Client, key string, m client.ReadMode) (client.Order, error) {
	clOrdID, plain := strings.CutPrefix(key, "clordid:")
	id, of, err := client.ParseOrder(key)
	switch name, _, _ := strings.Cut(key, "@"); {
	case plain:
	case err == nil:
		return c.Get(ctx, id, append(of, client.WithMode(m))...)
	case isOrderID(name):
		return client.Order{}, usageError{fmt.Errorf("%w; a ClOrdID that looks like an id is written clordid:%s", err, key)}
	}
	return c.GetByClOrdID(ctx, clOrdID, client.WithMode(m))
}

func isOrderID(text string) bool {
	_, err := wire.ParseOrderID(text)
	return err == nil
}

func writeOrder(w io.Writer, format string, o *client.Order, more bool) error {
	switch {
	case format == "json":
		return ordertext.JSON(w, o)
	case format == "fix":
		return ordertext.FIX(w, o)
	case more:
		fmt.Fprintln(w)
	}
	return ordertext.Page(w, o)
}
