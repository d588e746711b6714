package replica

import (
	"fmt"
	"slices"

	"github.com/ordergrid/ordergrid/grid-node/machine"
	"github.com/ordergrid/ordergrid/grid-node/order"
)

// reader is a consumer of this node's log and its position. The position is an entry of
// the log itself, so there is no second copy of the log, and a replica that takes over
// knows where to continue. No entry is freed that one of the readers does not hold.
type reader struct {
	name      string
	known     bool   // a committed entry has its position
	reached   uint64 // what the reader of this node reported
	committed uint64 // highest position in a committed entry
	asked     asked  // of a reader outside
}

// asked is the last Advance of a reader, if it is not answered.
type asked struct {
	conn, reqID, seq uint64
	waits            bool
}

// newReaders checks the names of readers.
func newReaders(names, outside, removed []string) ([]reader, error) {
	if names == nil {
		names = []string{""}
	}
	for _, name := range removed {
		if slices.Contains(names, name) {
			return nil, fmt.Errorf("readers: %q is removed, allowed: a name that no reader has", name)
		}
	}
	if len(names) > machine.MaxReaders {
		return nil, fmt.Errorf("readers: there are %d, allowed: at most %d", len(names), machine.MaxReaders)
	}
	for _, name := range outside {
		if name == "" || !slices.Contains(names, name) {
			return nil, fmt.Errorf("readers: %q is outside, allowed: a name of one of the readers", name)
		}
	}
	var readers []reader
	for i, name := range names {
		if name != "" && !order.IsReaderName(name) || slices.Contains(names[:i], name) {
			return nil, fmt.Errorf("readers: %q, allowed: 1 to %d lowercase letters, digits and hyphens, each name once", name, order.MaxReaderName)
		}
		readers = append(readers, reader{name: name, known: name == ""})
	}
	return readers, nil
}

// position returns the latest position of a reader in the log.
func (r *Replica) position(name string) machine.Position {
	p, _ := r.live.Cursors.Reader(name)
	return p
}

// held returns the entry up to which every reader holds the log, by committed positions:
// the readers of this node, and those of other nodes, which may be the next primaries.
func (r *Replica) held() uint64 {
	to := r.commit
	for i := range r.readers {
		if mutant(mutPinForgotten) && r.readers[i].reached == 0 && r.outside([]byte(r.readers[i].name)) {
			continue
		}
		to = min(to, r.readers[i].committed)
	}
	for i := range r.live.Cursors.Readers {
		switch d := &r.live.Cursors.Readers[i]; {
		case r.reads(d.Name) || mutant(mutForeignReaders):
		case d.Entry > r.commit:
			return 0 // its entry is not committed yet
		default:
			to = min(to, d.To)
		}
	}
	return to
}

// Reader returns the committed position of the reader at that index in Options.Readers.
// Until it is known the reader must not start: its entries might be freed concurrently.
func (r *Replica) Reader(i int) (seq uint64, known bool) {
	return r.readers[i].committed, r.readers[i].known
}

// AppendReaders appends the names with a position in the log.
func (r *Replica) AppendReaders(names []string) []string {
	for i := range r.live.Cursors.Readers {
		names = append(names, r.live.Cursors.Readers[i].Name)
	}
	return names
}

// known returns how many named readers have a position in the committed log.
func (r *Replica) known() (n int) {
	for i := range r.readers {
		if r.readers[i].known && r.readers[i].name != "" {
			n++
		}
	}
	return n
}

// logCursors appends the readers' positions, at most one pending entry of each, and the
// removal of readers that are gone. A new reader begins after what may be freed already.
func (r *Replica) logCursors() {
	for i := range r.readers {
		d := &r.readers[i]
		if _, found := r.live.Cursors.Reader(d.name); !found && r.mayLogCursor() {
			r.logReader(d.name, r.live.Cursors.Free.To)
		} else if found && r.cursorDue(d) {
			r.logReader(d.name, r.reachedBy(d))
		}
	}
	for i := len(r.live.Cursors.Readers) - 1; i >= 0; i-- {
		if name := r.live.Cursors.Readers[i].Name; slices.Contains(r.opt.Removed, name) && r.mayLogCursor() {
			r.logReader(name, order.ReaderGone)
		}
	}
}

func (r *Replica) reads(name string) bool {
	for i := range r.readers {
		if r.readers[i].name == name {
			return true
		}
	}
	return false
}

func (r *Replica) reachedBy(d *reader) uint64 {
	if mutant(mutCursorAhead) {
		return r.commit
	}
	return min(d.reached, r.commit)
}

// cursorDue reports whether a reader's position should be logged. A position that only
// covers position entries is not: that would never end.
func (r *Replica) cursorDue(d *reader) bool {
	reached, said := r.reachedBy(d), r.position(d.name)
	return reached > said.To && r.live.Cursors.Data > said.To && said.Entry <= r.commit && r.mayLogCursor()
}

// mayLogCursor reports whether a position may be logged now. While parking, the target of
// the hand-over has the whole log: with one more entry, this log would not be a prefix of
// the new primary's.
func (r *Replica) mayLogCursor() bool {
	return (!r.parking() || mutant(mutCursorParking)) && !r.windowFull() && (r.makesEntries() && !r.closing() || mutant(mutStandbyCursors))
}

// logReader appends the position of a reader.
func (r *Replica) logReader(name string, seq uint64) {
	e := &order.Entry{Kind: order.KindReader}
	payload := order.AppendReader(r.text[:0], seq, name)
	if name == "" {
		e.Kind = order.KindCursor
	}
	// A full store: the position is logged when there is room; the only risk is a repeat.
	_ = r.append(e, payload, 0, pending{})
}

// readersCommitted follows the committed prefix.
func (r *Replica) readersCommitted(seq uint64) {
	for i := range r.readers {
		d := &r.readers[i]
		if said := r.position(d.name); said.Entry != 0 && said.Entry <= seq {
			d.committed, d.known = said.To, true
		}
	}
}

// readersBehind moves the readers to the positions of a base state.
func (r *Replica) readersBehind(base *machine.Machine) {
	for i := range r.readers {
		d := &r.readers[i]
		said, found := base.Cursors.Reader(d.name)
		*d = reader{name: d.name, known: found, committed: said.To}
	}
}
