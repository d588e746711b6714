package match

// Level is what is shown of the orders of a price.
type Level struct {
	Price, Qty int64
	Count      uint32
}

// Phase is the state of a book.
type Phase struct {
	State    State
	Until    int64 // a halt ends by itself at this time; 0: never
	Resume   State // after a halt, if it ends by itself
	Crossed  bool  // orders were collected, so it opens by an auction alone
	Last     int64 // the price of the last trade,
	Traded   bool  // if there was one
	Low, Top int64 // the band that new prices have to be in
}

// Phase returns the state of a book.
func (e *Engine) Phase(n uint16) (p Phase, there bool) {
	if int(n) >= len(e.books) || e.books[n].span == 0 { // not lookup: to look changes nothing
		return p, false
	}
	b := &e.books[n]
	p = Phase{State: b.state, Until: b.until, Resume: b.resume, Crossed: b.crossed, Traded: b.traded, Low: b.bandLo, Top: b.bandHi}
	if b.traded {
		p.Last = b.price(b.last)
	}
	return p, true
}

// Depth appends the best levels of a side, at most so many, as market data has them: without
// what is hidden, stops, and market orders in a call. It visits each level once.
func (e *Engine) Depth(n uint16, side Side, most int, out []Level) []Level {
	if int(n) >= len(e.books) || e.books[n].span == 0 || side != Buy && side != Sell {
		return out
	}
	b := &e.books[n]
	place := uint8(side - Buy)
	for key := b.ladders[place].best; key != none && most > 0; key = b.ladders[place].after(key) {
		v := e.level(b, place, key)
		out = append(out, Level{Price: b.price(b.ticks(place, key)), Qty: int64(v.shown) * b.Lot, Count: v.count})
		most--
	}
	return out
}
