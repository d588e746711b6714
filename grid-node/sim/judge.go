package sim

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/ordergrid/ordergrid/grid-node/machine"
	"github.com/ordergrid/ordergrid/grid-node/match"
	"github.com/ordergrid/ordergrid/grid-node/order"
)

// judge looks at executions with nothing of the engine: orders in a map, the best found by
// looking at all. It knows continuous trading of limit and market orders, cancels,
// replaces, mass cancels and halts, which is what the world match has, and of auctions (calendar.go)
// who may trade, and at which price.
type judge struct {
	orders  map[uint64]*judged
	states  []match.State // by book
	changed []int64       // by book: time of the entry that its state began with
	newest  int64         // time of an entry so far
	traded  [][3]int64    // by book and side
	bands   [][2]int64    // by book: prices that new orders may have
	price   []int64       // by book: of its last auction
	moved   int           // bands
	banned  int           // orders for a price outside
	lineage uint64
	clock   int
	fills   int

	schedule schedule
	auctions int // trades in them

	masses int  // mass cancels of FIX sessions
	swept  int  // orders that those cancelled
	killed int  // orders that kills cancelled
	lapsed int  // orders of FIX sessions that were gone
	named  bool // kills cancel what rests
	kills  []order.Guard

	e *order.Entry
	i order.Instruction
	m order.Market
	// account of the message of the entry
	account string
	taker   *judged // on its way through the other side
}

type judged struct {
	id, first               uint64 // the entry of its last message, and that it began with
	book                    uint16
	side                    match.Side
	price, qty, leaves, cum int64
	prio                    int
	owner                   uint32
	market, rests           bool
	doomed                  bool // a mass cancel, or a kill, includes it
	gone                    bool // its session has lapsed since
	account                 string
}

// entry judges what an entry did; "" if it is right.
func (j *judge) entry(e *order.Entry, payload []byte, records []match.Record) string {
	if j.orders == nil {
		j.orders = map[uint64]*judged{}
	}
	j.e, j.i, j.m, j.taker = e, order.Instruction{}, order.Market{}, nil
	j.newest = max(j.newest, e.TimeNs)
	switch e.Kind {
	case order.KindNoop:
		lineage := binary.LittleEndian.Uint64(payload)
		if j.lineage != 0 && lineage != j.lineage {
			for b := range j.states {
				j.become(uint16(b), match.Halted) // before the records say so
			}
		}
		j.lineage = lineage
	case order.KindExecute:
		j.i, j.account = order.Instructed(payload), accountIn(payload[min(order.InstructionSize, len(payload)):])
	case order.KindFix:
		if order.IsLapse(payload) {
			j.lapse(payload)
		}
		if c, slot, _, ok := order.MassCancelOf(payload); ok {
			j.masses++
			j.m = order.Market{Book: c.Book, Side: c.Side, Values: [5]uint64{3: uint64(machine.FixOwner(slot))}}
		}
	case order.KindGuard:
		j.guard(order.GuardOf(payload))
	case order.KindMarket:
		if j.m = order.MarketOf(payload); j.m.Op == order.MarketDefine {
			j.states, j.traded, j.changed = append(j.states, match.Closed), append(j.traded, [3]int64{}), append(j.changed, e.TimeNs)
			j.bands, j.price = append(j.bands, [2]int64{int64(j.m.Values[2]), int64(j.m.Values[3])}), append(j.price, 0)
		}
	}
	for n := range records {
		if text := j.record(records, n); text != "" {
			return fmt.Sprintf("record %d (%+v): %s", n+1, records[n], text)
		}
	}
	if text := j.inPhase(records); text != "" {
		return text
	}
	return j.end()
}

func (j *judge) record(records []match.Record, n int) string {
	r := &records[n]
	switch r.Kind {
	case match.Accepted:
		switch r.Reason {
		case match.MassCancelling:
			return j.doom()
		case match.Killed, match.Disconnected:
			return ""
		}
		return j.accepted(r)
	case match.Filled:
		if r.Flags&match.Passive != 0 || r.Flags&match.Auction != 0 && r.Side == match.Sell {
			return "" // judged with the one before
		}
		if n+1 == len(records) {
			return "a trade with one side"
		}
		if r.Flags&match.Auction != 0 {
			return j.auctioned(r, &records[n+1])
		}
		return j.filled(r, &records[n+1])
	case match.Cancelled:
		return j.cancelled(r)
	case match.Replaced:
		return j.replaced(r)
	case match.StateChanged:
		j.become(r.Book, match.State(r.Flags))
	case match.AuctionPrice:
		j.states[r.Book], j.price[r.Book] = match.Uncrossing, r.Price
	case match.BandChanged:
		return j.band(r)
	case match.Rejected, match.CancelRejected:
		if r.Reason == match.OutsideBand && j.i.Op != 0 {
			j.banned++
			if j.within(r.Book, j.i.Price) { // of a replace the book of its order
				return "an order is refused whose price is within the band"
			}
		}
	}
	return ""
}

