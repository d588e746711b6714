package match

import (
	"math/big"
	"sort"
)

// oracle is the engine again, naively: orders in a map, queues by sorting all of them,
// prices and quantities as they come, no ticks, pages or slots. It shares with the engine
// the operations, the records and nothing else.
type oracle struct {
	cfg    Config
	books  map[uint16]*oBook
	orders map[uint64]*oOrder
	out    []Record
	now    int64
	prio   uint64
	work   int
	sweeps []*oSweep
	dirty  *oBook
}

type oBook struct {
	Instrument
	n              uint16
	bandLo, bandHi int64
	state, resume  State
	crossed        bool
	until          int64
	last, lo, hi   *int64
	auctionPrice   int64
	auctionLeft    int64
	auctionNext    State
	busy           bool
	best           [2]Record
}

type oOrder struct {
	id, prio                    uint64
	owner, group, party         uint32
	book                        uint16
	side                        Side
	where                       int // 0 limit, 1 stop, 2 market order of a call
	price, stop                 int64
	market, post, ioc           bool
	leaves, cum, shown, display int64
	smp                         SMP
}

type oSweep struct {
	op       Op
	prio     uint64
	count    int64
	book     uint16
	place    int
	price    *int64 // of the queue visited last
	inside   bool
	lastPrio uint64
}

func newOracle(c Config) *oracle {
	return &oracle{cfg: c, books: map[uint16]*oBook{}, orders: map[uint64]*oOrder{}}
}

func (x *oracle) define(n uint16, i Instrument) {
	x.books[n] = &oBook{Instrument: i, n: n, bandLo: i.Low, bandHi: i.High}
}

func (x *oracle) apply(op Op) []Record {
	x.out, x.work = nil, 0
	x.now = max(x.now, op.Time)
	switch op.Kind {
	case Enter:
		x.enter(op)
	case Cancel:
		x.cancel(op)
	case Replace:
		x.replace(op)
	case MassCancel:
		x.massCancel(op)
	case SetState:
		x.setState(op)
	case Uncross:
		x.uncross(op)
	case SetBand:
		x.setBand(op)
	case Continue:
		x.proceed()
	default:
		x.reject(op, BadField)
	}
	x.publish()
	return x.out
}

func (x *oracle) emit(r Record) { x.out = append(x.out, r) }

func (x *oracle) reject(op Op, why Reason) {
	x.emit(Record{Kind: Rejected, Order: op.ID, Side: op.Side, Price: op.Price, Qty: op.Qty, Owner: op.Owner, Book: op.Book, Reason: why})
}

func (x *oracle) find(n uint16) *oBook {
	b := x.books[n]
	if b != nil && b.state == Halted && b.until != 0 && b.until <= x.now {
		x.become(b, b.resume, 0, Expired)
	}
	return b
}

// before reports whether o is ahead of p in the order of sweeps within a book, and of
// matching within a queue.
func (o *oOrder) before(p *oOrder) bool {
	if a, b := o.placeNo(), p.placeNo(); a != b {
		return a < b
	}
	if o.where != 2 && o.key() != p.key() {
		// better first: high bids, low offers, low stop buys, high stop sells
		if (o.side == Buy) == (o.where == 0) {
			return o.key() > p.key()
		}
		return o.key() < p.key()
	}
	return o.prio < p.prio
}

func (o *oOrder) placeNo() int { return o.where*2 + int(o.side) - 1 }

func (o *oOrder) key() int64 {
	switch o.where {
	case 1:
		return o.stop
	case 2:
		return 0
	}
	return o.price
}

// list returns the orders of a book that f selects, in order.
func (x *oracle) list(n uint16, f func(*oOrder) bool) []*oOrder {
	var l []*oOrder
	for _, o := range x.orders {
		if o.book == n && f(o) {
			l = append(l, o)
		}
	}
	sort.Slice(l, func(i, j int) bool { return l[i].before(l[j]) })
	return l
}

func (x *oracle) side(n uint16, s Side) []*oOrder {
	return x.list(n, func(o *oOrder) bool { return o.where == 0 && o.side == s })
}

// hasRoom counts what the engine's slots and pages would be.
func (x *oracle) hasRoom(o *oOrder, another bool) bool {
	if another && len(x.orders) >= x.cfg.Orders {
		return false
	}
	type page struct {
		book  uint16
		place int
		n     int64
	}
	at := func(o *oOrder) page {
		b := x.books[o.book]
		n := (o.key() - b.Low) / b.Tick
		if (o.side == Buy) == (o.where == 0) {
			n = (b.High - o.key()) / b.Tick
		}
		return page{o.book, o.placeNo(), n / 64}
	}
	if o.where == 2 {
		return true
	}
	used := map[page]bool{}
	for _, p := range x.orders {
		if p.where != 2 {
			used[at(p)] = true
		}
	}
	return used[at(o)] || len(used) < x.cfg.Pages
}

