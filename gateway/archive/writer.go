package archive

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"sync"

	"github.com/ordergrid/ordergrid/client"
	"github.com/ordergrid/ordergrid/gateway/sink"
	"github.com/ordergrid/ordergrid/grid-node/order"
	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// writer appends to a partition of an archive.
type writer struct {
	t    *Target
	part wire.PartitionID
	id   uint64
	enc  *encoder
	join *encoder // of segments
	log  *slog.Logger

	pos      client.Position
	attempt  int      // fences at pos.Seq+1
	leftover []string // objects whose entries are merged
	raised   struct { // by a fence behind pos: its writer, 0 for none, and its lineage. A grid is restored from here
		owner   uint64
		lineage uint32
	}

	mu      sync.Mutex
	tail    []batch       // behind the last segment
	merged  uint64        // last entry of the last segment
	ordinal uint64        // of the next segment
	failed  error         // of merging
	merging chan struct{} // closed when it ends; nil: nothing is merged
	stop    context.CancelFunc
	ctx     context.Context
}

// batch is an object of the tail.
type batch struct {
	name        string
	first, last uint64
	raw         uint64
}

func (w *writer) start() { w.ctx, w.stop = context.WithCancel(context.Background()) }

// Position is the last entry of the archive.
func (w *writer) Position() client.Position { return w.pos }

// Close ends merging. What is not merged is by the next writer.
func (w *writer) Close() error {
	w.stop()
	w.mu.Lock()
	merging := w.merging
	w.mu.Unlock()
	if merging != nil {
		<-merging
	}
	return nil
}

func (w *writer) header(k Kind) Header {
	return Header{Kind: k, Grid: w.t.o.Grid, Partition: w.part, Lineage: w.pos.Lineage, Writer: w.id}
}

// slot is the name of the next object.
func (w *writer) slot() string {
	return tailName(w.t.o.Grid, w.part, w.pos.Seq+1, w.attempt)
}

// append takes in an object that is in the store.
func (w *writer) append(h *Header, name string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.tail = append(w.tail, batch{name: name, first: h.First, last: h.Last, raw: h.Raw})
	lineage := max(w.pos.Lineage, h.Lineage)
	switch {
	case h.Kind != KindFence:
		w.pos, w.attempt = client.Position{Seq: h.Last, Hash: h.ThroughHash, Lineage: lineage}, 0
		w.raised.owner = 0
	case w.pos.Seq == 0 && h.First > 1:
		w.pos, w.attempt, w.merged = client.Position{Seq: h.Last, Hash: h.ThroughHash}, 0, h.Last
	default:
		if h.Lineage > w.pos.Lineage {
			w.raised.owner, w.raised.lineage = h.Writer, h.Lineage
		}
		w.pos.Lineage = lineage
		w.attempt++
	}
}

// Write makes a batch an object of the tail.
func (w *writer) Write(ctx context.Context, b *sink.Batch) error {
	if err := w.continues(b); err != nil || len(b.Entries) == 0 {
		return err
	}
	if err := w.room(ctx); err != nil {
		return err
	}
	if w.pos.Seq == 0 && b.From > 1 {
		w.log.Warn("the log's begin is freed: the archive begins behind it, and a grid cannot be restored from it", "first", b.From)
		if _, err := w.fence(ctx, b.From, b.Entries[0].PrevHash); err != nil {
			return err
		}
	}
	h := w.header(KindTail)
	h.Lineage = b.Through.Lineage
	h, data, err := w.enc.encode(h, b.From, b.Entries[0].PrevHash, b.Entries)
	if err == nil && (h.Last != b.Through.Seq || h.ThroughHash != b.Through.Hash) {
		err = fmt.Errorf("the batch ends with entry %d and hash %016x, and is said to end with %d and %016x", h.Last, h.ThroughHash, b.Through.Seq, b.Through.Hash)
	}
	if err != nil {
		return fmt.Errorf("archive: %s: %w", w.part, err)
	}
	name := w.slot()
	fault("encoded")
	if err = w.t.store.Create(ctx, name, data); errors.Is(err, ErrExists) {
		err = w.refused(ctx, name, data, &h)
	}
	fault("put")
	if err == nil {
		err = w.unmerged(ctx)
	}
	if err != nil {
		return err
	}
	w.append(&h, name)
	w.merge()
	return nil
}

