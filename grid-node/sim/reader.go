package sim

import (
	"fmt"

	"github.com/ordergrid/ordergrid/grid-node/order"
	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// reader is a client's connection for reads, one per pod: any node may believe that it is
// the primary, none may answer wrongly.
type reader struct {
	c    *client
	pod  *pod
	conn *conn
	asks map[uint64]ask // by request id

	books map[uint64]uint16 // the same, of books

	orders map[uint64]ordersAsked // the same, of orders of books
}

type ask struct {
	key  string
	at   int64
	mode uint8
}

// read asks some pod for some order.
func (c *client) read() {
	w := c.w
	p := w.somePod()
	r := c.readers[p]
	if r == nil {
		r = &reader{c: c, pod: p, asks: map[uint64]ask{}, books: map[uint64]uint16{}, orders: map[uint64]ordersAsked{}}
		c.readers[p] = r
	}
	if r.conn == nil || r.conn.gaveUp || r.conn.proc == nil {
		if r.conn = w.net.dial(r, p); r.conn == nil {
			return
		}
		clear(r.asks)
		clear(r.books)
		clear(r.orders)
	}
	c.reqID++
	if r.readOrders() || r.readBook() {
		return
	}
	mode := wire.ModeConfirmed
	switch n := w.rng.IntN(10); {
	case n == 0:
		mode = wire.ModeBackup
	case n <= w.profile.leasedOf10 && w.profile.leases:
		mode = wire.ModeLeased
	}
	key := c.someKey()
	r.asks[c.reqID] = ask{key: key, at: w.now, mode: mode}
	r.conn.send(wire.AppendGet(nil, partition, &wire.Get{ReqID: c.reqID, By: wire.ByClOrdID, Mode: mode, Key: []byte(key)}))
}

// someKey is mostly an order that was just acknowledged: a replica that lags does not know
// it.
func (c *client) someKey() string {
	w := c.w
	n := w.rng.IntN(100)
	if known := w.history.known; n < 55 && len(known) > 0 {
		return known[max(0, len(known)-1-w.rng.IntN(min(len(known), 4)))]
	}
	if n < 75 && len(c.open) > 0 {
		return c.open[w.rng.IntN(len(c.open))].key
	}
	if known := w.history.known; n < 85 && len(known) > 0 {
		return known[w.rng.IntN(len(known))]
	}
	return fmt.Sprintf("c%d-%d-%d", c.id, c.sessions, c.next) // to come
}

func (r *reader) closed(cn *conn) {
	if r.conn == cn {
		r.conn = nil
	}
}

func (r *reader) got(cn *conn, frame []byte, lineage uint64) {
	if cn == r.conn && wire.FrameType(frame) == wire.TypeOrdersShown {
		r.gotOrders(frame, lineage)
		return
	}
	if cn != r.conn || wire.FrameType(frame) != wire.TypeGetReply {
		return // a failed read is inconclusive
	}
	var m wire.GetReply
	_ = wire.DecodeGetReply(frame, &m)
	a, ok := r.asks[m.ReqID]
	if !ok || a.mode == wire.ModeBackup {
		return // checked when it was sent: a stale read is in no history
	}
	delete(r.asks, m.ReqID)
	if m.Status == wire.GetFreed && r.c.w.timeline(lineage).freedAt(a.key, m.Freed) {
		return // inconclusive for the history; for any other order it means not found
	}
	var seq uint64
	if m.Status == wire.GetFound {
		seq = order.Seq(m.Entry)
	}
	r.c.w.history.read(r.c.id, a.key, a.at, r.c.w.now, seq, lineage)
}
