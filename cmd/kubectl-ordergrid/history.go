package main

import (
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/ordergrid/ordergrid/api/v1alpha1"
)

func historyCommand(k *kubeFlags) *cobra.Command {
	var f listFlags
	cmd := &cobra.Command{
		Use:   "history GRID",
		Short: "Show decisions about a grid, and who requested them",
		Long: `Shows status.history of an OrderGrid, the oldest entry first: accepted losses and new lineages, configurations
that were written again, shards and copies added and removed, pods given up on lost nodes. Events have the
same but expire after an hour; the history keeps the last 64 entries, those about data the longest.

BY is the client program that set the annotation, and when, by the managed fields of the object; the user
is in the audit log of the API server. "operator" is a decision without a request.

Exit codes: 0, 2 wrong usage, 4 failed.`,
		Example: `  kubectl ordergrid history trades -n trading
  kubectl ordergrid history trades -o json | jq -r '.items[0].status.history[]'`,
		Args: oneGrid,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := f.check(); err != nil {
				return err
			}
			cluster, err := k.connect()
			if err != nil {
				return err
			}
			og, err := cluster.grid(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			if done, err := f.encoded(cmd.OutOrStdout(), listOf(og)); done {
				return err
			}
			return writeHistory(cmd.OutOrStdout(), og.Status.History, colors(cmd))
		},
	}
	f.register(cmd)
	return cmd
}

func writeHistory(w io.Writer, entries []v1alpha1.HistoryEntry, colors bool) error {
	if len(entries) == 0 {
		_, err := fmt.Fprintln(w, "no decisions about this grid yet")
		return err
	}
	t := &table{colors: colors}
	t.row("TIME", "WHAT", "ABOUT", "BY", "MESSAGE")
	for _, e := range entries {
		t.row(e.Time.UTC().Format(time.RFC3339), e.Reason, e.About, e.By, e.Message)
	}
	return t.write(w)
}
