package machine

import "github.com/ordergrid/ordergrid/grid-node/order"

// Cursors are positions that the log itself says, so whoever takes over knows them.
type Cursors struct {
	Sink Position // up to here the write-behind sink holds everything
	Free Position // up to here entries may be freed
	Data uint64   // the last entry that is no position
}

// Position is the highest that entries said.
type Position struct {
	To    uint64
	Entry uint64 // the last entry that said one, 0 for none since the log was begun or taken in
}

// cursorsAt are those of a log that is held behind base only.
func cursorsAt(base, sink uint64) Cursors {
	return Cursors{Sink: Position{To: sink}, Free: Position{To: base}, Data: base}
}

func (c *Cursors) apply(e *order.Entry, payload []byte) {
	switch e.Kind {
	case order.KindCursor:
		c.Sink.say(e.Seq, payload)
	case order.KindTruncate:
		c.Free.say(e.Seq, payload)
	default:
		c.Data = e.Seq
	}
}

func (p *Position) say(seq uint64, payload []byte) {
	p.To, p.Entry = max(p.To, le.Uint64(payload)), seq
}
