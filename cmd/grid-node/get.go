package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/ordergrid/ordergrid/client"
	"github.com/ordergrid/ordergrid/grid-node/wire"
)

func getCommand() *cobra.Command {
	var f clientFlags
	var id, clOrdID, mode string
	var raw bool
	cmd := &cobra.Command{
		Use:     "get",
		Short:   "Read one order by its grid order id or its ClOrdID",
		Example: "  grid-node get --clordid first-order\n  grid-node get --id s0p1/17 --mode backup",
		Args:    noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			m, err := readMode(mode)
			if err == nil && (id == "") == (clOrdID == "") {
				err = errors.New("--id, --clordid: one of them is needed, and only one")
			}
			if err != nil {
				return usageError{err}
			}
			c, err := f.dial(cmd.Context())
			if err != nil {
				return err
			}
			defer func() { _ = c.Close() }()
			o, err := fetch(cmd.Context(), c, id, clOrdID, m)
			if err != nil {
				return err
			}
			if raw {
				_, err = cmd.OutOrStdout().Write(o.FIX)
				return err
			}
			printOrder(cmd.OutOrStdout(), o)
			return nil
		},
	}
	f.add(cmd)
	cmd.Flags().StringVar(&id, "id", "", "grid order id as in the receipt, for example s0p1/17")
	cmd.Flags().StringVar(&clOrdID, "clordid", "", "ClOrdID, FIX tag 11")
	cmd.Flags().StringVar(&mode, "mode", "confirmed", "confirmed (linearizable), leased (faster, trusts clocks) or backup (may be stale)")
	cmd.Flags().BoolVar(&raw, "raw", false, "print the FIX message only, byte for byte")
	return cmd
}

func readMode(s string) (client.ReadMode, error) {
	for name, m := range map[string]client.ReadMode{"confirmed": client.Confirmed, "leased": client.Leased, "backup": client.Backup} {
		if s == name {
			return m, nil
		}
	}
	return 0, fmt.Errorf("--mode: value %q, allowed: confirmed, leased, backup", s)
}

func fetch(ctx context.Context, c *client.Client, id, clOrdID string, m client.ReadMode) (client.Order, error) {
	if clOrdID != "" {
		return c.GetByClOrdID(ctx, clOrdID, client.WithMode(m))
	}
	oid, err := wire.ParseOrderID(id)
	if err != nil {
		return client.Order{}, usageError{fmt.Errorf("--id: %w", err)}
	}
	return c.Get(ctx, oid, client.WithMode(m))
}

func printOrder(w io.Writer, o client.Order) {
	fmt.Fprintf(w, "id        %s\n", o.ID)
	fmt.Fprintf(w, "epoch     %d\n", o.Epoch)
	fmt.Fprintf(w, "received  %s\n", o.Received.UTC().Format(time.RFC3339Nano))
	fmt.Fprintf(w, "ClOrdID   %s\n", o.ClOrdID)
	fmt.Fprintf(w, "symbol    %s\n", o.Symbol)
	fmt.Fprintf(w, "account   %s\n", o.Account)
	fmt.Fprintf(w, "side      %c\n", o.Side)
	fmt.Fprintf(w, "from      %s, which has committed up to %d\n", o.From, o.CommitSeq)
	fmt.Fprintf(w, "FIX       %s\n", bytes.ReplaceAll(o.FIX, []byte{1}, []byte{'|'}))
}