// continues refuses a batch that would leave a hole or begin another history.
func (w *writer) continues(b *sink.Batch) error {
	switch {
	case len(b.Entries) == 0:
		return nil
	case w.pos.Seq == 0: // empty
		return nil
	case b.From != w.pos.Seq+1:
		return w.missing(w.pos.Seq+1, b.From-1, fmt.Sprintf("entry %d, where the grid's log begins", b.From))
	case b.Through.Lineage != 0 && b.Through.Lineage < w.pos.Lineage:
		return &sink.PermanentError{
			What:   fmt.Sprintf("archive %s: it is of lineage %d of %s, and the entries to write are of lineage %d", w.t.store, w.pos.Lineage, w.part, b.Through.Lineage),
			Remedy: "they come from copies of before the loss of data was accepted, or the grid was restored: stop these; what only they have is not in the grid any more",
		}
	case b.Entries[0].PrevHash != w.pos.Hash:
		return w.otherHistory(w.pos.Seq, w.pos.Hash, b.Entries[0].PrevHash)
	}
	return nil
}

func (w *writer) otherHistory(seq, held, hash uint64) error {
	return &sink.PermanentError{
		What:   fmt.Sprintf("archive %s: it has entry %d of %s with hash %016x, and the grid's log has it with hash %016x: two histories", w.t.store, seq, w.part, held, hash),
		Remedy: "the loss of data was accepted since, or it is another grid of the name; keep this archive, and begin a new one under another prefix",
	}
}

// refused finds out what stands under the name of an object: itself, if an answer was lost; else another writer is
// there, with the same entries, or with another history. h is nil for a fence.
func (w *writer) refused(ctx context.Context, name string, data []byte, h *Header) error {
	r, err := w.t.store.Open(ctx, name, 0)
	if err != nil {
		return err
	}
	there, err := io.ReadAll(io.LimitReader(r, int64(len(data))+1))
	r.Close() //nolint:errcheck // nothing more is read
	if err != nil {
		return err
	}
	if bytes.Equal(there, data) {
		return nil
	}
	if h == nil {
		return sink.ErrFenced
	}
	// A run of entries is told from another by the hash of any entry that both have.
	d := newDecoder()
	defer d.close()
	hashes := map[uint64]uint64{}
	other, err := readWhole(ctx, w.t.store, d, name, func(e *order.Entry, b []byte) error {
		if e.Seq == h.Last || e.Seq == h.First {
			hashes[e.Seq] = order.Hash(b)
		}
		return nil
	})
	switch {
	case err != nil:
		return damaged(err)
	case other.Kind == KindFence:
		return sink.ErrFenced
	case other.PrevHash != h.PrevHash:
		return w.otherHistory(h.First-1, other.PrevHash, h.PrevHash)
	}
	if hash, both := hashes[h.Last]; both && hash != h.ThroughHash {
		return w.otherHistory(h.Last, hash, h.ThroughHash)
	}
	return sink.ErrFenced
}

// unmerged checks that no other writer has merged entries: it would have removed what refuses this one.
func (w *writer) unmerged(ctx context.Context) error {
	if w.pos.Seq == 0 { // the first segment may have any name
		for o, err := range w.t.store.List(ctx, folder(w.t.o.Grid, w.part, segments)) {
			if _, ok := parseName(o); ok && err == nil {
				err = sink.ErrFenced
			}
			if err != nil {
				return err
			}
		}
		return nil
	}
	for {
		w.mu.Lock()
		merged, merging, failed := w.merged, w.merging, w.failed
		w.mu.Unlock()
		if failed != nil {
			return failed
		}
		exists, err := w.t.store.Exists(ctx, segmentName(w.t.o.Grid, w.part, merged+1))
		if err != nil || !exists {
			return err
		}
		if merging != nil {
			select { // it may be our own
			case <-merging:
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		w.mu.Lock()
		mine := w.merged != merged
		w.mu.Unlock()
		if !mine {
			return sink.ErrFenced
		}
	}
}

// readWhole reads and verifies an object.
func readWhole(ctx context.Context, s Store, d *decoder, name string, fn func(e *order.Entry, b []byte) error) (h Header, err error) {
	r, err := s.Open(ctx, name, 0)
	if err != nil {
		return h, err
	}
	defer r.Close() //nolint:errcheck // nothing more is read
	o, err := d.open(name, r)
	if err != nil {
		return h, err
	}
	if fn == nil {
		fn = func(*order.Entry, []byte) error { return nil }
	}
	if err := o.each(fn); err != nil {
		return o.h, err
	}
	return o.h, o.atEnd()
}
