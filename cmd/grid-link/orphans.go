package main

import (
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/ordergrid/ordergrid/gateway/link"
	"github.com/ordergrid/ordergrid/internal/command"
)

func orphansCommand() *cobra.Command {
	var f pairFlags
	var format, file string
	cmd := &cobra.Command{
		Use:   "orphans",
		Short: "Report the orders that only a replaced site holds",
		Long: `Reports, order by order, what the target acknowledged and the source does not have: the target
is a site that was replaced by force, and the source the one that goes on. It compares the logs
of both, with the permissions Admin and Read, and changes nothing. "now" is where the source has
an order of that ClOrdID, sent again by its client. What it found goes to standard error.`,
		Args: command.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			if err := link.CheckReportFormat(format); err != nil {
				return command.BadUsage(fmt.Errorf("--format: %w", err))
			}
			p, err := f.connect(cmd.Context())
			if err != nil {
				return err
			}
			defer p.close()
			out := cmd.OutOrStdout()
			if file != "" {
				f, err := os.OpenFile(file, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
				if err != nil {
					return fmt.Errorf("--output: %w", err)
				}
				defer f.Close() //nolint:errcheck // it was synced
				defer func() { err = errors.Join(err, f.Sync()) }()
				out = f
			}
			report, err := link.NewReport(out, format)
			if err != nil {
				return err
			}
			for _, id := range p.partitions {
				fork, err := link.Orphans(cmd.Context(), p.target, p.source, id, report.Write)
				if err := report.Flush(); err != nil {
					return err
				}
				if err != nil {
					return err
				}
				fmt.Fprintf(cmd.ErrOrStderr(), "%s: both have entry %d (hash %s); %s has %d entries behind it, %d orders, of which %d were sent again to %s\n",
					id, fork.Seq, fork.Hash, f.target.grid, fork.Entries, fork.Orders, fork.SentAgain, f.source.grid)
			}
			return nil
		},
	}
	f.add(cmd.Flags())
	cmd.Flags().StringVar(&file, "output", "", "file for the report, which must not exist; default standard output")
	cmd.Flags().StringVar(&format, "format", "csv", "csv, or json, one object a line")
	return cmd
}
