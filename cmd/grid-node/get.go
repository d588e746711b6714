package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ordergrid/ordergrid/client"
	"github.com/ordergrid/ordergrid/internal/command"
	"github.com/ordergrid/ordergrid/internal/ordertext"
)

func getCommand() *cobra.Command {
	var f clientFlags
	var id, clOrdID, session, mode string
	var raw bool
	cmd := &cobra.Command{
		Use:     "get",
		Short:   "Read one order by its grid order id or its ClOrdID",
		Example: "  grid-node get --clordid first-order\n  grid-node get --id p1/17 --mode backup",
		Args:    command.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			m, err := client.ParseReadMode(mode)
			if err != nil {
				err = fmt.Errorf("--mode: %w", err)
			} else if (id == "") == (clOrdID == "") {
				err = errors.New("--id, --clordid: one of them is needed, and only one")
			} else if session != "" && clOrdID == "" {
				err = errors.New("--fix-session: allowed with --clordid only")
			}
			if err != nil {
				return command.BadUsage(err)
			}
			c, err := f.dial(cmd.Context())
			if err != nil {
				return err
			}
			defer func() { _ = c.Close() }()
			o, err := fetch(cmd.Context(), c, id, clOrdID, session, m)
			if err != nil {
				return err
			}
			if raw {
				return ordertext.FIX(cmd.OutOrStdout(), &o)
			}
			return ordertext.Page(cmd.OutOrStdout(), &o)
		},
	}
	f.add(cmd)
	cmd.Flags().StringVar(&id, "id", "", "grid order id as in the receipt, for example p1/17, or p1/17@3-1c9f0e2a77b3d401 with its epoch and hash: then no other order with that number is returned")
	cmd.Flags().StringVar(&clOrdID, "clordid", "", "ClOrdID, FIX tag 11")
	cmd.Flags().StringVar(&session, "fix-session", "", "with --clordid: the FIX session that sent the order today, as order-gateway names it, for example FIX.4.4:BANK->GRID; such an order is found by its session only")
	cmd.Flags().StringVar(&mode, "mode", "confirmed", client.ReadModeHelp)
	cmd.Flags().BoolVar(&raw, "raw", false, "print the FIX message only, byte for byte")
	return cmd
}

func fetch(ctx context.Context, c *client.Client, id, clOrdID, session string, m client.ReadMode) (client.Order, error) {
	if session != "" {
		begin, pair, ok := strings.Cut(session, ":")
		sender, target, is := strings.Cut(pair, "->")
		if !ok || !is {
			return client.Order{}, command.BadUsage(fmt.Errorf("--fix-session: value %q, allowed: BEGINSTRING:SENDER->TARGET, for example FIX.4.4:BANK->GRID", session))
		}
		return c.GetFix(ctx, client.FixSessionOf(begin, sender, target), client.FixToday, clOrdID, client.WithMode(m))
	}
	if clOrdID != "" {
		return c.GetByClOrdID(ctx, clOrdID, client.WithMode(m))
	}
	oid, of, err := client.ParseOrder(id)
	if err != nil {
		return client.Order{}, command.BadUsage(fmt.Errorf("--id: %w", err))
	}
	return c.Get(ctx, oid, append(of, client.WithMode(m))...)
}
