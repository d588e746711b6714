package archive

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/ordergrid/ordergrid/grid-node/order"
)

// due reports whether the tail is large enough for a segment, times a factor.
func (w *writer) due(times int) bool {
	var raw uint64
	if len(w.tail) == 0 {
		return false
	}
	for i := range w.tail {
		raw += w.tail[i].raw
	}
	entries := w.tail[len(w.tail)-1].last - w.merged
	o := &w.t.o
	return entries > 0 && (entries >= uint64(times*o.SegmentEntries) || raw >= uint64(times*o.SegmentBytes) || len(w.tail) >= times*o.SegmentBatches)
}

// room waits while merging is far behind: a tail without bound would make opening slow.
func (w *writer) room(ctx context.Context) error {
	for {
		w.mu.Lock()
		full, merging, failed := w.due(4), w.merging, w.failed
		w.mu.Unlock()
		switch {
		case failed != nil:
			return failed
		case !full:
			return nil
		case merging == nil:
			w.merge()
			continue
		}
		select {
		case <-merging:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// merge begins to make a segment of the tail, if that is due.
func (w *writer) merge() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.merging != nil || w.failed != nil || !w.due(1) || w.ctx.Err() != nil {
		return
	}
	tail, done := w.take(), make(chan struct{})
	w.merging = done
	go func() {
		err := w.makeSegment(w.ctx, tail)
		w.mu.Lock()
		w.failed, w.merging = err, nil
		if err != nil && w.ctx.Err() == nil {
			w.log.Warn("batches are not merged", "error", err)
		}
		w.mu.Unlock()
		close(done)
	}()
}

// take returns the batches of the next segment: until it is large enough. Fences behind the last batch stay: the name of
// the next object follows from them.
func (w *writer) take() []batch {
	var raw uint64
	n := 0
	for i := range w.tail {
		if b := &w.tail[i]; b.last < b.first {
			continue
		}
		raw, n = raw+w.tail[i].raw, i+1
		if w.tail[i].last-w.merged >= uint64(w.t.o.SegmentEntries) || raw >= uint64(w.t.o.SegmentBytes) {
			break
		}
	}
	return slices.Clone(w.tail[:n])
}

// makeSegment reads batches back, which verifies what the store has of them, makes a segment of them and removes them.
func (w *writer) makeSegment(ctx context.Context, tail []batch) error {
	d, enc := newDecoder(), w.join
	defer d.close()
	h, begun := Header{Kind: KindSegment, Grid: w.t.o.Grid, Partition: w.part, Ordinal: w.ordinal, Writer: w.id}, false
	for _, b := range tail {
		if b.last < b.first {
			continue // a fence
		}
		bh, err := readWhole(ctx, w.t.store, d, b.name, func(e *order.Entry, p []byte) error {
			if !begun {
				enc.begin(h, e.Seq, e.PrevHash)
				begun = true
			}
			return enc.add(e, p)
		})
		if err != nil {
			return damaged(err)
		}
		enc.h.Lineage = bh.Lineage
	}
	h, data := enc.finish()
	if h.First != w.merged+1 || h.Last != tail[len(tail)-1].last {
		return fmt.Errorf("archive: %s: entries %d..%d were merged, allowed: %d..%d", w.part, h.First, h.Last, w.merged+1, tail[len(tail)-1].last)
	}
	name := segmentName(w.t.o.Grid, w.part, h.First)
	fault("merged")
	err := w.t.store.Create(ctx, name, data)
	if errors.Is(err, ErrExists) {
		err = w.refused(ctx, name, data, nil)
	}
	if err != nil {
		return err
	}
	fault("segment")
	w.mu.Lock()
	w.merged, w.ordinal, w.tail = h.Last, w.ordinal+1, w.tail[len(tail):]
	w.mu.Unlock()
	names := make([]string, len(tail))
	for i := range tail {
		names[i] = tail[i].name
	}
	w.clear(ctx, names)
	return nil
}

// clear removes objects whose entries are in a segment. What stays is passed over by readers, and removed by the next
// writer that opens.
func (w *writer) clear(ctx context.Context, names []string) {
	for _, name := range names {
		if err := w.t.store.Delete(ctx, name); err != nil {
			w.log.Info("a merged batch is not removed yet", "object", name, "error", err)
			return
		}
		fault("deleted")
	}
}