// band follows a price band that is moved.
func (j *judge) band(r *match.Record) string {
	to := [2]int64{int64(j.m.Values[0]), int64(j.m.Values[1])}
	if j.m.Op != order.MarketApply || match.OpKind(j.m.Kind) != match.SetBand || r.Book != j.m.Book || [2]int64{r.Price, int64(r.Other)} != to {
		return "a price band that nothing has asked for"
	}
	j.bands[r.Book] = to
	j.moved++
	return ""
}

func (j *judge) within(book uint16, price int64) bool {
	return price >= j.bands[book][0] && price <= j.bands[book][1]
}

func (j *judge) become(book uint16, s match.State) {
	if j.states[book] != s {
		j.changed[book] = j.e.TimeNs
	}
	j.states[book] = s
}

func (j *judge) accepted(r *match.Record) string {
	j.clock++
	o := &judged{id: r.Order, first: r.Order, book: j.i.Book, side: match.Side(j.i.Side), price: j.i.Price, qty: j.i.Qty, leaves: j.i.Qty, prio: j.clock, owner: j.i.Owner, account: j.known(), market: j.i.Type == 2}
	switch {
	case r.Order != j.e.Seq || j.i.Op != order.InstructEnter || j.orders[o.id] != nil:
		return "an order that is not that of the entry, or twice"
	case j.states[o.book] != match.Open && j.states[o.book] != match.Call:
		return "an order in a book that is not open"
	case !o.market && !j.within(o.book, o.price):
		return fmt.Sprintf("an order at %d, outside of the band %v", o.price, j.bands[o.book])
	case j.states[o.book] == match.Call && (j.i.TIF != 0 || j.i.Flags&order.InstructPost != 0):
		return "an order in a call that does not wait for its end"
	case j.states[o.book] == match.Call:
		o.rests, j.orders[o.id] = true, o
		return ""
	case j.i.Flags&order.InstructPost != 0 && j.crosses(o) != nil:
		return "a post-only order that can trade"
	}
	j.orders[o.id], j.taker = o, o
	return ""
}

// crosses returns the best order of the other side, if o could trade with it.
func (j *judge) crosses(o *judged) (best *judged) {
	for _, m := range j.orders {
		if m.book != o.book || m.side == o.side || m.doomed || !m.rests {
			continue
		}
		if best == nil || better(m, best) {
			best = m
		}
	}
	if best != nil && o.market && (o.side == match.Buy && best.price > j.bands[o.book][1] || o.side == match.Sell && best.price < j.bands[o.book][0]) {
		return nil // a market order trades no further than to the end of the band
	}
	if best == nil || !o.market && (o.side == match.Buy && best.price > o.price || o.side == match.Sell && best.price < o.price) {
		return nil
	}
	return best
}

// better reports whether a comes before b, of the same side.
func better(a, b *judged) bool {
	if a.price != b.price {
		return (a.side == match.Sell) == (a.price < b.price)
	}
	return a.prio < b.prio
}

func (j *judge) filled(t, m *match.Record) string {
	taker, maker := j.orders[t.Order], j.orders[m.Order]
	if taker == nil || maker == nil || taker != j.taker || t.Other != maker.id || m.Other != taker.id || m.Flags&match.Passive == 0 {
		return "a trade of others than the incoming order and one that rests"
	}
	if maker.doomed || taker.doomed {
		return fmt.Sprintf("I49: a trade of %d with %d, one of which a mass cancel includes", taker.id, maker.id)
	}
	if maker.gone || taker.gone {
		return fmt.Sprintf("I50: a trade of %d with %d, one of which is of a session that has lapsed", taker.id, maker.id)
	}
	if best := j.crosses(taker); best != maker {
		return fmt.Sprintf("a trade with %d; the best by price, then time, is %+v", maker.id, best)
	}
	qty := min(taker.leaves, maker.leaves)
	if t.Price != maker.price || m.Price != maker.price || t.Qty != qty || m.Qty != qty {
		return fmt.Sprintf("a trade of %d at %d, want %d at %d", t.Qty, t.Price, qty, maker.price)
	}
	j.traded[taker.book][taker.side] += t.Qty
	j.traded[maker.book][maker.side] += m.Qty
	j.fills++
	for _, x := range [2]struct {
		o *judged
		r *match.Record
	}{{taker, t}, {maker, m}} {
		if text := j.fill(x.o, x.r, qty); text != "" {
			return text
		}
	}
	return ""
}

// fill counts a fill of an order.
func (j *judge) fill(o *judged, r *match.Record, qty int64) string {
	o.leaves, o.cum = o.leaves-qty, o.cum+qty
	if r.Leaves != o.leaves || r.Cum != o.cum || o.leaves+o.cum != o.qty {
		return fmt.Sprintf("order %d has %d left and %d filled of %d", o.id, o.leaves, o.cum, o.qty)
	}
	if o.leaves == 0 {
		delete(j.orders, o.id)
	}
	return ""
}