func opposite(s Side) Side { return 3 - s }

// reaches reports whether a limit of side s reaches a price of the other side.
func reaches(s Side, limit, price int64) bool {
	if s == Buy {
		return limit >= price
	}
	return limit <= price
}

func (x *oracle) wouldCross(o *oOrder) bool {
	l := x.side(o.book, opposite(o.side))
	return len(l) > 0 && reaches(o.side, o.price, l[0].price)
}

func (x *oracle) stopReached(b *oBook, o *oOrder) bool {
	if b.last == nil {
		return false
	}
	if o.side == Buy {
		return *b.last >= o.stop
	}
	return *b.last <= o.stop
}

func (b *oBook) priceFault(p int64) Reason {
	if p < b.bandLo || p > b.bandHi {
		return OutsideBand
	}
	if (p-b.Low)%b.Tick != 0 {
		return OffTick
	}
	return None
}

// terms checks what new and replace have in common, and sets it.
func (b *oBook) terms(op Op, o *oOrder) Reason {
	if op.Qty <= 0 || op.Qty%b.Lot != 0 {
		return BadQty
	}
	if op.Qty/b.Lot > MaxLots {
		return QtyTooLarge
	}
	if op.Display < 0 || op.Display > op.Qty || op.Display%b.Lot != 0 {
		return BadDisplay
	}
	o.leaves, o.display = op.Qty, op.Display
	if op.Display == op.Qty {
		o.display = 0
	}
	o.price, o.stop = op.Price, op.Stop
	if o.market {
		if op.Price != 0 {
			return OutsideBand
		}
	} else {
		if why := b.priceFault(op.Price); why != None {
			return why
		}
		value := new(big.Int).Mul(big.NewInt(op.Price), big.NewInt(op.Qty))
		if value.Abs(value).BitLen() > 63 {
			return Overflow
		}
	}
	if o.where == 1 {
		return b.priceFault(op.Stop)
	}
	return None
}

func (x *oracle) admit(op Op, b *oBook, o *oOrder) Reason {
	if op.ID == 0 {
		return BadID
	}
	if x.orders[op.ID] != nil {
		return DuplicateID
	}
	if b == nil {
		return UnknownInstrument
	}
	if op.Side != Buy && op.Side != Sell || op.Type < Limit || op.Type > StopMarket || op.TIF > FOK || op.SMP > CancelBoth {
		return BadField
	}
	stop := op.Type == StopLimit || op.Type == StopMarket
	limited := op.Type == Limit || op.Type == StopLimit
	switch {
	case stop && (op.TIF == FOK || op.Post):
		return BadField
	case op.Post && !(op.Type == Limit && op.TIF == Day):
		return BadField
	case !stop && op.Stop != 0:
		return BadField
	case op.Display != 0 && !(limited && op.TIF == Day):
		return BadField
	}
	if b.state != Open && b.state != Call {
		return NotInState
	}
	if b.state == Call && (!stop && op.TIF != Day || op.Post) {
		return NotInState
	}
	*o = oOrder{id: op.ID, owner: op.Owner, group: op.Group, party: op.Party, book: op.Book, side: op.Side, post: op.Post, ioc: op.TIF == IOC, smp: op.SMP, market: !limited}
	if o.smp == 0 {
		o.smp = CancelNewest
	}
	if stop {
		o.where = 1
	} else if o.market && b.state == Call {
		o.where = 2
	}
	if why := b.terms(op, o); why != None {
		return why
	}
	mayRest := stop || b.state == Call || op.Type == Limit && op.TIF == Day
	if mayRest && !x.hasRoom(o, true) {
		return Full
	}
	if op.Post && x.wouldCross(o) {
		return WouldCross
	}
	if stop && x.stopReached(b, o) {
		return TriggerPassed
	}
	return None
}

func (x *oracle) enter(op Op) {
	b := x.find(op.Book)
	o := &oOrder{}
	if why := x.admit(op, b, o); why != None {
		x.reject(op, why)
		return
	}
	x.emit(Record{Kind: Accepted, Order: op.ID, Side: op.Side, Price: op.Price, Qty: op.Qty, Leaves: op.Qty, Owner: op.Owner, Book: op.Book})
	if o.where == 1 {
		x.rest(o)
		return
	}
	x.trade(b, o, op.TIF)
	x.runStops(b)
}
