package naive

import (
	"slices"

	"github.com/ordergrid/ordergrid/grid-node/match"
)

func (x *Matcher) become(b *oBook, s match.State, until int64, why match.Reason) {
	b.state, b.until = s, until
	if s == match.Call {
		b.crossed = true
	}
	x.emit(match.Record{Kind: match.StateChanged, Book: b.n, Flags: uint8(s), Price: until, Reason: why})
	if s == match.Open && b.lo != nil {
		b.busy = true
	}
}

func (x *Matcher) setState(op match.Op) {
	b := x.find(op.Book)
	if b == nil {
		x.reject(op, match.UnknownInstrument)
		return
	}
	switch {
	case op.State > match.Halted || op.State == match.Uncrossing:
		x.reject(op, match.BadField)
		return
	case b.state == match.Uncrossing || op.State == match.Open && b.crossed || op.State == b.state && op.State != match.Halted:
		x.reject(op, match.NotInState)
		return
	}
	until := int64(0)
	if op.State == match.Halted {
		until = op.Until
		if b.state != match.Halted {
			b.resume = b.state
		}
	}
	x.become(b, op.State, until, match.Requested)
	x.runStops(b)
}

func (x *Matcher) setBand(op match.Op) {
	b := x.find(op.Book)
	switch {
	case b == nil:
		x.reject(op, match.UnknownInstrument)
	case op.Price < b.Low || op.Stop > b.High || op.Price > op.Stop:
		x.reject(op, match.OutsideBand)
	case (op.Price-b.Low)%b.Tick != 0 || (op.Stop-b.Low)%b.Tick != 0:
		x.reject(op, match.OffTick)
	default:
		b.bandLo, b.bandHi = op.Price, op.Stop
		x.emit(match.Record{Kind: match.BandChanged, Book: b.n, Price: op.Price, Other: uint64(op.Stop)})
	}
}

func (x *Matcher) uncross(op match.Op) {
	b := x.find(op.Book)
	switch {
	case b == nil:
		x.reject(op, match.UnknownInstrument)
		return
	case b.state != match.Call:
		x.reject(op, match.NotInState)
		return
	case op.State != match.Open && op.State != match.Closed:
		x.reject(op, match.BadField)
		return
	case len(x.sweeps) > 0:
		x.reject(op, match.Busy)
		return
	}
	ref := b.Ref
	if op.Price != 0 {
		ref = op.Price
	} else if b.last != nil {
		ref = *b.last
	}
	if op.Price != 0 || b.last == nil {
		if why := b.priceFault(ref); why != match.None {
			x.reject(op, why)
			return
		}
	}
	price, volume, surplus := x.auctionPrice(b, ref)
	r := match.Record{Kind: match.AuctionPrice, Book: b.n, Qty: volume}
	if volume > 0 {
		r.Price = price
		if surplus > 0 {
			r.Side, r.Leaves = match.Buy, surplus
		} else if surplus < 0 {
			r.Side, r.Leaves = match.Sell, -surplus
		}
	}
	x.emit(r)
	b.auctionPrice, b.auctionLeft, b.auctionNext = price, volume, op.State
	b.state = match.Uncrossing
	x.uncrossSome(b)
}

// auctionPrice tries every limit in the book.
func (x *Matcher) auctionPrice(b *oBook, ref int64) (price, volume, surplus int64) {
	at := func(p int64) (volume, surplus int64) {
		var buys, sells int64
		for _, o := range x.orders {
			switch {
			case o.book != b.n || o.where == 1:
			case o.side == match.Buy && (o.where == 2 || o.price >= p):
				buys += o.leaves
			case o.side == match.Sell && (o.where == 2 || o.price <= p):
				sells += o.leaves
			}
		}
		return min(buys, sells), buys - sells
	}
	var limits []int64
	for _, o := range x.orders {
		if o.book == b.n && o.where == 0 {
			limits = append(limits, o.price)
		}
	}
	slices.Sort(limits)
	limits = slices.Compact(limits)
	if len(limits) == 0 {
		volume, surplus = at(ref)
		return ref, volume, surplus
	}
	abs := func(v int64) int64 { return max(v, -v) }
	gap := int64(0)
	for _, p := range limits { // rules 1 and 2
		v, s := at(p)
		if v > volume || v == volume && abs(s) < gap {
			volume, gap = v, abs(s)
		}
	}
	if volume == 0 {
		return 0, 0, 0
	}
	var buys, sells, even []int64
	for _, p := range limits {
		switch v, s := at(p); {
		case v != volume || abs(s) != gap:
		case s > 0:
			buys = append(buys, p)
		case s < 0:
			sells = append(sells, p)
		default:
			even = append(even, p)
		}
	}
	switch {
	case len(even) > 0:
		price = nearest(ref, even[0], even[len(even)-1])
	case len(sells) == 0:
		price = buys[len(buys)-1]
	case len(buys) == 0:
		price = sells[0]
	default:
		price = nearest(ref, buys[len(buys)-1], sells[0])
	}
	_, surplus = at(price)
	return price, volume, surplus
}

func nearest(ref, lo, hi int64) int64 {
	switch {
	case ref < lo:
		return lo
	case ref > hi:
		return hi
	}
	return ref
}

func (x *Matcher) uncrossSome(b *oBook) {
	market := func(s match.Side) []*oOrder { return b.rows[4+s-1] }
	first := func(s match.Side) *oOrder {
		if l := market(s); len(l) > 0 {
			return l[0]
		}
		if l := x.side(b.n, s); len(l) > 0 && reaches(s, l[0].price, b.auctionPrice) {
			return l[0]
		}
		return nil
	}
	doomed := func(o *oOrder) bool {
		s := x.doom(o)
		if s != nil {
			x.sweepOut(o, s)
			x.l2(o.book, o.where, o.side, o.price)
		}
		return s != nil
	}
	for b.auctionLeft > 0 && x.work < x.cfg.Work {
		x.work++
		buy, sell := first(match.Buy), first(match.Sell)
		if buy == nil || sell == nil {
			b.auctionLeft = 0
		} else if !doomed(buy) && !doomed(sell) {
			x.pair(b, buy, sell)
		}
	}
	for b.auctionLeft == 0 && x.work < x.cfg.Work {
		l := market(match.Buy)
		if len(l) == 0 {
			l = market(match.Sell)
		}
		if len(l) == 0 {
			next := b.auctionNext
			b.auctionPrice, b.auctionNext, b.crossed = 0, match.Closed, false
			x.become(b, next, 0, match.Requested)
			x.runStops(b)
			return
		}
		x.work++
		x.pull(l[0], match.Unfilled, 0)
	}
	b.busy = true
}

func (x *Matcher) pair(b *oBook, buy, sell *oOrder) {
	q := min(buy.leaves, sell.leaves, b.auctionLeft)
	b.auctionLeft -= q
	shown := map[*oOrder]int64{}
	for _, o := range []*oOrder{buy, sell} {
		shown[o] = o.shown
		o.leaves, o.cum = o.leaves-q, o.cum+q
		o.shown = min(o.shown, o.leaves)
	}
	x.fillRecord(buy, sell.id, b.auctionPrice, q, match.Auction)
	x.fillRecord(sell, buy.id, b.auctionPrice, q, match.Auction)
	b.traded(b.auctionPrice)
	for _, o := range []*oOrder{buy, sell} {
		switch {
		case o.leaves == 0:
			x.drop(o)
			x.l3(match.OrderRemoved, o)
		case o.shown != shown[o]:
			x.l3(match.OrderChanged, o)
		default:
			continue
		}
		x.l2(o.book, o.where, o.side, o.price)
	}
}
