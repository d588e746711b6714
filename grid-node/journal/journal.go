package journal

import (
	"errors"
	"fmt"
	"syscall"

	"github.com/ordergrid/ordergrid/grid-node/order"
)

// Options of a journal. Zero fields take the defaults.
type Options struct {
	SegmentBytes int64 // of a file of the log; 64 MiB
	MaxBytes     int64 // of all files; 0: no limit but the disk
}

const defaultSegment = 64 << 20

// ErrFull is a batch that does not fit. It was not written, and can be written again when
// there is room.
type ErrFull struct {
	Used, Limit int64 // Limit 0: the disk is full
	Err         error
}

func (e *ErrFull) Error() string {
	if e.Limit > 0 {
		return fmt.Sprintf("the journal has %d of %d bytes: use a larger volume (spec.journal.size, --journal-max-bytes), or let entries be freed downstream", e.Used, e.Limit)
	}
	return fmt.Sprintf("the disk of the journal is full at %d bytes of journal: make room on the volume: %v", e.Used, e.Err)
}

func (e *ErrFull) Unwrap() error { return e.Err }

// segment is a file of the log.
type segment struct {
	n     uint64
	seq   uint64 // last entry before it
	bytes int64
}

// Journal is written to. It is not safe for concurrent use. After any other error than
// *ErrFull nothing more may be written: what of the last batch is on the disk is unknown.
type Journal struct {
	fs   FS
	opt  Options
	id   Identity
	file File // of the last segment
	// The last segment is not synced since it was created.
	fresh    bool
	segments []segment
	seq      uint64 // last entry written
	hash     uint64
	config   []byte // the last configuration
	bytes    int64  // of all files
	state    stateWriter
	buf      []byte
}

// Begin makes a journal ready for writing, behind what was read from it. The identity is
// durable when it returns.
func Begin(fs FS, o Options, id Identity, found *Found) (*Journal, error) {
	if o.SegmentBytes == 0 {
		o.SegmentBytes = defaultSegment
	}
	j := &Journal{fs: fs, opt: o, id: id, seq: found.Seq, hash: found.Hash, segments: found.segments, bytes: found.Bytes}
	j.state.base, j.state.bytes = found.Base, found.stateBytes
	if found.Config != nil {
		j.config = encodeConfig(found.Config)
	}
	for _, name := range found.stale {
		if err := fs.Remove(name); err != nil {
			return nil, err
		}
	}
	// The last process may have ended before it synced what was read: it counts from here.
	if n := len(found.segments); n > 0 {
		if err := fs.Cut(segmentName(found.segments[n-1].n), found.segments[n-1].bytes); err != nil {
			return nil, err
		}
	}
	if err := j.next(); err != nil {
		return nil, err
	}
	if err := j.Sync(); err != nil {
		return nil, err
	}
	return j, nil
}

// next begins another segment. The one before is synced.
func (j *Journal) next() error {
	n := uint64(1)
	if k := len(j.segments); k > 0 {
		n = j.segments[k-1].n + 1
	}
	f, err := j.fs.Create(segmentName(n))
	if err != nil {
		return j.failed(err)
	}
	b := appendRecord(j.buf[:0], 0, kindHead, j.id.head(j.seq, j.hash))
	if j.config != nil {
		b = appendRecord(b, int64(len(b)), kindConfig, j.config)
	}
	j.buf = b
	if _, err := f.Write(b); err != nil {
		err = errors.Join(err, f.Close(), j.fs.Remove(segmentName(n)))
		return j.failed(err)
	}
	if j.file != nil {
		if err := j.file.Close(); err != nil {
			return err
		}
	}
	j.file, j.fresh = f, true
	j.segments = append(j.segments, segment{n: n, seq: j.seq, bytes: int64(len(b))})
	j.bytes += int64(len(b))
	return nil
}

// failed tells a full disk from a broken one.
func (j *Journal) failed(err error) error {
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
		return &ErrFull{Used: j.bytes, Err: err}
	}
	return err
}

// Write writes a batch. It counts after Sync. Batches are written one at a time: each after
// the Sync of the one before.
func (j *Journal) Write(b *Batch) error {
	last := &j.segments[len(j.segments)-1]
	if last.bytes >= j.opt.SegmentBytes && !j.fresh {
		if err := j.next(); err != nil {
			return err
		}
		last = &j.segments[len(j.segments)-1]
	}
	at := last.bytes
	out := j.buf[:0]
	if !j.fresh {
		out = appendRecord(out, at, kindMark)
	}
	for _, p := range b.pieces {
		out = appendRecord(out, at+int64(len(out)), p.kind, b.buf[p.off:p.end])
	}
	j.buf = out
	if limit := j.opt.MaxBytes; limit > 0 && j.bytes+int64(len(out)) > limit {
		return &ErrFull{Used: j.bytes, Limit: limit}
	}
	if _, err := j.file.Write(out); err != nil {
		if cut := j.file.Truncate(at); cut != nil {
			return errors.Join(err, cut)
		}
		return j.failed(err)
	}
	last.bytes += int64(len(out))
	j.bytes += int64(len(out))
	return j.wrote(b)
}

// wrote notes where the journal ends now.
func (j *Journal) wrote(b *Batch) error {
	for _, p := range b.pieces {
		switch p.kind {
		case kindConfig:
			j.config = append(j.config[:0], b.buf[p.off:p.end]...)
		case kindEntries:
			seq, hash, err := endOf(b.buf[p.off:p.end])
			if err != nil {
				return err
			}
			j.seq, j.hash = seq, hash
		}
	}
	return nil
}

// endOf returns the last entry of a run.
func endOf(run []byte) (seq, hash uint64, err error) {
	var e order.Entry
	for len(run) > 0 {
		var entry []byte
		if entry, run, err = order.NextEntry(run, &e); err != nil {
			return 0, 0, err
		}
		if len(run) == 0 {
			seq, hash = e.Seq, order.Hash(entry)
		}
	}
	return seq, hash, nil
}

// Sync makes everything written durable.
func (j *Journal) Sync() error {
	if err := j.file.Sync(); err != nil {
		return err
	}
	if j.fresh {
		if err := j.fs.Sync(); err != nil {
			return err
		}
		j.fresh = false
	}
	return nil
}

// Bytes of all files.
func (j *Journal) Bytes() int64 { return j.bytes }

// Seq returns the last entry written.
func (j *Journal) Seq() uint64 { return j.seq }

// Frees reports whether a state up to entry base would let a whole segment be removed.
func (j *Journal) Frees(base uint64) bool {
	return base > j.state.base && len(j.segments) > 1 && j.segments[1].seq <= base
}

// Close closes the files. What is not synced may be lost.
func (j *Journal) Close() error {
	return errors.Join(j.state.abandon(j.fs), j.file.Close())
}
