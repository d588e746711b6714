package node

import (
	"github.com/ordergrid/ordergrid/grid-node/machine"
	"github.com/ordergrid/ordergrid/grid-node/nodestatus"
	"github.com/ordergrid/ordergrid/grid-node/replica"
	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// books is the page of the books that this node leads. On the loop.
func (d *dataLoop) books() nodestatus.Books {
	ps := &d.parts
	b := nodestatus.Books{Pod: d.cfg.Pod, BootID: wire.FormatBootID(d.boot), Books: []nodestatus.Book{}}
	if ps.cfg.Execution == nil {
		return b
	}
	b.Calendar = ps.calendarFollowed()
	now := ps.loop.Clock().Wall()
	for _, p := range ps.list {
		if p.status.Role != replica.RolePrimary {
			continue
		}
		part := p.id.String() // once: there may be 4096 books
		p.replica.EachBook(now, func(s machine.BookState, in *machine.Instrument) {
			x := nodestatus.Book{Symbol: in.Symbol, Partition: part, State: bookStates[s.State], SinceUnixNs: s.Since, UntilUnixNs: s.Until}
			x.EnteredUnixNs, x.Behind = p.replica.EnteredPhase(s.Book, now)
			b.Books = append(b.Books, x)
		})
	}
	return b
}
