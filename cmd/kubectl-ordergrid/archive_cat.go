package main

import (
	"bufio"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/ordergrid/ordergrid/client"
	"github.com/ordergrid/ordergrid/gateway/archive"
	"github.com/ordergrid/ordergrid/grid-node/order"
	"github.com/ordergrid/ordergrid/grid-node/wire"
	"github.com/ordergrid/ordergrid/internal/ordertext"
)

type archiveCatFlags struct {
	archiveFlags
	from, to uint64
	clOrdID  string
}

func archiveCatCommand() *cobra.Command {
	var f archiveCatFlags
	cmd := &cobra.Command{
		Use:   "cat URL",
		Short: "Print orders of an archive",
		Long: `Prints the orders of an archive, partition by partition, in the order of the log: as lines of JSON, as lines
of text, or as the FIX messages byte for byte, one after the other. With --from and --to only the segments with
these entries are read; with --clordid all of them are. Every entry is verified before it is printed; the first
that is damaged or missing ends the command.

` + archive.URLHelp + `

Exit codes: 0, 1 an entry is damaged or missing, or no order has the ClOrdID, 2 wrong usage, 4 failed.`,
		Example: `  kubectl ordergrid archive cat /var/lib/archive --partition p1 --from 1000 --to 1999
  kubectl ordergrid archive cat s3://orders/prod --clordid ORDER-17 -o fix | tr '\001' '|'`,
		RunE: func(cmd *cobra.Command, args []string) error { return f.cat(cmd, args[0]) },
	}
	f.register(cmd, "json", "text", "fix")
	cmd.Flags().Uint64Var(&f.from, "from", 0, "first entry; default that of the archive")
	cmd.Flags().Uint64Var(&f.to, "to", 0, "last entry; default that of the archive")
	cmd.Flags().StringVar(&f.clOrdID, "clordid", "", "only the order with this ClOrdID (FIX tag 11)")
	return cmd
}

func (f *archiveCatFlags) cat(cmd *cobra.Command, url string) error {
	if f.to > 0 && f.to < f.from {
		return usageError{fmt.Errorf("--to: value %d, allowed: --from, %d, or more", f.to, f.from)}
	}
	write := map[string]func(w *bufio.Writer, o *client.Order) error{
		"json": func(w *bufio.Writer, o *client.Order) error { return ordertext.JSON(w, o) },
		"text": func(w *bufio.Writer, o *client.Order) error { return ordertext.Line(w, o) },
		"fix":  func(w *bufio.Writer, o *client.Order) error { return ordertext.FIX(w, o) },
	}[f.output]
	out := bufio.NewWriterSize(cmd.OutOrStdout(), 64<<10)
	found := 0
	err := f.read(cmd.Context(), url, func(r *archive.Reader, parts []wire.PartitionID) error {
		for _, p := range parts {
			err := r.Entries(cmd.Context(), p, f.from, f.to, func(e *client.LogEntry) error {
				if !e.Kind.IsOrder() || f.clOrdID != "" && string(order.ClOrdID(e.Bytes)) != f.clOrdID {
					return nil
				}
				found++
				o, _ := e.Order(p)
				return write(out, &o)
			})
			if err != nil {
				return err
			}
		}
		return nil
	})
	if flush := out.Flush(); err == nil {
		err = flush
	}
	var problem *archive.Problem
	switch {
	case errors.As(err, &problem):
		fmt.Fprintln(cmd.ErrOrStderr(), "PROBLEM", problem)
		return exitError(1)
	case err == nil && found == 0 && f.clOrdID != "":
		fmt.Fprintf(cmd.ErrOrStderr(), "clordid %s: no order of the archive has it\n", f.clOrdID)
		return exitError(exitNotFound)
	}
	return err
}
