package archive

import (
	"context"
	"encoding/binary"
	"fmt"
	"time"

	"github.com/ordergrid/ordergrid/grid-node/order"
	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// PartitionReport is what Verify found of a partition.
type PartitionReport struct {
	Partition   string     `json:"partition"`
	Segments    int        `json:"segments"`
	Batches     int        `json:"batches"`             // at the end, that are not merged yet
	Leftovers   int        `json:"leftovers,omitempty"` // batches that are merged and not removed
	First       uint64     `json:"first"`
	Last        uint64     `json:"last"`
	Entries     uint64     `json:"entries"`
	Orders      uint64     `json:"orders"`
	Raw         uint64     `json:"rawBytes"`
	Stored      uint64     `json:"storedBytes"`
	ThroughHash string     `json:"throughHash"` // of entry Last
	Lineage     uint64     `json:"lineage"`     // of the log at entry Last
	Begin       *time.Time `json:"begin,omitempty"`
	End         *time.Time `json:"end,omitempty"` // receive time of the last entry: the recovery point
	Problems    []Problem  `json:"problems,omitempty"`
	MoreTrouble int        `json:"moreProblems,omitempty"` // that are not in Problems
}

// Intact reports whether every entry from the first to the last is there as it was written.
func (r *PartitionReport) Intact() bool { return len(r.Problems) == 0 }

// maxProblems are listed of a partition.
const maxProblems = 100

// Verify reads a partition and checks every checksum, the hash chain of all entries, and that lineage never falls.
func (r *Reader) Verify(ctx context.Context, p wire.PartitionID) (*PartitionReport, error) {
	v := verification{report: PartitionReport{Partition: p.String()}, leftover: map[uint64]leftover{}}
	if err := v.leftovers(ctx, r, p); err != nil {
		return nil, err
	}
	w := walk{store: r.store, grid: r.grid, part: p, trouble: v.trouble, object: v.object, entry: v.entry,
		left: func(*piece) error { v.report.Leftovers++; return nil }}
	if err := w.run(ctx); err != nil {
		return nil, fmt.Errorf("verify %s of %s: %w", p, r.store, err)
	}
	if !v.begin.IsZero() {
		v.report.Begin, v.report.End = &v.begin, &v.end
	}
	v.report.ThroughHash = fmt.Sprintf("%016x", v.hash)
	return &v.report, nil
}

type verification struct {
	report     PartitionReport
	begin, end time.Time
	hash       uint64
	leftover   map[uint64]leftover // by last entry
}

// leftover is a batch that may be merged: if so, what it ends with is known.
type leftover struct {
	name string
	hash uint64
}

// leftovers remembers how the objects of the tail end. One that was written by a writer that had been replaced is not
// part of the log that is walked, and has to be the same history.
func (v *verification) leftovers(ctx context.Context, r *Reader, p wire.PartitionID) error {
	tails, err := list(ctx, r.store, folder(r.grid, p, tail))
	if err != nil {
		return err
	}
	segs, err := list(ctx, r.store, folder(r.grid, p, segments))
	if err != nil || len(segs) == 0 {
		return err
	}
	for _, t := range tails {
		if t.first > segs[len(segs)-1].first+maxEntries {
			break
		}
		if h, err := readHeader(ctx, r.store, t.Name); err == nil && h.Entries > 0 {
			v.leftover[h.Last] = leftover{t.Name, h.ThroughHash}
		}
	}
	return nil
}

func (v *verification) trouble(p *Problem) error {
	if len(v.report.Problems) < maxProblems {
		v.report.Problems = append(v.report.Problems, *p)
	} else {
		v.report.MoreTrouble++
	}
	return nil
}

func (v *verification) object(p *piece, h *Header) error {
	r := &v.report
	r.Raw, r.Stored = r.Raw+h.Raw, r.Stored+uint64(p.Size)
	switch h.Kind {
	case KindSegment:
		r.Segments++
	default:
		r.Batches++
	}
	return nil
}

func (v *verification) entry(e *order.Entry, b []byte) error {
	r := &v.report
	if r.Entries == 0 {
		r.First, v.begin = e.Seq, time.Unix(0, e.TimeNs).UTC()
	}
	r.Entries++
	r.Last, v.end, v.hash = e.Seq, time.Unix(0, e.TimeNs).UTC(), order.Hash(b)
	switch e.Kind {
	case order.KindOrder, order.KindExecute:
		r.Orders++
	case order.KindNoop:
		lineage := binary.LittleEndian.Uint64(order.Payload(b))
		if lineage < r.Lineage {
			v.trouble(&Problem{First: e.Seq, Last: e.Seq, What: fmt.Sprintf("it begins an epoch of lineage %d, allowed: %d or more, that of the entries before", lineage, r.Lineage)}) //nolint:errcheck // it never fails
		}
		r.Lineage = lineage
	}
	if len(v.leftover) > 0 {
		if l, ok := v.leftover[e.Seq]; ok && l.hash != v.hash {
			v.trouble(&Problem{Object: l.name, First: e.Seq, Last: e.Seq, What: fmt.Sprintf("it ends with hash %016x at an entry that the archive has with hash %016x: two histories", l.hash, v.hash)}) //nolint:errcheck // it never fails
		}
	}
	return nil
}
