package journal

import (
	"fmt"

	"github.com/ordergrid/ordergrid/grid-node/replica"
)

// The state after the freed entries is written part by part to a file of its own, beside
// the log. When the file is durable the segments are removed whose entries are all in it.

const unfinished = "unfinished.state"

// stateWriter is a state file in the making, and the last one that is durable.
type stateWriter struct {
	base  uint64 // of the durable one
	bytes int64

	file File // nil: none is in the making
	next replica.JournalState
	size int64
}

// State adds a part. After the last one it reports that the state is durable.
func (j *Journal) State(p *replica.JournalState) (done bool, err error) {
	w := &j.state
	if p.From == 0 {
		if err := w.abandon(j.fs); err != nil {
			return false, err
		}
		if w.file, err = j.fs.Create(unfinished); err != nil {
			return false, j.failed(err)
		}
		if err := w.write(kindHead, j.id.head(p.Base, p.Hash)); err != nil {
			return false, j.failed(err)
		}
	} else if w.file == nil || p.Base != w.next.Base || p.From != w.next.Next {
		return false, fmt.Errorf("journal: state up to %d from slot %d, allowed: the part that follows slot %d of %d", p.Base, p.From, w.next.Next, w.next.Base)
	}
	w.next = *p
	var h [statePartHeader]byte
	le.PutUint32(h[:], p.From)
	le.PutUint32(h[4:], p.Next)
	if err := w.write(kindState, h[:], p.Part); err != nil {
		return false, j.failed(err)
	}
	if w.next.Part = nil; p.Next < p.Slots {
		return false, nil
	}
	return true, j.endState(p)
}

func (w *stateWriter) write(k kind, payload ...[]byte) error {
	b := appendRecord(nil, w.size, k, payload...)
	_, err := w.file.Write(b)
	w.size += int64(len(b))
	return err
}

// abandon removes a file that is not finished.
func (w *stateWriter) abandon(fs FS) error {
	if w.file == nil {
		return nil
	}
	err := w.file.Close()
	w.file, w.size = nil, 0
	if err != nil {
		return err
	}
	return fs.Remove(unfinished)
}

// endState makes the state durable, and removes what it replaces.
func (j *Journal) endState(p *replica.JournalState) error {
	w := &j.state
	var slots [8]byte
	le.PutUint64(slots[:], uint64(p.Slots))
	if err := w.write(kindEnd, slots[:]); err != nil {
		return j.failed(err)
	}
	if err := w.file.Sync(); err != nil {
		return err
	}
	if err := w.file.Close(); err != nil {
		return err
	}
	before, bytes := w.base, w.bytes
	w.file, w.base, w.bytes, w.size = nil, p.Base, w.size, 0
	if err := j.fs.Rename(unfinished, stateName(p.Base)); err != nil {
		return err
	}
	if err := j.fs.Sync(); err != nil {
		return err
	}
	j.bytes += w.bytes - bytes
	if before != 0 && before != p.Base {
		if err := j.fs.Remove(stateName(before)); err != nil {
			return err
		}
	}
	if p.Base > j.seq { // a copy that began with a state: its log begins behind it
		j.seq, j.hash = p.Base, p.Hash
		if err := j.next(); err != nil {
			return err
		}
		if err := j.Sync(); err != nil {
			return err
		}
	}
	return j.prune(p.Base)
}

// prune removes the segments whose entries are all in the state up to base.
func (j *Journal) prune(base uint64) error {
	for len(j.segments) > 1 && j.segments[1].seq <= base {
		if err := j.fs.Remove(segmentName(j.segments[0].n)); err != nil {
			return err
		}
		j.bytes -= j.segments[0].bytes
		j.segments = j.segments[1:]
	}
	return nil
}
