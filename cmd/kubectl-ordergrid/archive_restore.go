package main

import (
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/ordergrid/ordergrid/gateway/archive"
	"github.com/ordergrid/ordergrid/grid-node/wire"
)

func archiveRestoreCommand() *cobra.Command {
	var f archiveFlags
	var dryRun bool
	cmd := &cobra.Command{
		Use:   "restore --dry-run URL",
		Short: "Tell what a grid restored from an archive would have",
		Long: `Replays an archive as a node does, entry by entry, and reports what each partition is then: the recovery point
(last entry, its hash, when it was received), orders, client sessions with the replies that are kept, and the
digest of the state that copies compare. Nothing is changed.

An archive that begins behind entry 1, has a gap or an entry that is not as it was written is refused with the
entry's number; the figures are then of the entries before it.

` + archive.URLHelp + `

Exit codes: 0 it can be restored, 1 it cannot be, 2 wrong usage, 4 it could not be read.`,
		Example: `  kubectl ordergrid archive restore --dry-run /var/lib/archive
  kubectl ordergrid archive restore --dry-run s3://orders/prod -o json`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if !dryRun {
				return usageError{errors.New("--dry-run: it is not set, allowed: true; a grid is not restored by this command")}
			}
			return f.restore(cmd, args[0])
		},
	}
	f.register(cmd, "text", formatJSON)
	cmd.Flags().BoolVar(&dryRun, "dry-run", false, "only replay and report")
	return cmd
}

func (f *archiveFlags) restore(cmd *cobra.Command, url string) error {
	states := []*archive.Replayed{}
	err := f.read(cmd.Context(), url, func(r *archive.Reader, parts []wire.PartitionID) error {
		for _, p := range parts {
			state, err := r.Replay(cmd.Context(), p)
			if err != nil {
				return err
			}
			states = append(states, state)
		}
		return nil
	})
	if err != nil {
		return err
	}
	if f.output == formatJSON {
		err = writeJSON(cmd.OutOrStdout(), states)
	} else {
		err = writeReplayed(cmd.OutOrStdout(), colors(cmd), states)
	}
	for _, s := range states {
		if err == nil && s.Problem != nil {
			return exitError(1)
		}
	}
	return err
}

func writeReplayed(w io.Writer, colors bool, states []*archive.Replayed) error {
	t := table{colors: colors}
	t.row("PARTITION", "RECOVERY POINT", "RECEIVED", "HASH", "LINEAGE", "EPOCH", "ORDERS", "SESSIONS", "BYTES", "DIGEST")
	last := table{colors: colors}
	end := cell{"RESTORABLE", green}
	for _, s := range states {
		when := "-"
		if s.Time != nil {
			when = s.Time.Format(received)
		}
		t.row(s.Partition, s.Seq, when, s.Hash, s.Lineage, s.Epoch, s.Orders, s.Sessions, s.Bytes, s.Digest)
		if s.Problem != nil {
			last.row(cell{"PROBLEM", red}, fmt.Sprintf("%s: %v", s.Partition, s.Problem))
			end = cell{"NOT RESTORABLE", red}
		}
	}
	last.row(end)
	if err := t.write(w); err != nil {
		return err
	}
	return last.write(w)
}
