package main

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/ordergrid/ordergrid/gateway/archive"
	"github.com/ordergrid/ordergrid/grid-node/wire"
)

func archiveVerifyCommand() *cobra.Command {
	var f archiveFlags
	cmd := &cobra.Command{
		Use:   "verify URL",
		Short: "Check every entry of an archive",
		Long: `Reads an archive as a whole: checksums of headers, indexes and blocks, sequence numbers without a gap, the
hash chain through all entries of a partition, and that lineage never falls. A flipped bit is reported with
object, block and entry, a missing object with the entries that are missing. A damaged block does not hide
what is behind it. What is missing at the end is not to be seen in the archive: compare the last entry with what
the grid says of the sink, or with a receipt.

The hashes show errors of disks, networks and programs. They are not signatures: who may write to the store
can also write hashes that fit. Keep versions or a lock on the objects where that matters.

` + archive.URLHelp + `

Exit codes: 0 intact, 1 damaged, incomplete or empty, 2 wrong usage, 4 it could not be read.`,
		Example: `  kubectl ordergrid archive verify /var/lib/archive
  kubectl ordergrid archive verify s3://orders/prod --partition p1 -o json | jq '.[].problems'`,
		RunE: func(cmd *cobra.Command, args []string) error { return f.verify(cmd, args[0]) },
	}
	f.register(cmd, "text", formatJSON)
	return cmd
}

func (f *archiveFlags) verify(cmd *cobra.Command, url string) error {
	reports := []*archive.PartitionReport{}
	err := f.read(cmd.Context(), url, func(r *archive.Reader, parts []wire.PartitionID) error {
		for _, p := range parts {
			report, err := r.Verify(cmd.Context(), p)
			if err != nil {
				return err
			}
			reports = append(reports, report)
		}
		return nil
	})
	if err != nil {
		return err
	}
	if f.output == formatJSON {
		err = writeJSON(cmd.OutOrStdout(), reports)
	} else {
		err = writeVerified(cmd.OutOrStdout(), colors(cmd), reports)
	}
	if word, _ := verdictOf(reports); err == nil && word != "INTACT" {
		return exitError(1)
	}
	return err
}

// verdictOf is the last line of verify.
func verdictOf(reports []*archive.PartitionReport) (word, color string) {
	var entries uint64
	for _, r := range reports {
		if !r.Intact() {
			return "DAMAGED", red
		}
		entries += r.Entries
	}
	if entries == 0 { // it proves nothing
		return "EMPTY", red
	}
	return "INTACT", green
}

// writeVerified writes a line for each partition, its problems, and the verdict.
func writeVerified(w io.Writer, colors bool, reports []*archive.PartitionReport) error {
	t := table{colors: colors}
	t.row("PARTITION", "FIRST", "LAST", "ORDERS", "SEGMENTS", "BATCHES", "BYTES", "RATIO", "LAST RECEIVED", "HASH")
	for _, r := range reports {
		end, ratio := "-", "-"
		if r.End != nil {
			end, ratio = r.End.Format(received), fmt.Sprintf("%.1f", float64(r.Raw)/float64(r.Stored))
		}
		t.row(r.Partition, r.First, r.Last, r.Orders, r.Segments, r.Batches, r.Stored, ratio, end, r.ThroughHash)
	}
	if err := t.write(w); err != nil {
		return err
	}
	end := table{colors: colors}
	for _, r := range reports {
		for i := range r.Problems {
			end.row(cell{"PROBLEM", red}, r.Problems[i].Error())
		}
		if r.MoreTrouble > 0 {
			end.row(cell{"PROBLEM", red}, fmt.Sprintf("%s: %d more", r.Partition, r.MoreTrouble))
		}
	}
	word, color := verdictOf(reports)
	end.row(cell{word, color})
	return end.write(w)
}
