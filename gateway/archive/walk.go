package archive

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"

	"github.com/ordergrid/ordergrid/grid-node/order"
	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// Problem is a place where an archive is not a partition's log.
type Problem struct {
	Object string `json:"object,omitempty"` // name in the store; of a gap: the object behind it
	Block  int    `json:"block,omitempty"`  // from 1 on; 0: the object as a whole
	First  uint64 `json:"first,omitempty"`  // entries concerned
	Last   uint64 `json:"last,omitempty"`
	What   string `json:"what"`
}

func (p *Problem) Error() string {
	return (&DamageError{Object: p.Object, Block: p.Block, First: p.First, Last: p.Last, What: p.What}).Error()
}

// walk goes through a partition of an archive, which may be written meanwhile. A callback that returns an error ends it.
type walk struct {
	store Store
	grid  string
	part  wire.PartitionID
	from  uint64 // entries before are passed over where they can be

	headers bool                                 // objects are not read further
	object  func(p *piece, h *Header) error      // an object that continues the log; may be nil
	entry   func(e *order.Entry, b []byte) error // an entry, by seq; may be nil
	left    func(p *piece) error                 // an object whose entries are in a segment; may be nil
	trouble func(p *Problem) error

	d        *decoder
	seq      uint64 // last entry examined
	hash     uint64 // of it
	known    bool   // hash is
	attempt  int
	begun    bool
	first    bool   // the next object is the first that is read
	merged   uint64 // last entry of the segments
	segFirst uint64 // first of the last segment
	skip     uint64 // entries up to here were examined
}

// relists is how often in a row a batch may be merged while the walk gets to it.
const relists = 8

func (w *walk) run(ctx context.Context) error {
	w.d, w.first = newDecoder(), true
	defer w.d.close()
	for try := 0; ; try++ {
		before := w.seq
		err := w.pass(ctx)
		if w.seq > before {
			try = 0
		}
		if !errors.Is(err, fs.ErrNotExist) || try == relists {
			return err
		}
	}
}

// pass goes through what is listed now, behind what was examined. The tail is listed first: what is merged between the
// two listings is in both.
func (w *walk) pass(ctx context.Context) error {
	tails, err := list(ctx, w.store, folder(w.grid, w.part, tail))
	if err != nil {
		return err
	}
	segs, err := list(ctx, w.store, folder(w.grid, w.part, segments))
	if err != nil {
		return err
	}
	next := max(w.from, 1)
	if w.begun {
		next = w.seq + 1
	}
	if i := slices.IndexFunc(segs, func(p piece) bool { return p.first > next }); i > 1 {
		segs = segs[i-1:]
	} else if i < 0 && len(segs) > 0 {
		segs = segs[len(segs)-1:]
	}
	for i := range segs {
		if err := w.segment(ctx, &segs[i]); err != nil {
			return err
		}
	}
	for i := range tails {
		if err := w.batch(ctx, &tails[i], len(segs) == 0); err != nil {
			return err
		}
	}
	return nil
}

func (w *walk) segment(ctx context.Context, p *piece) error {
	if w.begun && p.first <= w.segFirst {
		return nil // examined by an earlier pass
	}
	w.segFirst = p.first
	if w.begun && p.first > w.merged && p.first <= w.seq {
		w.skip = w.seq // batches that an earlier pass has examined were merged since
	} else if err := w.gap(p); err != nil {
		return err
	}
	if err := w.read(ctx, p); err != nil {
		return err
	}
	w.merged, w.skip = max(w.merged, w.seq), 0
	return nil
}

// batch examines an object of the tail.
func (w *walk) batch(ctx context.Context, p *piece, noSegment bool) error {
	if p.first <= w.merged {
		if w.left != nil && !noSegment {
			return w.left(p)
		}
		return nil
	}
	if p.first <= w.seq || w.begun && p.first == w.seq+1 && p.attempt < w.attempt {
		return nil // examined by an earlier pass
	}
	if !w.begun && p.first != 1 && w.from <= 1 {
		if err := w.trouble(&Problem{Object: p.Name, First: 1, Last: p.first - 1, What: "entries before it are missing: neither a segment nor the first batch of an archive is there"}); err != nil {
			return err
		}
	}
	if w.begun && p.first == w.seq+1 && p.attempt > w.attempt {
		if err := w.trouble(&Problem{Object: p.Name, First: p.first, Last: p.first, What: fmt.Sprintf("objects %d..%d before it at the same entry are missing", w.attempt, p.attempt-1)}); err != nil {
			return err
		}
	}
	if err := w.gap(p); err != nil {
		return err
	}
	w.attempt = p.attempt
	return w.read(ctx, p)
}