func (j *judge) cancelled(r *match.Record) string {
	o := j.orders[r.Order]
	switch {
	case o == nil:
		return "an order leaves that is not there"
	case r.Leaves != o.leaves || r.Cum != o.cum || o.leaves+o.cum != o.qty:
		return fmt.Sprintf("order %d has %d left and %d filled of %d", o.id, o.leaves, o.cum, o.qty)
	case (r.Reason == match.MassCancelling || r.Reason == match.Killed) && !o.doomed:
		return "a mass cancel that does not include the order"
	case r.Reason == match.Disconnected && !o.gone:
		return "a cancel for a session that has not lapsed"
	case r.Reason == match.Requested && o.owner != j.i.Owner:
		return "a cancel of another's order"
	case r.Reason == match.Unfilled && o == j.taker && j.i.TIF == 2 && o.cum != 0:
		return "a fill-or-kill order that was filled in part"
	}
	switch _, fix := machine.FixSlot(o.owner); {
	case r.Reason == match.Killed:
		j.killed++
	case r.Reason == match.Disconnected:
		j.lapsed++
	case fix && r.Reason == match.MassCancelling:
		j.swept++
	}
	delete(j.orders, o.id)
	return ""
}

func (j *judge) replaced(r *match.Record) string {
	o := j.orders[r.Order]
	if o == nil || o.owner != j.i.Owner || r.Other != j.e.Seq || o.doomed || o.gone || r.Leaves != r.Qty-o.cum || r.Cum != o.cum {
		return "a replacement of another's order, of one that is gone, or with wrong sums"
	}
	if !j.within(o.book, r.Price) {
		return fmt.Sprintf("a replacement at %d, outside of the band %v", r.Price, j.bands[o.book])
	}
	delete(j.orders, o.id)
	keeps := o.price == r.Price && r.Leaves <= o.leaves
	o.account = j.known()
	o.id, o.price, o.qty, o.leaves = r.Other, r.Price, r.Qty, r.Leaves
	j.orders[o.id] = o
	if !keeps {
		j.clock++
		o.prio = j.clock
		if j.states[o.book] != match.Call {
			o.rests, j.taker = false, o
		}
	}
	return ""
}

// known returns whose the order of the entry is, as far as the books know that.
func (j *judge) known() string {
	if !j.named {
		return ""
	}
	return j.account
}

// guard follows kills: from their entry on what they include may not trade.
func (j *judge) guard(g order.Guard) {
	at := slices.IndexFunc(j.kills, func(k order.Guard) bool { return k.Scope == g.Scope && bytes.Equal(k.Name, g.Name) })
	switch {
	case g.Op == order.GuardNames:
		j.named = true
		for _, k := range j.kills {
			j.kill(k)
		}
	case g.Op == order.GuardKill && at < 0:
		j.kills = append(j.kills, g)
		if j.named {
			j.kill(g)
		}
	case g.Op == order.GuardUnkill && at >= 0:
		j.kills = slices.Delete(j.kills, at, at+1)
	}
}

func (j *judge) kill(g order.Guard) {
	for _, o := range j.orders {
		if g.Scope == order.GuardAll || o.account != "" && o.account == string(g.Name) {
			o.doomed = true
		}
	}
}

// lapse marks the orders of the sessions of an entry.
func (j *judge) lapse(payload []byte) {
	for rest := payload; len(rest) > 0; {
		var r order.FixRecord
		rest = order.NextFix(rest, &r)
		for _, o := range j.orders {
			if o.owner == machine.FixOwner(r.Slot) {
				o.gone = true
			}
		}
	}
}

// doom marks what a mass cancel includes.
func (j *judge) doom() string {
	for _, o := range j.orders {
		if (j.m.Book == match.All || o.book == j.m.Book) && (j.m.Side == 0 || o.side == match.Side(j.m.Side)) && (j.m.Values[3] == 0 || uint64(o.owner) == j.m.Values[3]) {
			o.doomed = true
		}
	}
	return ""
}

// end judges what is left of the incoming order.
func (j *judge) end() string {
	for b, t := range j.traded {
		if t[match.Buy] != t[match.Sell] {
			return fmt.Sprintf("in book %d %d were bought and %d sold", b, t[match.Buy], t[match.Sell])
		}
	}
	o := j.taker
	if o == nil || j.orders[o.id] != o {
		return ""
	}
	if best := j.crosses(o); best != nil {
		return fmt.Sprintf("order %+v rests, and could trade with %+v", o, best)
	}
	if j.i.TIF != 0 || o.market {
		return fmt.Sprintf("order %+v rests, and may not", o)
	}
	o.rests = true
	return ""
}
