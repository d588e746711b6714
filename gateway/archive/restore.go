package archive

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"log/slog"
	"time"

	"github.com/ordergrid/ordergrid/gateway/sink"
	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// Restore is how an archive is taken for a grid that is restored from it.
type Restore struct {
	// Owner names the grid that is restored, such as its UID. The same one may begin again.
	Owner string
	// ReadOnly leaves the archive to who writes it: nothing is put there.
	ReadOnly bool
	// Supersede takes an archive that was taken for the restore of another grid, which has not written to it since.
	Supersede bool
	Logger    *slog.Logger // slog.Default() if nil
}

// RecoveryPoint is where a partition begins that is restored.
type RecoveryPoint struct {
	Partition string     `json:"partition"`
	Seq       uint64     `json:"seq"` // the last entry, its hash, and its receive time
	Hash      string     `json:"hash"`
	Time      *time.Time `json:"time,omitempty"`
	Epoch     uint64     `json:"epoch"`
	Lineage   uint64     `json:"lineage"` // the highest that the archive knows; the restored partition begins the next one
	Orders    uint64     `json:"orders"`
	Sessions  int        `json:"sessions"`
}

// Begin replays a partition, and puts a fence of the next lineage behind its last entry, which fixes the recovery point:
// a writer of the lost grid is refused from then on, and so is the restore of another grid. Damage is found before
// anything is put. A *sink.PermanentError says what an administrator has to do.
func (r *Reader) Begin(ctx context.Context, p wire.PartitionID, o Restore) (*RecoveryPoint, error) {
	t := NewTarget(r.store, Options{Grid: r.grid, Logger: o.Logger})
	if t.o.Logger == nil {
		t.o.Logger = slog.Default()
	}
	sum := sha256.Sum256([]byte(o.Owner))
	id := max(binary.LittleEndian.Uint64(sum[:8]), 1)
	var state *Replayed
	for try := 1; ; try++ {
		w := &writer{t: t, part: p, id: id, enc: newEncoder(), log: t.o.Logger.With("archive", r.store.String(), "partition", p.String())}
		var err error
		state, err = w.begin(ctx, r, &o, state)
		switch {
		case err == nil:
			return &RecoveryPoint{Partition: p.String(), Seq: state.Seq, Hash: state.Hash, Time: state.Time, Epoch: uint64(state.Epoch),
				Lineage: state.Lineage, Orders: state.Orders, Sessions: state.Sessions}, nil
		case !retryOpen(err) || try == opening:
			return nil, err
		}
		select {
		case <-time.After(time.Duration(try) * 50 * time.Millisecond):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// begin is one attempt; state is what an earlier one replayed.
func (w *writer) begin(ctx context.Context, r *Reader, o *Restore, state *Replayed) (*Replayed, error) {
	if state == nil { // before find, which judges damage as a writer does
		var err error
		if state, err = r.replayWhole(ctx, w.part); err != nil {
			return nil, err
		}
	}
	if err := w.find(ctx); err != nil {
		return state, err
	}
	mine := w.raised.owner == w.id
	if w.raised.owner != 0 && !mine && !o.ReadOnly && !o.Supersede {
		return nil, &sink.PermanentError{
			What:   fmt.Sprintf("archive %s: %s was taken for the restore of another grid, which begins lineage %d behind entry %d and has not written to it since", w.t.store, w.part, w.raised.lineage, w.pos.Seq),
			Remedy: "if that grid is in use, give it up or restore from a copy of the archive; if it is not, supersede it",
		}
	}
	if state.Seq != w.pos.Seq {
		return nil, fmt.Errorf("archive: %s: %w", w.part, errMoved)
	}
	state.Lineage = max(state.Lineage, uint64(w.pos.Lineage))
	switch {
	case mine:
		state.Lineage = uint64(w.raised.lineage) - 1
	case !o.ReadOnly:
		w.pos.Lineage = uint32(state.Lineage) + 1
		return state, w.takeOver(ctx) // ErrFenced: another writer came between
	}
	return state, nil
}

// replayWhole replays a partition whose archive has to be whole.
func (r *Reader) replayWhole(ctx context.Context, p wire.PartitionID) (*Replayed, error) {
	state, err := r.Replay(ctx, p)
	switch {
	case err != nil:
		return nil, err
	case state.Problem != nil:
		return nil, &sink.PermanentError{What: fmt.Sprintf("archive %s: %s cannot be restored", r.store, p),
			Err: fmt.Errorf("%w; entries up to %d are intact", state.Problem, state.Seq), Remedy: "restore the object from a version or a copy"}
	case state.Seq == 0:
		return nil, &sink.PermanentError{What: fmt.Sprintf("archive %s: %s has no entry", r.store, p),
			Remedy: "name the archive that the grid wrote to; a partition without an archive is not restored as an empty one"}
	}
	return state, nil
}
