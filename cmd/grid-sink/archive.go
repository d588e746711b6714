package main

import (
	"context"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/ordergrid/ordergrid/gateway/archive"
	"github.com/ordergrid/ordergrid/gateway/sink"
	"github.com/ordergrid/ordergrid/internal/command"
)

// archiveBatches are due every half second: each is an object, and the recovery point is one batch behind.
var archiveBatches = usual{entries: sink.DefaultMaxEntries, bytes: sink.DefaultMaxBytes, linger: 500 * time.Millisecond}

func archiveCommand() *cobra.Command {
	var url string
	o := archive.Options{}
	credentials := ""
	cmd := targetCommand("archive", "Archive the log in a directory or a bucket",
		`Writes the committed log as it is, entry by entry, into compressed, checksummed and chained objects of a
directory or a bucket of an S3-compatible store. kubectl ordergrid archive ls, verify, cat and restore --dry-run
read them. A batch is an object; in the background batches are merged into segments. A second writer of the same
archive is refused, not merged in. docs/archive.md has the format.

`+archive.URLHelp, archiveBatches,
		func(fl *pflag.FlagSet) {
			fl.StringVar(&url, "url", "", "where the archive is; required")
			fl.StringVar(&credentials, "credentials-dir", "", "directory with the files access-key-id and secret-access-key, for a bucket")
			fl.IntVar(&o.SegmentEntries, "segment-entries", 0, "entries from which on batches are merged into a segment; 0: 65536")
			fl.IntVar(&o.SegmentBatches, "segment-batches", 0, "the same, batches; 0: 512")
		},
		func(_ context.Context, s source) (sink.Target, error) {
			store, err := archive.OpenURL(url, credentials)
			if err == nil {
				o.Grid, o.Logger = s.Grid, s.Log
				err = o.Check()
			}
			if err != nil {
				return nil, command.BadUsage(err)
			}
			return archive.NewTarget(store, o), nil
		})
	cmd.AddCommand(restorePointCommand())
	return cmd
}
