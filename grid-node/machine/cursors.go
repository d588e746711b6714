package machine

import (
	"fmt"
	"slices"

	"github.com/ordergrid/ordergrid/grid-node/order"
)

// MaxReaders bounds the readers with a name.
const MaxReaders = 16

// Cursors are positions that log entries set, so a replica that takes over knows them.
type Cursors struct {
	Sink    Position // everything up to here is in the unnamed sink
	Readers []Reader // those that have a name, by name
	Free    Position // entries up to here may be freed
	Data    uint64   // the last entry that sets no position
	sum     uint64   // of Readers
}

// Reader is a named reader of the log and its position.
type Reader struct {
	Name string
	Position
}

// Position is the highest that entries set.
type Position struct {
	To    uint64
	Entry uint64 // the last entry that set it, 0 for none since the start or the snapshot
}

// cursorsAt returns the cursors of a log that begins after base.
func cursorsAt(base, sink uint64) Cursors {
	return Cursors{Sink: Position{To: sink}, Free: Position{To: base}, Data: base}
}

// Reader returns the position of a reader, and whether the log has one. The name "" is the
// unnamed sink, whose position every log has.
func (c *Cursors) Reader(name string) (p Position, found bool) {
	if name == "" {
		return c.Sink, true
	}
	for i := range c.Readers {
		if c.Readers[i].Name == name {
			return c.Readers[i].Position, true
		}
	}
	return Position{}, false
}

func (c *Cursors) check(e *order.Entry, payload []byte) error {
	switch e.Kind {
	case order.KindTruncate:
		if to := le.Uint64(payload); to >= e.Seq {
			return fmt.Errorf("entry %d: it frees up to %d, allowed: entries before it", e.Seq, to)
		}
	case order.KindReader:
		to, name := order.Reader(payload)
		_, known := c.find(name)
		switch {
		case to == order.ReaderGone && !known:
			return fmt.Errorf("entry %d: reader %q goes, allowed: one that the log has", e.Seq, name)
		case to != order.ReaderGone && to >= e.Seq:
			return fmt.Errorf("entry %d: reader %q holds entries up to %d, allowed: entries before it", e.Seq, name, to)
		case !known && len(c.Readers) == MaxReaders:
			return fmt.Errorf("entry %d: reader %q is the %dth, allowed: %d", e.Seq, name, MaxReaders+1, MaxReaders)
		}
	}
	return nil
}

func (c *Cursors) apply(e *order.Entry, payload []byte) {
	switch e.Kind {
	case order.KindCursor:
		c.Sink.say(e.Seq, le.Uint64(payload))
	case order.KindTruncate:
		c.Free.say(e.Seq, le.Uint64(payload))
	case order.KindReader:
		to, name := order.Reader(payload)
		c.set(e.Seq, to, name)
	default:
		c.Data = e.Seq
	}
}

// set moves, adds or drops a reader.
func (c *Cursors) set(seq, to uint64, name []byte) {
	i, known := c.find(name)
	switch {
	case to == order.ReaderGone:
		c.sum -= c.Readers[i].sum()
		c.Readers = slices.Delete(c.Readers, i, i+1)
		return
	case !known:
		c.Readers = slices.Insert(c.Readers, i, Reader{Name: string(name)})
	default:
		c.sum -= c.Readers[i].sum()
	}
	c.Readers[i].say(seq, to)
	c.sum += c.Readers[i].sum()
}

func (c *Cursors) find(name []byte) (int, bool) {
	i := 0
	for i < len(c.Readers) && c.Readers[i].Name < string(name) {
		i++
	}
	return i, i < len(c.Readers) && c.Readers[i].Name == string(name)
}

func (p *Position) say(seq, to uint64) { p.To, p.Entry = max(p.To, to), seq }

func (c *Cursors) clone() Cursors {
	d := *c
	d.Readers = slices.Clone(c.Readers)
	return d
}
