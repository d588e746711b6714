package limits

import "math/big"

// size judges quantity, price and value.
func (x *oracle) size(op Op, side Side, y *oSymbol, r Rules) (limit int64, charge *big.Int, why Reason) {
	if r.MaxVolume != 0 && op.Qty > r.MaxVolume {
		return 0, nil, MaxVolume
	}
	base, known := y.reference, y.reference != 0
	if y.traded {
		base, known = y.last, true
	}
	if op.Stop {
		base, known = op.Trigger, true
	}
	limit = op.Price
	if op.Market {
		if limit, known = x.worst(base, known, side, r); !known {
			return 0, nil, NoPrice
		}
	}
	charge = new(big.Int).Abs(number(limit))
	if b := new(big.Int).Abs(number(base)); known && (side == Sell || limit < 0) && b.Cmp(charge) > 0 {
		charge = b
	}
	reference, last, traded := y.reference, y.last, y.traded
	if op.Stop {
		reference, last, traded = op.Trigger, op.Trigger, true
	}
	switch {
	case r.CollarReference != 0 && reference == 0 && !op.Stop:
		return 0, nil, NoPrice
	case r.CollarReference != 0 && !near(limit, reference, r.CollarReference, r.CollarLeast), r.CollarLast != 0 && traded && !near(limit, last, r.CollarLast, r.CollarLeast):
		return 0, nil, PriceCollar
	}
	v := times(charge, op.Qty, y.multiplier)
	switch {
	case v.Cmp(maxInt64) > 0:
		return 0, nil, Overflow
	case r.MaxValue != 0 && v.Cmp(number(r.MaxValue)) > 0:
		return 0, nil, MaxValue
	}
	return limit, charge, None
}

// worst is the end of the narrower collar.
func (x *oracle) worst(base int64, known bool, side Side, r Rules) (int64, bool) {
	collar := r.CollarLast
	if r.CollarReference != 0 && (collar == 0 || r.CollarReference < collar) {
		collar = r.CollarReference
	}
	if !known || collar == 0 {
		return 0, false
	}
	width := times(new(big.Int).Abs(number(base)), int64(collar))
	width.Div(width, number(10_000))
	if width.Cmp(number(r.CollarLeast)) < 0 {
		width = number(r.CollarLeast)
	}
	if side == Sell {
		width.Neg(width)
	}
	end := width.Add(width, number(base))
	return end.Int64(), end.IsInt64()
}

func near(price, base int64, collar uint32, least int64) bool {
	away := new(big.Int).Sub(number(price), number(base))
	away.Abs(away)
	return away.Cmp(number(least)) <= 0 || times(away, 10_000).Cmp(times(new(big.Int).Abs(number(base)), int64(collar))) <= 0
}

// used adds up what orders and executions of a client use.
func (x *oracle) used(client uint32) *big.Int {
	sum := new(big.Int)
	for _, o := range x.orders {
		if client == 0 || x.parties[o.op.Party].Client == client {
			sum.Add(sum, times(o.charge, o.leaves, x.symbols[uint32(o.op.Symbol)].multiplier))
		}
	}
	if c := x.credit[client]; c != nil {
		sum.Add(sum, number(c.executed))
	}
	return sum
}

func (x *oracle) affords(client uint32, more *big.Int) bool {
	here := int64(0)
	if c := x.credit[client]; c != nil {
		here = c.here
	}
	used := x.used(client)
	return used.Cmp(number(here)) <= 0 && used.Add(used, more).Cmp(number(here)) <= 0
}

func (x *oracle) afford(client uint32, more *big.Int) Reason {
	switch {
	case !x.affords(client, more):
		return ClientCredit
	case !x.affords(0, more):
		return TotalCredit
	}
	return None
}

func (x *oracle) creditOf(client uint32) *oCredit {
	if x.credit[client] == nil {
		x.credit[client] = &oCredit{}
	}
	return x.credit[client]
}

func (x *oracle) fill(op Op) Reason {
	o := x.orders[op.ID]
	switch {
	case o == nil:
		return UnknownOrder
	case op.Qty <= 0, op.Qty > o.leaves, o.op.Side == Buy && op.Price > o.limit, o.op.Side == Sell && op.Price < o.limit:
		return Beyond
	}
	p, y := x.parties[o.op.Party], x.symbols[uint32(o.op.Symbol)]
	y.last, y.traded = op.Price, true
	price := new(big.Int).Abs(number(op.Price))
	if price.Cmp(o.charge) > 0 {
		price = o.charge
	}
	v := times(price, op.Qty, y.multiplier).Int64()
	x.creditOf(p.Client).executed += v
	x.creditOf(0).executed += v
	first := o.cum == 0
	o.leaves, o.cum = o.leaves-op.Qty, o.cum+op.Qty
	if o.leaves == 0 {
		delete(x.orders, op.ID)
	}
	if !first || p.Algorithm == 0 {
		return None
	}
	return x.repeat(p)
}

func (x *oracle) repeat(p Party) Reason {
	profile := x.clients[p.Client]
	r := x.profiles[profile]
	a := x.algorithms[p.Algorithm]
	if a == nil {
		a = &oAlgorithm{}
		x.algorithms[p.Algorithm] = a
	}
	if r.Repeats == 0 || a.halted != 0 {
		return None
	}
	if r.RepeatWindow != 0 && len(a.orders) > 0 && span(a.orders[0], x.now).Cmp(number(r.RepeatWindow)) >= 0 {
		a.orders = nil
	}
	a.orders = append(a.orders, x.now)
	if len(a.orders) < int(r.Repeats) {
		return None
	}
	a.halted = profile
	return Repeated
}
