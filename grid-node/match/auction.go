package match

// auction is one that is being executed.
type auction struct {
	price uint32 // ticks
	left  uint64 // lots
	next  State
}

// uncross is Uncross: it determines the price and begins to execute.
func (e *Engine) uncross(op *Op, b *book) Reason {
	switch {
	case b.state != Call:
		return NotInState
	case op.State != Open && op.State != Closed:
		return BadField
	case len(e.sweeps) > 0:
		return Busy
	}
	ref, why := b.reference(op.Price)
	if why != None {
		return why
	}
	p := e.equilibrium(b, ref)
	r := e.record(AuctionPrice, op.Book)
	if r.Qty = int64(p.lots) * b.Lot; p.lots > 0 {
		r.Price = b.price(p.ticks)
		switch {
		case p.surplus > 0:
			r.Side, r.Leaves = Buy, p.surplus*b.Lot
		case p.surplus < 0:
			r.Side, r.Leaves = Sell, -p.surplus*b.Lot
		}
	}
	b.auction = auction{p.ticks, p.lots, op.State}
	b.state = Uncrossing
	e.uncrossSome(op.Book, b)
	return None
}

// reference returns the reference price: the one given, the last trade's, the instrument's.
func (b *book) reference(price int64) (uint32, Reason) {
	switch {
	case price == 0 && b.traded:
		return b.last, None
	case price == 0:
		price = b.Ref
	}
	return b.offset(price)
}

// equilibrium price of a call.
type equilibrium struct {
	ticks   uint32
	lots    uint64 // executable, 0: there is no price
	surplus int64  // lots of buys (positive) or sells at the price that cannot be filled
}

// equilibrium determines the price of an auction among the limits in the book:
//
//  1. the highest executable volume;
//  2. among those, the lowest surplus;
//  3. if the surplus is on the buy side for all, the highest of them; if on the sell side,
//     the lowest (market pressure);
//  4. otherwise the price closest to the reference price, between the highest with a
//     surplus of buys and the lowest with one of sells, or between the lowest and the
//     highest without surplus.
//
// If only market orders can trade, it is the reference price.
func (e *Engine) equilibrium(b *book, ref uint32) equilibrium {
	mktBuy, mktSell := b.market[0].total, b.market[1].total
	bids, asks := &b.ladders[placeBid], &b.ladders[placeAsk]
	from, to := uint32(0), b.span-1 // ticks
	if mktBuy == 0 && mktSell == 0 {
		if bids.best == none || asks.best == none || b.mirror(bids.best) < asks.best {
			return equilibrium{}
		}
		from, to = asks.best, b.mirror(bids.best)
	}
	var s search
	buys, sells := mktBuy, mktSell
	for k := bids.best; k != none && b.mirror(k) >= from; k = bids.after(k) {
		buys += e.level(b, placeBid, k).total
	}
	ask := asks.next(from)
	bid := b.lowestBid(from)
	for {
		at := min(ask, bid)
		if at == none || at > to {
			break
		}
		if ask == at {
			sells += e.level(b, placeAsk, at).total
			ask = asks.after(at)
		}
		s.try(at, buys, sells)
		if bid == at {
			buys -= e.level(b, placeBid, b.mirror(at)).total
			bid = b.lowestBid(at + 1)
		}
	}
	if s.lots == 0 {
		if lots := min(mktBuy, mktSell); lots > 0 {
			return equilibrium{ref, lots, int64(mktBuy) - int64(mktSell)}
		}
		return equilibrium{}
	}
	return s.price(ref)
}

// lowestBid returns the lowest price of a bid from at on, or none.
func (b *book) lowestBid(at uint32) uint32 {
	if at >= b.span {
		return none
	}
	key := b.ladders[placeBid].prev(b.mirror(at))
	if key == none {
		return none
	}
	return b.mirror(key)
}

// search keeps the best prices that were tried, from the lowest up.
type search struct {
	lots            uint64
	gap             int64  // without sign
	lo, hi          uint32 // of the best
	buyHi, sellLo   uint32 // the highest with a surplus of buys, the lowest with one of sells
	anyBuy, anySell bool
}

