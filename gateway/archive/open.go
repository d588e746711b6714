package archive

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"github.com/ordergrid/ordergrid/client"
	"github.com/ordergrid/ordergrid/gateway/sink"
)

// errMoved is for a listing that another writer has changed meanwhile.
var errMoved = errors.New("another writer changed the archive meanwhile")

func retryOpen(err error) bool {
	return errors.Is(err, sink.ErrFenced) || errors.Is(err, errMoved) || errors.Is(err, fs.ErrNotExist)
}

// find reads where the archive ends. The tail is listed first: what is merged between the two listings is in both.
func (w *writer) find(ctx context.Context) error {
	store, grid := w.t.store, w.t.o.Grid
	tails, err := list(ctx, store, folder(grid, w.part, tail))
	if err != nil {
		return err
	}
	segs, err := list(ctx, store, folder(grid, w.part, segments))
	if err != nil {
		return err
	}
	if n := len(segs); n > 0 {
		h, err := readHeader(ctx, store, segs[n-1].Name)
		if err == nil {
			err = w.fits(segs[n-1], &h, KindSegment)
		}
		if err != nil {
			return damaged(err)
		}
		if h.Ordinal != uint64(n-1) {
			return w.hole(ctx, segs)
		}
		w.pos = client.Position{Seq: h.Last, Hash: h.ThroughHash, Lineage: h.Lineage}
		w.merged, w.ordinal = h.Last, uint64(n)
	}
	return w.findTail(ctx, tails)
}

// findTail reads and verifies the batches behind the last segment.
func (w *writer) findTail(ctx context.Context, tails []piece) error {
	d := newDecoder()
	defer d.close()
	for _, p := range tails {
		if p.first <= w.merged {
			w.leftover = append(w.leftover, p.Name)
			continue
		}
		if p.Name != w.slot() {
			if p.first <= w.pos.Seq+1 {
				return fmt.Errorf("archive: %s: %w", p.Name, errMoved)
			}
			return w.missing(w.pos.Seq+1, p.first-1, p.Name)
		}
		h, err := readWhole(ctx, w.t.store, d, p.Name, nil)
		if err != nil {
			return damaged(err)
		}
		kind := KindTail
		if h.Kind == KindFence {
			kind = KindFence
		}
		if err := w.fits(p, &h, kind); err != nil {
			return damaged(err)
		}
		if w.pos.Seq > 0 && h.PrevHash != w.pos.Hash {
			return damaged(&DamageError{Object: p.Name, First: h.First, Last: h.First, What: fmt.Sprintf("prevHash is %016x, allowed: the hash of the entry before, %016x", h.PrevHash, w.pos.Hash)})
		}
		w.append(&h, p.Name)
	}
	return nil
}

// fits checks that an object is what its name says. The archive of a log whose begin is freed starts with a fence of the
// name of entry 1 that says where.
func (w *writer) fits(p piece, h *Header, kind Kind) error {
	if kind == KindFence && p.first == 1 && h.First > 1 && h.Grid == w.t.o.Grid && h.Partition == w.part {
		return nil
	}
	if h.Kind != kind || h.Grid != w.t.o.Grid || h.Partition != w.part || h.First != p.first || h.Size() != p.Size {
		return &DamageError{Object: p.Name, First: h.First, Last: h.Last, What: fmt.Sprintf(
			"its header is of a %s of %s of grid %s from entry %d on with %d bytes, and there are %d: it was copied here, or is cut off", h.Kind, h.Partition, h.Grid, h.First, h.Size(), p.Size)}
	}
	return nil
}

// damaged makes damage an error that no retry mends.
func damaged(err error) error {
	var d *DamageError
	if !errors.As(err, &d) {
		return err
	}
	return &sink.PermanentError{What: "archive", Err: err, Remedy: "restore the object from a copy or an older version; else begin a new archive under another prefix, and keep this one"}
}

// missing is for objects that the store no longer has.
func (w *writer) missing(first, last uint64, next string) error {
	return &sink.PermanentError{
		What:   fmt.Sprintf("archive %s: entries %d..%d of %s are missing before %s", w.t.store, first, last, w.part, next),
		Remedy: "restore the objects from a copy or an older version, and check what deletes objects there, such as a lifecycle rule; else begin a new archive under another prefix",
	}
}

// hole finds the entries that are missing between segments: there are fewer than the last one has before it.
func (w *writer) hole(ctx context.Context, segs []piece) error {
	var last uint64
	for i, p := range segs {
		h, err := readHeader(ctx, w.t.store, p.Name)
		if err != nil {
			return damaged(err)
		}
		if (i > 0 && h.First != last+1) || (i == 0 && h.Ordinal != 0) {
			return w.missing(last+1, h.First-1, p.Name)
		}
		last = h.Last
	}
	return fmt.Errorf("archive: %s: %w", w.part, errMoved)
}

// takeOver creates the fence, and finds out whether the store refuses what it has to.
func (w *writer) takeOver(ctx context.Context) error {
	fault("found")
	name := w.slot()
	data, err := w.fence(ctx, w.pos.Seq+1, w.pos.Hash)
	if err != nil {
		return err
	}
	fault("fenced")
	if err := w.t.store.Create(ctx, name, data); !errors.Is(err, ErrExists) {
		if err != nil {
			return err
		}
		return &sink.PermanentError{What: fmt.Sprintf("archive %s: a second object of the same name was accepted", w.t.store),
			Remedy: "take a store that honours If-None-Match: * on a put: without it two writers could overwrite each other"}
	}
	w.clear(ctx, w.leftover)
	w.leftover = nil
	return nil
}

// fence creates an object without entries in the next slot, and returns it.
func (w *writer) fence(ctx context.Context, first, prevHash uint64) ([]byte, error) {
	w.enc.begin(w.header(KindFence), first, prevHash)
	h, data := w.enc.finish()
	name := w.slot()
	if w.attempt >= maxAttempts {
		return nil, &sink.PermanentError{What: fmt.Sprintf("archive %s: %d writers were opened at entry %d of %s", w.t.store, w.attempt, first, w.part),
			Remedy: "find out why the writer is opened again and again, and begin a new archive under another prefix"}
	}
	err := w.t.store.Create(ctx, name, data)
	if errors.Is(err, ErrExists) {
		err = w.refused(ctx, name, data, nil)
	}
	if err == nil {
		err = w.unmerged(ctx)
	}
	if err == nil {
		w.append(&h, name)
	}
	return data, err
}
