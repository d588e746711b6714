package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/ordergrid/ordergrid/gateway/archive"
	"github.com/ordergrid/ordergrid/gateway/sink"
	"github.com/ordergrid/ordergrid/grid-node/wire"
	"github.com/ordergrid/ordergrid/internal/command"
)

// exitRefused is for an archive that a grid cannot be restored from until an administrator has done something.
const exitRefused = 3

// refusedError marks such a reason.
type refusedError struct{ error }

func (e refusedError) Unwrap() error { return e.error }

func (refusedError) ExitCode() int { return exitRefused }

type restorePointFlags struct {
	url, credentials, grid string
	result                 string // file
	partition, partitions  int
	emptyIfMissing         bool
	o                      archive.Restore
}

// restorePointCommand is what the operator runs before it makes the records of a grid that is to be restored.
func restorePointCommand() *cobra.Command {
	var f restorePointFlags
	cmd := &cobra.Command{
		Use: "restore-point", Short: "Fix up to where a partition is restored from an archive", Args: command.NoArgs,
		Long: `Replays a partition of an archive as a node does, and puts a fence of the next lineage behind its last entry: from
then on writers of the lost grid are refused, and so is the restore of another grid. Prints the recovery point as
JSON. Damage, a gap, or another number of partitions is refused before anything is put.

` + archive.URLHelp + `

Exit codes: 0 fixed, 1 failed, may be tried again, 2 wrong usage, 3 refused: an administrator has to act.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := f.check(); err != nil {
				return command.BadUsage(err)
			}
			point, err := f.run(cmd.Context())
			var refused *sink.PermanentError
			if errors.As(err, &refused) {
				return refusedError{err}
			}
			if err != nil {
				return err
			}
			text, err := json.Marshal(point)
			if err == nil && f.result != "" {
				err = os.WriteFile(f.result, text, 0o600)
			}
			if err == nil {
				_, err = fmt.Fprintln(cmd.OutOrStdout(), string(text))
			}
			return err
		},
	}
	fl := cmd.Flags()
	fl.StringVar(&f.url, "url", "", "where the archive is; required")
	fl.StringVar(&f.credentials, "credentials-dir", "", "directory with the files access-key-id and secret-access-key, for a bucket")
	fl.StringVar(&f.grid, "grid", "", "name of the grid that was archived; required")
	fl.IntVar(&f.partition, "partition", 0, "number of the partition")
	fl.IntVar(&f.partitions, "partitions", 0, "how many partitions the restored grid has; required")
	fl.StringVar(&f.o.Owner, "owner", "", "name of the restored grid that no other one has, such as its UID; required")
	fl.BoolVar(&f.o.ReadOnly, "read-only", false, "put no fence: the archive stays with who writes it")
	fl.BoolVar(&f.o.Supersede, "supersede", false, "take an archive that was taken for the restore of another grid")
	fl.StringVar(&f.result, "result-file", "", "write the point there too, such as to /dev/termination-log")
	fl.BoolVar(&f.emptyIfMissing, "empty-if-missing", false, "a partition without an archive begins empty: its point is entry 0")
	return cmd
}

func (f *restorePointFlags) check() error {
	switch {
	case f.url == "" || f.grid == "" || f.o.Owner == "":
		return errors.New("--url, --grid and --owner: one is missing; give all three")
	case f.partitions < 1 || f.partitions > wire.MaxPartitions:
		return fmt.Errorf("--partitions: value %d, allowed: 1 to %d", f.partitions, wire.MaxPartitions)
	case f.partition < 0 || f.partition >= f.partitions:
		return fmt.Errorf("--partition: value %d, allowed: 0 to %d", f.partition, f.partitions-1)
	}
	return nil
}

func (f *restorePointFlags) run(ctx context.Context) (*archive.RecoveryPoint, error) {
	s, err := archive.OpenURL(f.url, f.credentials)
	if err != nil {
		return nil, command.BadUsage(err)
	}
	defer s.Close() //nolint:errcheck // what was put is durable
	r, err := archive.OpenReader(ctx, s, f.grid)
	if err != nil {
		return nil, err
	}
	parts, err := r.Partitions(ctx)
	if err != nil {
		return nil, err
	}
	p, found := wire.PartitionID(f.partition), false
	for _, has := range parts {
		found = found || has == p
		if int(has) >= f.partitions {
			return nil, &sink.PermanentError{What: fmt.Sprintf("archive %s: it has %s of grid %s, and the restored grid has %d partitions", s, has, f.grid, f.partitions),
				Remedy: "create the grid with as many partitions as the archive has: the partition of every order depends on it"}
		}
	}
	switch {
	case found:
		return r.Begin(ctx, p, f.o)
	case f.emptyIfMissing:
		return &archive.RecoveryPoint{Partition: p.String()}, nil
	}
	return nil, &sink.PermanentError{What: fmt.Sprintf("archive %s: it has no %s of grid %s, only %s to %s", s, p, f.grid, parts[0], parts[len(parts)-1]),
		Remedy: "create the grid with as many partitions as the archive has, or allow that partitions without an archive begin empty"}
}