func (s *search) try(at uint32, buys, sells uint64) {
	lots, surplus := min(buys, sells), int64(buys)-int64(sells)
	gap := max(surplus, -surplus)
	if lots == 0 || lots < s.lots || lots == s.lots && gap > s.gap {
		return
	}
	if lots > s.lots || gap < s.gap {
		*s = search{lots: lots, gap: gap, lo: at}
	}
	s.hi = at
	switch {
	case surplus > 0:
		s.buyHi, s.anyBuy = at, true
	case surplus < 0 && !s.anySell:
		s.sellLo, s.anySell = at, true
	}
}

// price applies rules 3 and 4.
func (s *search) price(ref uint32) equilibrium {
	p := equilibrium{lots: s.lots}
	lo, hi := s.lo, s.hi
	if mutant(mutPressure) {
		lo, hi = hi, lo
	}
	switch {
	case s.anyBuy && !s.anySell:
		p.ticks, p.surplus = hi, s.gap
	case s.anySell && !s.anyBuy:
		p.ticks, p.surplus = lo, -s.gap
	case !s.anyBuy:
		p.ticks = min(max(ref, s.lo), s.hi)
	default:
		p.ticks = min(max(ref, s.buyHi), s.sellLo)
		switch p.ticks {
		case s.buyHi:
			p.surplus = s.gap
		case s.sellLo:
			p.surplus = -s.gap
		}
	}
	return p
}

// uncrossSome executes a part of an auction: market orders first, then by price, then by
// time, at one price. Self-match prevention does not apply. At the end market orders
// leave, and the book goes to its next state.
func (e *Engine) uncrossSome(n uint16, b *book) {
	a := &b.auction
	for a.left > 0 && e.work < e.cfg.Work {
		e.work++
		buy := e.first(b, placeBid, a.price)
		sell := e.first(b, placeAsk, a.price)
		if buy == 0 || sell == 0 {
			a.left = 0
			break
		}
		if e.doomed(buy) || e.doomed(sell) {
			continue
		}
		e.pair(b, buy, sell)
	}
	for a.left == 0 && e.work < e.cfg.Work {
		slot := b.market[0].head
		if slot == 0 {
			slot = b.market[1].head
		}
		if slot == 0 {
			next := a.next
			*a = auction{}
			b.crossed = false
			e.become(n, b, next, 0, Requested)
			e.runStops(n, b)
			return
		}
		e.work++
		e.pull(slot, Unfilled, 0)
	}
	e.setBusy(n, true)
}

// first returns the order of a side that is next in an auction, 0 for none.
func (e *Engine) first(b *book, place uint8, price uint32) uint32 {
	if slot := b.market[place].head; slot != 0 {
		return slot
	}
	if key := b.ladders[place].best; key != none && key <= b.ticks(place, price) {
		return e.level(b, place, key).head
	}
	return 0
}

// doomed cancels an order if a mass cancel includes it, and reports whether it did.
func (e *Engine) doomed(slot uint32) bool {
	o := &e.orders[slot]
	s := e.doom(o)
	if s == nil {
		return false
	}
	n, place, key := o.book, o.place, o.key
	e.sweepOut(slot, s)
	e.levelData(n, place, key)
	return true
}

// pair trades two orders of a book with each other at the price of the auction.
func (e *Engine) pair(b *book, buy, sell uint32) {
	x, y := &e.orders[buy], &e.orders[sell]
	lots := uint32(min(uint64(x.leaves), uint64(y.leaves), b.auction.left))
	b.auction.left -= uint64(lots)
	price := b.price(b.auction.price)
	shownX, shownY := x.shown, y.shown
	e.shrink(buy, x.leaves-lots, lots)
	e.shrink(sell, y.leaves-lots, lots)
	e.filled(b, x, y.id, price, lots, Auction)
	e.filled(b, y, x.id, price, lots, Auction)
	b.tradedAt(b.auction.price)
	e.auctioned(buy, shownX)
	e.auctioned(sell, shownY)
}

// auctioned does what follows from a fill in an auction.
func (e *Engine) auctioned(slot, shown uint32) {
	o := &e.orders[slot]
	n, place, key := o.book, o.place, o.key
	switch {
	case o.leaves == 0:
		e.unlink(slot)
		e.orderTraded(OrderRemoved, o, shown)
		e.release(slot)
	case o.shown != shown:
		e.orderTraded(OrderChanged, o, shown-o.shown)
	default:
		return
	}
	e.levelData(n, place, key)
}
