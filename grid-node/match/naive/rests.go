package naive

import "github.com/ordergrid/ordergrid/grid-node/match"

// Rests reports whether an order is in a book.
func (x *Matcher) Rests(id uint64) bool { return x.orders[id] != nil }

// Shown returns what a book shows, order by order: bids before asks, the best first, without a priority.
func (x *Matcher) Shown(n uint16) (list []match.Shown) {
	for _, s := range []match.Side{match.Buy, match.Sell} {
		for _, o := range x.side(n, s) {
			list = append(list, match.Shown{Order: o.id, Price: o.price, Qty: o.shown, Side: s})
		}
	}
	return list
}
