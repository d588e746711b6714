package archive

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/ordergrid/ordergrid/client"
	"github.com/ordergrid/ordergrid/grid-node/order"
	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// Reader reads the archive of a grid, also while it is written.
type Reader struct {
	store Store
	grid  string
}

// OpenReader returns the archive of a grid in a store, which stays its caller's; grid may be empty where there is one
// only.
func OpenReader(ctx context.Context, s Store, grid string) (*Reader, error) {
	grids, err := s.Folders(ctx, "")
	if err != nil {
		return nil, err
	}
	switch {
	case len(grids) == 0:
		return nil, fmt.Errorf("archive %s is empty, allowed: what a sink of type Archive writes to", s)
	case grid == "" && len(grids) > 1:
		return nil, fmt.Errorf("archive %s has the grids %s: name one with --grid", s, strings.Join(grids, ", "))
	case grid != "" && !slices.Contains(grids, grid):
		return nil, fmt.Errorf("archive %s has no grid %q, allowed: %s", s, grid, strings.Join(grids, ", "))
	case grid == "":
		grid = grids[0]
	}
	return &Reader{store: s, grid: grid}, nil
}

// Grid is its name.
func (r *Reader) Grid() string { return r.grid }

// Store is where it is.
func (r *Reader) Store() Store { return r.store }

// Partitions returns those that have an archive, by number.
func (r *Reader) Partitions(ctx context.Context) (parts []wire.PartitionID, err error) {
	names, err := r.store.Folders(ctx, r.grid+"/")
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		if p, err := wire.ParsePartitionID(name); err == nil {
			parts = append(parts, p)
		}
	}
	if len(parts) == 0 {
		return nil, fmt.Errorf("archive %s has no partition of grid %s", r.store, r.grid)
	}
	slices.Sort(parts)
	return parts, nil
}

// Info is an object of an archive.
type Info struct {
	Name string
	Size int64
	Header
}

// Objects calls fn for the objects of a partition in the order of the log, and trouble for what is missing between
// them. Headers are read, and nothing else.
func (r *Reader) Objects(ctx context.Context, p wire.PartitionID, fn func(*Info) error, trouble func(*Problem) error) error {
	w := walk{store: r.store, grid: r.grid, part: p, headers: true, trouble: trouble, object: func(o *piece, h *Header) error {
		return fn(&Info{Name: o.Name, Size: o.Size, Header: *h})
	}}
	return w.run(ctx)
}

// Entries calls fn for the entries from..to of a partition, by seq; to is 0 for all. It returns a *Problem at the
// first place that is not as it was written. The entry's bytes are valid during the call.
func (r *Reader) Entries(ctx context.Context, p wire.PartitionID, from, to uint64, fn func(e *client.LogEntry) error) error {
	var done = fmt.Errorf("done")
	w := walk{store: r.store, grid: r.grid, part: p, from: from, trouble: func(p *Problem) error { return p },
		object: func(_ *piece, h *Header) error {
			if to > 0 && h.First > to {
				return done
			}
			return nil
		},
		entry: func(e *order.Entry, b []byte) error {
			if to > 0 && e.Seq > to {
				return done
			}
			return fn(&client.LogEntry{Entry: *e, Bytes: b})
		}}
	if err := w.run(ctx); err != nil && err != done { //nolint:errorlint // it is returned as it is
		return err
	}
	return nil
}
