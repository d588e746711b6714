package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ordergrid/ordergrid/gateway/archive"
	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// archiveFlags are those of all commands that read an archive.
type archiveFlags struct {
	grid           string
	partitions     []string
	credentialsDir string
	output         string
}

func (f *archiveFlags) register(cmd *cobra.Command, formats ...string) {
	fl := cmd.Flags()
	fl.StringVar(&f.grid, "grid", "", "the grid, where the archive has several")
	fl.StringSliceVar(&f.partitions, "partition", nil, "only these, for example p1; default all")
	fl.StringVar(&f.credentialsDir, "credentials-dir", "", "directory with the files access-key-id and secret-access-key, for a bucket")
	fl.StringVarP(&f.output, "output", "o", formats[0], strings.Join(formats, ", "))
	completeFlag(cmd, "output", fixedNames(formats...))
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		if len(args) != 1 {
			return usageError{fmt.Errorf("%d arguments, allowed: the URL of one archive; see %s --help", len(args), cmd.CommandPath())}
		}
		if !slices.Contains(formats, f.output) {
			return usageError{fmt.Errorf("--output: value %q, allowed: %s", f.output, strings.Join(formats, ", "))}
		}
		return nil
	}
}

// read calls fn for the partitions of the archive.
func (f *archiveFlags) read(ctx context.Context, url string, fn func(r *archive.Reader, parts []wire.PartitionID) error) error {
	chosen, err := parsePartitions(f.partitions)
	if err != nil {
		return err
	}
	s, err := archive.OpenURL(url, f.credentialsDir)
	if err != nil {
		return usageError{err}
	}
	defer s.Close() //nolint:errcheck // nothing is written
	r, err := archive.OpenReader(ctx, s, f.grid)
	if err != nil {
		return err
	}
	parts, err := r.Partitions(ctx)
	if err != nil {
		return err
	}
	for _, p := range chosen {
		if !slices.Contains(parts, p) {
			return fmt.Errorf("--partition: the archive of grid %s has no %s, allowed: %v", r.Grid(), p, parts)
		}
	}
	if len(chosen) > 0 {
		parts = chosen
	}
	return fn(r, parts)
}

func archiveCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "archive",
		Short: "List, verify and read the archive of a grid",
		Long: `Reads what a sink of type Archive has written: the committed log of a grid, in a directory or a bucket. The
grid need not run any more, and no access to a cluster is needed. Nothing is changed. An archive may be written
meanwhile.`,
	}
	cmd.AddCommand(archiveListCommand(), archiveVerifyCommand(), archiveCatCommand(), archiveRestoreCommand())
	return cmd
}

func archiveListCommand() *cobra.Command {
	var f archiveFlags
	cmd := &cobra.Command{
		Use:   "ls URL",
		Short: "List the objects of an archive in the order of the log",
		Long: `Lists segments, and the batches at the end that are not merged into a segment yet: first and last entry,
orders, bytes in the store, how many times larger the entries are, and when they were received. Only headers
are read: what is listed may still be damaged, see verify. Objects that are missing are named.

` + archive.URLHelp + `

Exit codes: 0, 1 objects are missing or not readable, 2 wrong usage, 4 failed.`,
		Example: `  kubectl ordergrid archive ls /var/lib/archive
  kubectl ordergrid archive ls 's3://orders/prod?endpoint=https://minio.storage:9000&region=eu-1' --partition p1 -o json`,
		RunE: func(cmd *cobra.Command, args []string) error { return f.list(cmd, args[0]) },
	}
	f.register(cmd, formatTable, formatJSON)
	return cmd
}

// objectLine is a line of ls -o json.
type objectLine struct {
	Partition string `json:"partition"`
	Object    string `json:"object"`
	Kind      string `json:"kind"`
	First     uint64 `json:"first"`
	Last      uint64 `json:"last"`
	Entries   uint32 `json:"entries"`
	Orders    uint32 `json:"orders"`
	Bytes     int64  `json:"bytes"`
	Raw       uint64 `json:"rawBytes"`
	Lineage   uint32 `json:"lineage"`
	Begin     string `json:"begin,omitempty"`
	End       string `json:"end,omitempty"`
}

func (f *archiveFlags) list(cmd *cobra.Command, url string) error {
	t := table{colors: colors(cmd)}
	t.row("OBJECT", "FIRST", "LAST", "ORDERS", "BYTES", "RATIO", "RECEIVED")
	enc := json.NewEncoder(cmd.OutOrStdout())
	sound := true
	err := f.read(cmd.Context(), url, func(r *archive.Reader, parts []wire.PartitionID) error {
		for _, p := range parts {
			err := r.Objects(cmd.Context(), p, func(o *archive.Info) error {
				if f.output == formatJSON {
					return enc.Encode(lineOf(p, o))
				}
				ratio, received := "-", "-"
				if o.Entries > 0 {
					ratio, received = fmt.Sprintf("%.1f", float64(o.Raw)/float64(o.Size)), timeRange(o)
				}
				t.row(strings.TrimPrefix(o.Name, r.Grid()+"/"), o.First, o.Last, o.Orders, o.Size, ratio, received)
				return nil
			}, func(p *archive.Problem) error {
				sound = false
				_, err := fmt.Fprintln(cmd.ErrOrStderr(), "PROBLEM", p)
				return err
			})
			if err != nil {
				return err
			}
		}
		return nil
	})
	if err == nil && f.output == formatTable {
		err = t.write(cmd.OutOrStdout())
	}
	if err == nil && !sound {
		err = exitError(1)
	}
	return err
}

const received = "2006-01-02T15:04:05.000Z"

func timeRange(o *archive.Info) string {
	first, last := o.Time()
	return first.Format(received) + " to " + last.Format(received)
}

func lineOf(p wire.PartitionID, o *archive.Info) objectLine {
	l := objectLine{Partition: p.String(), Object: o.Name, Kind: o.Kind.String(), First: o.First, Last: o.Last, Entries: o.Entries, Orders: o.Orders, Bytes: o.Size, Raw: o.Raw, Lineage: o.Lineage}
	if o.Entries > 0 {
		first, last := o.Time()
		l.Begin, l.End = first.Format(received), last.Format(received)
	}
	return l
}

// writeJSON writes v indented.
func writeJSON(w io.Writer, v any) error {
	enc := json.NewEncoder(w)
	enc.SetIndent("", "    ")
	return enc.Encode(v)
}
