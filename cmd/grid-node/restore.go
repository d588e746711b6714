package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/spf13/pflag"

	"github.com/ordergrid/ordergrid/client"
	"github.com/ordergrid/ordergrid/gateway/archive"
	"github.com/ordergrid/ordergrid/grid-node/arbiter"
	"github.com/ordergrid/ordergrid/grid-node/dev"
	"github.com/ordergrid/ordergrid/grid-node/node"
	"github.com/ordergrid/ordergrid/grid-node/wire"
	"github.com/ordergrid/ordergrid/internal/command"
)

// restoreFlags name the archive of a grid that was lost.
type restoreFlags struct {
	url, credentials    string
	readOnly, supersede bool // of a grid that is begun by this program
}

// addDev adds the flags of a grid that is begun by this program.
func (f *restoreFlags) addDev(fl *pflag.FlagSet) {
	f.add(fl)
	fl.BoolVar(&f.readOnly, "restore-read-only", false, "leave the archive of --restore-from to who writes it, as for a trial. Otherwise it is taken for this grid, and a writer of the lost one is refused from then on")
	fl.BoolVar(&f.supersede, "restore-supersede", false, "take the archive of --restore-from although it was taken for the restore of another grid, which has not written to it since")
}

func (f *restoreFlags) add(fl *pflag.FlagSet) {
	fl.StringVar(&f.url, "restore-from", "", "archive from which partitions are loaded whose record is to be restored: a directory, file:///DIR, or s3://BUCKET[/PREFIX][?endpoint=URL&region=REGION&caFile=FILE]. A partition that has been claimed is not loaded again")
	fl.StringVar(&f.credentials, "restore-credentials-dir", "", "directory with the files access-key-id and secret-access-key, for a bucket of --restore-from; default: as S3 clients find them")
}

func (f *restoreFlags) open() (archive.Store, error) {
	s, err := archive.OpenURL(f.url, f.credentials)
	if err != nil {
		return nil, fmt.Errorf("--restore-from: %w", err)
	}
	return s, nil
}

// apply lets the node load from the archive.
func (f *restoreFlags) apply(cfg *node.Config) error {
	if f.url == "" {
		return nil
	}
	s, err := f.open()
	if err == nil {
		cfg.Archive = &archived{store: s, grid: cfg.Grid}
	}
	return err
}

// archived is the archive of a grid. It is opened when it is needed: a grid goes on without
// it once it is restored.
type archived struct {
	store archive.Store
	grid  string
}

// Entries implements node.Archive.
func (a *archived) Entries(ctx context.Context, p wire.PartitionID, from uint64, f func(entry []byte) error) error {
	r, err := archive.OpenReader(ctx, a.store, a.grid)
	if err != nil {
		return err
	}
	return r.Entries(ctx, p, from, 0, func(e *client.LogEntry) error { return f(e.Bytes) })
}

// applyDev replays the archive, and makes every partition one to be restored to what it
// has. What cannot be replayed is not restored.
func (f *restoreFlags) applyDev(ctx context.Context, o *dev.Options, partitions bool) error {
	if f.url == "" {
		return nil
	}
	if !strings.Contains(f.url, "://") { // the nodes are other processes
		dir, err := filepath.Abs(f.url)
		if err != nil {
			return fmt.Errorf("--restore-from: %w", err)
		}
		f.url = dir
	}
	s, err := f.open()
	if err != nil {
		return command.BadUsage(err)
	}
	defer s.Close() //nolint:errcheck // it was only read
	if o.Restore, err = f.recoveryPoints(ctx, s, o.Grid); err != nil {
		return fmt.Errorf("--restore-from: %w", err)
	}
	if !partitions {
		o.Partitions = len(o.Restore)
	}
	o.Args = append(o.Args, "--restore-from", f.url)
	if f.credentials != "" {
		o.Args = append(o.Args, "--restore-credentials-dir", f.credentials)
	}
	if err := o.Fill(); err != nil {
		return command.BadUsage(err)
	}
	return nil
}

// recoveryPoints replays the archive of every partition of a grid, and takes it for this
// grid: see archive.Reader.Begin.
func (f *restoreFlags) recoveryPoints(ctx context.Context, s archive.Store, grid string) ([]arbiter.Restore, error) {
	var owner [16]byte
	rand.Read(owner[:]) //nolint:errcheck // it never fails
	r, err := archive.OpenReader(ctx, s, grid)
	if err != nil {
		return nil, err
	}
	parts, err := r.Partitions(ctx)
	if err != nil {
		return nil, err
	}
	var points []arbiter.Restore
	var errs []error
	for i, p := range parts {
		if want := wire.PartitionID(i); p != want {
			errs = append(errs, fmt.Errorf("the archive has partition %s and not %s: a partition without an archive is not restored as an empty one", p, want))
			break
		}
		is, err := r.Begin(ctx, p, archive.Restore{Owner: string(owner[:]), ReadOnly: f.readOnly, Supersede: f.supersede})
		if err != nil {
			errs = append(errs, err)
			continue
		}
		points = append(points, arbiter.Restore{Seq: is.Seq, Hash: is.Hash, Epoch: is.Epoch, Lineage: is.Lineage})
	}
	return points, errors.Join(errs...)
}
