package node

import (
	"context"
	"fmt"

	"github.com/ordergrid/ordergrid/grid-node/feed"
	"github.com/ordergrid/ordergrid/grid-node/function"
	"github.com/ordergrid/ordergrid/grid-node/order"
	"github.com/ordergrid/ordergrid/grid-node/replica"
	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// A Map over orders reads the committed log beside the loop, as streams do. The log holds what it reads for as long as
// it takes to copy a page, so that no function, however slow, keeps entries from being freed; what is freed before it
// was read ends the Map.

// orderRows are the orders of a slice. Of the Map's goroutine, but for hold.
type orderRows struct {
	of     replica.Prefix
	next   uint64 // entry to be read
	behind uint64 // the first behind the slice
	time   int64  // of the last entry of the prefix
	log    *feed.Reader
	page   []byte // entries of orders
}

// orderVisits entries are looked at for a page.
const orderVisits = 4096

// timeAt is the time of an entry, 0 if it is not held; on the loop.
func (p *partition) timeAt(seq uint64) int64 {
	var e order.Entry
	if b := p.store.Read(seq); b == nil {
		return 0
	} else if _, err := order.DecodeEntry(b, &e); err != nil {
		return 0
	}
	return e.TimeNs
}

// scanOrders calls the function for each order of the slice, and reports whether that was all of them.
func (g *mapping) scanOrders(inst *function.Instance, c *function.KeyCall) bool {
	o := g.orders
	g.part.Seq = o.of.Through
	call := function.OrderCall{Args: g.m.Args, Slice: c.Slice, Slices: c.Slices}
	for o.next < o.behind {
		if err := g.p.onLoop(g.holdOrders); err != nil {
			g.refuse(wire.CodeOverloaded, 0, 0, err.Error())
		}
		if g.no != nil {
			return false
		}
		o.read()
		for rest := o.page; len(rest) > 0; {
			var e order.Entry
			entry, after, err := order.NextEntry(rest, &e)
			if err != nil {
				g.refuse(wire.CodeOverloaded, 0, 0, fmt.Sprintf("an entry of the log: %v", err))
				return false
			}
			rest = after
			call.Order = function.Order{Seq: e.Seq, Time: e.TimeNs, Raw: order.Message(entry)}
			g.part.Rows++
			r := inst.InvokeOrder(context.Background(), &call)
			c.Key, c.Value = order.Payload(entry)[e.Fields.ClOrdIDOff:][:e.Fields.ClOrdIDLen], call.Raw // for what is said of a failure
			if !g.goesOn(inst, c, &r) {
				return false
			}
		}
	}
	return true
}

// holdOrders has the log hold what is read next, unless that was freed; on the loop.
func (g *mapping) holdOrders() {
	o := g.orders
	if g.p.closed || g.p.ended || g.p.inc != g.inc {
		g.gone = true
		g.refuse(wire.CodeDraining, 0, 0, "the replica stops serving here: ask another")
		return
	}
	if base := g.p.replica.Freed(); o.next <= base {
		g.no = replica.FreedUnderMap(g.forType, g.m.ReqID, o.next, base)
		return
	}
	o.log.Hold(o.next)
	if c := g.l.conn; c.Open() {
		c.Spend(requestWork)
	}
}

// read copies the next page, and lets the log go.
func (o *orderRows) read() {
	o.page = o.page[:0]
	for visits := 0; o.next < o.behind && visits < orderVisits && len(o.page) < mapPage; visits++ {
		entry := o.log.Read(o.next)
		if order.Kind(entry[4]).IsOrder() {
			o.page = append(o.page, entry...)
			o.page = append(o.page, make([]byte, order.Padded(len(o.page))-len(o.page))...)
		}
		o.next++
	}
	o.log.Hold(0)
}

// part is the answer.
func (o *orderRows) part(g *mapping) []byte {
	return wire.AppendMapOrdersPart(nil, g.p.id, &wire.MapOrdersPart{ReqID: g.m.ReqID, Epoch: o.of.Epoch, From: o.of.From, Through: o.of.Through, ThroughHash: o.of.Hash,
		Rows: g.part.Rows, Fuel: g.part.Fuel, Reply: g.part.Reply})
}