// gap reports entries that are missing before an object.
func (w *walk) gap(p *piece) error {
	switch {
	case !w.begun || p.first == w.seq+1:
		return nil
	case p.first <= w.seq:
		return w.trouble(&Problem{Object: p.Name, First: p.first, Last: w.seq, What: "its entries are in the object before it too"})
	}
	first := w.seq + 1
	w.seq, w.known = p.first-1, false
	return w.trouble(&Problem{Object: p.Name, First: first, Last: p.first - 1, What: "entries before it are missing"})
}

// read examines an object. Without its header it is not known where it ends.
func (w *walk) read(ctx context.Context, p *piece) error {
	r, err := w.store.Open(ctx, p.Name, 0)
	if err != nil {
		return err
	}
	defer r.Close() //nolint:errcheck // nothing more is read
	var o *object
	if w.headers {
		o = &object{name: p.Name, r: r}
		var b [headerSize]byte
		if err = o.fill(b[:]); err == nil {
			o.h, err = decodeHeader(b[:])
		}
		if err != nil {
			err = o.damage(0, p.first, p.first, err)
		}
	} else {
		o, err = w.d.open(p.Name, r)
	}
	if err == nil {
		err = w.fits(p, &o.h)
	}
	w.begun = true
	if err != nil {
		w.first = false
		w.seq, w.known, w.attempt = p.first-1, false, p.attempt+1
		if err := w.report(err); err != nil {
			return err
		}
		if d := (*DamageError)(nil); errors.As(err, &d) && d.Last > d.First { // the header was readable
			w.seq, w.attempt = d.Last, 0
		}
		return nil
	}
	return w.take(p, o)
}

func (w *walk) fits(p *piece, h *Header) error {
	begin := p.tail && p.first == 1 && h.Kind == KindFence
	if h.Grid == w.grid && h.Partition == w.part && (h.Kind == KindSegment) == !p.tail && (h.First == p.first || begin) && h.Size() == p.Size {
		return nil
	}
	return &DamageError{Object: p.Name, First: p.first, Last: p.first, What: fmt.Sprintf(
		"its header is of a %s of %s of grid %s from entry %d on with %d bytes, and there are %d: it was copied here, or is cut off", h.Kind, h.Partition, h.Grid, h.First, h.Size(), p.Size)}
}

// take examines what an object continues the log with.
func (w *walk) take(p *piece, o *object) error {
	h := &o.h
	if w.first && w.from <= 1 && h.Ordinal > 0 {
		err := w.trouble(&Problem{Object: p.Name, First: 1, Last: h.First - 1, What: fmt.Sprintf("entries before it are missing: it is segment %d, and none is before it", h.Ordinal+1)})
		if err != nil {
			return err
		}
	}
	w.first = false
	if w.known && w.skip == 0 && h.PrevHash != w.hash {
		err := w.trouble(&Problem{Object: p.Name, First: h.First, Last: h.First, What: fmt.Sprintf("prevHash is %016x, allowed: the hash of the entry before, %016x", h.PrevHash, w.hash)})
		if err != nil {
			return err
		}
	}
	if w.object != nil {
		if err := w.object(p, h); err != nil {
			return err
		}
	}
	if !w.headers {
		if err := w.blocks(o); err != nil {
			return err
		}
	}
	if h.Kind == KindFence {
		w.attempt = p.attempt + 1
		if h.First > 1 && p.first == 1 {
			w.attempt = 0
		}
	} else {
		w.attempt = 0
	}
	if h.Last >= w.seq {
		w.seq, w.hash, w.known = h.Last, h.ThroughHash, h.Last > 0
	}
	return nil
}

// blocks goes on behind one that is damaged: each is readable by itself.
func (w *walk) blocks(o *object) error {
	each := func(e *order.Entry, b []byte) error {
		if e.Seq == w.skip && w.known && order.Hash(b) != w.hash {
			return &DamageError{Object: o.name, Block: o.next, First: e.Seq, Last: e.Seq, What: "it differs from the entry in the batch that was merged"}
		}
		if e.Seq < w.from || e.Seq <= w.skip || w.entry == nil {
			return nil
		}
		return w.entry(e, b)
	}
	for {
		if w.from > 0 && o.next < len(o.blocks) && o.blocks[o.next].Last() < w.from {
			if _, err := io.CopyN(io.Discard, o.r, int64(o.blocks[o.next].Size)); err != nil {
				return fmt.Errorf("%s: %w", o.name, err)
			}
			o.next++
			continue
		}
		k, raw, more, err := o.nextBlock()
		if err == nil && more {
			err = o.entries(k, raw, each)
		}
		if err != nil {
			if err := w.report(err); err != nil {
				return err
			}
		}
		if !more {
			return w.report(o.atEnd())
		}
	}
}

// report makes damage a Problem; other errors end the walk.
func (w *walk) report(err error) error {
	var d *DamageError
	if !errors.As(err, &d) {
		return err
	}
	return w.trouble(&Problem{Object: d.Object, Block: d.Block, First: d.First, Last: d.Last, What: d.What})
}
