package sim

import (
	"fmt"
	"slices"

	"github.com/ordergrid/ordergrid/grid-node/match"
	"github.com/ordergrid/ordergrid/grid-node/shown"
	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// In half of the worlds match clients keep books order by order, of what any process answers: a part of one from here, the
// next from there.

// ordersAsked is a question that was sent.
type ordersAsked struct {
	book uint16
	wire.ReadOrders
}

// kept is a book that a client keeps, in a lineage.
type kept struct {
	shown.Book
	lineage uint64
}

// readOrders asks for the next part of a book in place of an order, now and then.
func (r *reader) readOrders() bool {
	rng := r.c.w.profile.orders
	if rng == nil || rng.IntN(3) > 0 {
		return false
	}
	if r.c.keeps == nil {
		r.c.keeps = make([]kept, len(matchInstruments))
	}
	book := uint16(rng.IntN(len(matchInstruments)))
	m := ordersAsked{book, wire.ReadOrders{ReqID: r.c.reqID, Most: 1 + uint16(rng.IntN(12)), Symbol: []byte(matchInstruments[book].Symbol)}}
	r.c.keeps[book].Ask(&m.ReadOrders)
	r.orders[r.c.reqID] = m
	r.conn.send(wire.AppendReadOrders(nil, partition, &m.ReadOrders))
	return true
}

// checkOrders: orders of a book are shown as they are after a committed entry, on whose executions all members agree (I59).
func (w *world) checkOrders(p *process, c *conn, frame []byte, lineage uint64) {
	var m wire.OrdersShown
	if err := wire.DecodeOrdersShown(frame, &m); err != nil {
		w.violation("wire", "%s: %v", p.name, err)
		return
	}
	if p.spoiled {
		if r, ok := c.user.(*reader); ok {
			delete(r.orders, m.ReqID) // of wrong books: the client does not take it
		}
		return
	}
	if t := w.shown(lineage); m.Seq > uint64(len(t.hashes)) || m.Seq > 0 && t.hashes[m.Seq-1] != m.Hash {
		w.violation("I59", "%s shows orders of a book after entry %d, which is not committed", p.name, m.Seq)
		return
	}
	w.checkAgreed(p, "shows orders of a book", m.Seq)
}

// gotOrders brings a book up to an answer that a client has got.
func (r *reader) gotOrders(frame []byte, lineage uint64) {
	var m wire.OrdersShown
	if err := wire.DecodeOrdersShown(frame, &m); err != nil {
		return // reported when it was sent
	}
	asked, ok := r.orders[m.ReqID]
	delete(r.orders, m.ReqID)
	if !ok {
		return // of a connection before
	}
	w, k := r.c.w, &r.c.keeps[asked.book]
	var now wire.ReadOrders
	k.Ask(&now)
	if now.Since != asked.Since || now.From != asked.From {
		return // another process has answered since
	}
	if anew := m.Flags&wire.OrdersAnew != 0; k.lineage != lineage && !anew {
		k.Forget() // a reader that is told of another history begins anew
		return
	}
	k.lineage = lineage
	if _, err := k.Apply(&m, nil); err != nil {
		w.violation("I59", "client %d: %v", r.c.id, err)
		k.Forget()
		return
	}
	if !k.Complete || m.Flags&wire.OrdersMore != 0 {
		return
	}
	if w.check.orders == nil {
		w.check.orders = map[uint64][]shownOrders{}
	}
	w.check.orders[m.Hash] = append(w.check.orders[m.Hash], shownOrders{asked.book, [2][]shown.Order{k.Orders(shown.Buy), k.Orders(shown.Sell)}})
	w.stats.BookOrders++
}

// shownOrders are those of a book as a client has it.
type shownOrders struct {
	book  uint16
	sides [2][]shown.Order
}

// showsOrders compares a book with what the judge has; "" if it is the same.
func (j *judge) showsOrders(v *shownOrders) string {
	for i, side := range []match.Side{match.Buy, match.Sell} {
		var want []*judged
		for _, o := range j.orders {
			if o.book == v.book && o.side == side && o.rests {
				want = append(want, o)
			}
		}
		slices.SortFunc(want, func(a, b *judged) int {
			if better(a, b) {
				return -1
			}
			return 1
		})
		if len(v.sides[i]) != len(want) {
			return fmt.Sprintf("side %d of book %d has %d orders for a client, there are %d", side, v.book, len(v.sides[i]), len(want))
		}
		for n, o := range v.sides[i] {
			if want := want[n]; o.ID != want.first || o.Price != want.price || o.Qty != want.leaves {
				return fmt.Sprintf("order %d of side %d of book %d is for a client %+v, it is %+v", n, side, v.book, o, *want)
			}
		}
	}
	return ""
}
