package limits

import (
	"math"
	"math/bits"
)

// price sets the limit of an order, and what a unit of it is charged, and checks the
// collars. A stop is compared with its trigger.
func (v *verdict) price(op *Op, side Side) Reason {
	r, y := v.r, v.y
	base, known := y.reference, y.reference != 0
	if y.traded {
		base, known = y.last, true
	}
	if op.Stop {
		base, known = op.Trigger, true
	}
	v.limit = op.Price
	if op.Market && op.Free && r.CollarReference == 0 && r.CollarLast == 0 && r.MaxValue == 0 {
		v.limit = math.MaxInt64
		if side == Sell {
			v.limit = math.MinInt64
		}
		return None
	}
	if op.Market {
		var ok bool
		if v.limit, ok = r.end(base, side); !ok || !known {
			return NoPrice
		}
	}
	v.charge = magnitude(v.limit)
	if known && (side == Sell || v.limit < 0) {
		v.charge = max(v.charge, magnitude(base))
	}
	reference, last := y.reference, y.last
	if op.Stop {
		reference, last = base, base
	}
	switch {
	case r.CollarReference != 0 && reference == 0 && !op.Stop:
		return NoPrice
	case r.CollarReference != 0 && !r.within(v.limit, reference, r.CollarReference),
		r.CollarLast != 0 && (y.traded || op.Stop) && !r.within(v.limit, last, r.CollarLast):
		return PriceCollar
	}
	return None
}

// within reports whether a price is near enough to base.
func (r *profile) within(price, base int64, collar uint32) bool {
	away := distance(price, base)
	if away <= uint64(r.CollarLeast) {
		return true
	}
	ah, al := bits.Mul64(away, maxCollar)
	bh, bl := bits.Mul64(magnitude(base), uint64(collar))
	return ah < bh || ah == bh && al <= bl
}

// end returns the worst price of the narrower collar around base, and whether there is one.
func (r *profile) end(base int64, side Side) (int64, bool) {
	collar := r.CollarLast
	if collar == 0 || r.CollarReference != 0 && r.CollarReference < collar {
		collar = r.CollarReference
	}
	if collar == 0 {
		return 0, false
	}
	hi, lo := bits.Mul64(magnitude(base), uint64(collar))
	width, _ := bits.Div64(hi, lo, maxCollar)
	width = max(width, uint64(r.CollarLeast))
	if width >= 1<<63 {
		return 0, false
	}
	end := base + int64(width)
	if side == Sell {
		end = base - int64(width)
	}
	return end, (end < base) == (side == Sell) || width == 0
}

// Cap returns the limit that the book has to give an order that Check passes: its own, or
// that of a market order.
func (l *Limits) Cap(op *Op) int64 {
	v := verdict{}
	switch {
	case op.Kind == Enter && op.Party < uint32(len(l.parties)) && int(op.Symbol) < len(l.symbols):
		v.r, v.y = &l.profiles[l.clients[l.parties[op.Party].Client].profile], &l.symbols[op.Symbol]
		v.price(op, op.Side)
	case op.Kind == Replace:
		if slot := l.find(op.Orig); slot != 0 {
			o := &l.orders[slot]
			v.r, v.y = &l.profiles[l.clients[l.parties[o.party].Client].profile], &l.symbols[o.symbol]
			v.price(op, o.side)
		}
	}
	return v.limit
}

func magnitude(p int64) uint64 {
	if p < 0 {
		return -uint64(p)
	}
	return uint64(p)
}

func distance(a, b int64) uint64 {
	if a < b {
		a, b = b, a
	}
	return uint64(a) - uint64(b)
}
