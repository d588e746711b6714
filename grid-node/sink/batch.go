package sink

import (
	"encoding/binary"
	"errors"
	"fmt"
	"maps"

	"github.com/ordergrid/ordergrid/grid-node/feed"
	"github.com/ordergrid/ordergrid/grid-node/order"
)

// SessionID is the 128-bit random id a client chose.
type SessionID struct{ Hi, Lo uint64 }

// Writer is a term as the primary. Terms are ordered by lineage, then by epoch.
type Writer struct{ Lineage, Epoch uint64 }

// Batch is a run of entries with the tags that a sink wants. Entries alias the order
// store.
type Batch struct {
	Entries  [][]byte
	Lineages []uint64    // of each entry
	Sessions []SessionID // of each entry, zero if it belongs to none
	// Writer is the configuration in which this node is the primary: no entry is of a
	// later one. A sink that several nodes write rejects a batch of an earlier writer than
	// it has seen.
	Writer Writer

	size    int
	news    bool // holds entries other than the queue's own cursors and truncates
	lineage uint64
	slots   map[uint32]SessionID // by slot, as of this point of the log; as many as the log allows
	last    uint64
}

func newBatch() Batch { return Batch{slots: map[uint32]SessionID{}} }

func (b *Batch) reset() {
	clear(b.Entries)
	b.Entries, b.Lineages, b.Sessions = b.Entries[:0], b.Lineages[:0], b.Sessions[:0]
	b.size, b.news = 0, false
}

var errNoEntry = errors.New("the log does not have it")

// add takes the next entry in.
func (b *Batch) add(entry []byte) error {
	if entry == nil {
		return errNoEntry
	}
	seq, kind := order.Seq(entry), order.Kind(entry[4])
	if seq != b.last+1 {
		return fmt.Errorf("sequence %d follows %d", seq, b.last)
	}
	b.follow(entry, kind)
	b.Entries = append(b.Entries, entry)
	b.Lineages = append(b.Lineages, b.lineage)
	b.Sessions = append(b.Sessions, b.session(entry, kind))
	b.size += len(entry)
	b.news = b.news || kind != order.KindCursor && kind != order.KindTruncate && kind != order.KindReader
	b.last = seq
	return nil
}

// mayWrite reports whether an entry is of the writer's term or an earlier one: later
// entries belong to the next primary.
func (b *Batch) mayWrite(entry []byte) bool {
	w := &b.Writer
	if order.Kind(entry[4]) == order.KindNoop && binary.LittleEndian.Uint64(order.Payload(entry)) > w.Lineage {
		return false
	}
	return uint64(epochOf(entry)) <= w.Epoch
}

func epochOf(entry []byte) uint32 { return binary.LittleEndian.Uint32(entry[24:]) }

// follow keeps lineage and sessions as they are at this entry.
func (b *Batch) follow(entry []byte, kind order.Kind) {
	payload := order.Payload(entry)
	switch kind {
	case order.KindNoop:
		b.lineage = binary.LittleEndian.Uint64(payload)
	case order.KindSessionOpen:
		b.slots[slotOf(entry)] = SessionID{Hi: binary.LittleEndian.Uint64(payload), Lo: binary.LittleEndian.Uint64(payload[8:])}
	}
}

// session returns the session of an entry; slot 0 is a valid session, so the kind decides
// whether the field has a meaning.
func (b *Batch) session(entry []byte, kind order.Kind) SessionID {
	if !kind.IsOrder() && kind != order.KindSessionOpen || order.IsFix(entry) { // slots of FIX sessions are others
		return SessionID{}
	}
	return b.slots[slotOf(entry)]
}

func slotOf(entry []byte) uint32 { return binary.LittleEndian.Uint32(entry[28:]) }

// rebuild follows the log from start up to pos, so that the next entry can be tagged.
func (b *Batch) rebuild(log *feed.Reader, pos Position, start *Start) error {
	b.reset()
	clear(b.slots)
	b.lineage, b.last = start.Lineage, start.Seq
	maps.Copy(b.slots, start.Sessions)
	for seq := start.Seq + 1; seq <= pos.Seq; seq++ {
		entry := log.Read(seq)
		if entry == nil {
			return fmt.Errorf("entry %d: %w", seq, errNoEntry)
		}
		b.follow(entry, order.Kind(entry[4]))
	}
	b.last = pos.Seq
	return nil
}
