// Package naive is the matching engine again, written to be obvious and not fast: orders in a map,
// queues as sorted lists, prices and quantities as they come, no ticks, pages or slots. It shares
// with grid-node/match the operations and the records and nothing else. The engine is tested
// against it, and `verify --replay` and the certificate of a drill judge the executions of a grid
// by it (client/verify/replay).
package naive

import (
	"maps"
	"math/big"
	"slices"
	"sort"

	"github.com/ordergrid/ordergrid/grid-node/match"
)

// Matcher is the books of a partition. It is not safe for use by several goroutines.
type Matcher struct {
	cfg    match.Config
	books  map[uint16]*oBook
	orders map[uint64]*oOrder
	pages  map[page]int // orders of each page that the engine would have
	out    []match.Record
	now    int64
	prio   uint64
	work   int
	sweeps []*oSweep
	dirty  *oBook
}

type oBook struct {
	match.Instrument
	n              uint16
	bandLo, bandHi int64
	state, resume  match.State
	crossed        bool
	until          int64
	last, lo, hi   *int64
	auctionPrice   int64
	auctionLeft    int64
	auctionNext    match.State
	busy           bool
	rows           [6][]*oOrder // by place, each in the order of matching
	best           [2]match.Record
}

type oOrder struct {
	id, prio                    uint64
	owner, group, party         uint32
	book                        uint16
	side                        match.Side
	where                       int // 0 limit, 1 stop, 2 market order of a call
	price, stop                 int64
	market, post, ioc           bool
	leaves, cum, shown, display int64
	smp                         match.SMP
}

type oSweep struct {
	op       match.Op
	prio     uint64
	count    int64
	book     uint16
	place    int
	price    *int64 // of the queue visited last
	inside   bool
	lastPrio uint64
}

// New makes a matcher without books.
func New(c match.Config) *Matcher {
	return &Matcher{cfg: c, books: map[uint16]*oBook{}, orders: map[uint64]*oOrder{}, pages: map[page]int{}}
}

// Define adds a book, closed. The instrument must be one that the engine takes.
func (x *Matcher) Define(n uint16, i match.Instrument) {
	x.books[n] = &oBook{Instrument: i, n: n, bandLo: i.Low, bandHi: i.High}
}

// Apply executes an operation and returns its records, those of the engine to the byte.
func (x *Matcher) Apply(op match.Op) []match.Record {
	x.out, x.work = nil, 0
	x.now = max(x.now, op.Time)
	switch op.Kind {
	case match.Enter:
		x.enter(op)
	case match.Cancel:
		x.cancel(op)
	case match.Replace:
		x.replace(op)
	case match.MassCancel:
		x.massCancel(op)
	case match.SetState:
		x.setState(op)
	case match.Uncross:
		x.uncross(op)
	case match.SetBand:
		x.setBand(op)
	case match.Continue:
		x.proceed()
	default:
		x.reject(op, match.BadField)
	}
	x.publish()
	return x.out
}

func (x *Matcher) emit(r match.Record) { x.out = append(x.out, r) }

func (x *Matcher) reject(op match.Op, why match.Reason) {
	x.emit(match.Record{Kind: match.Rejected, Order: op.ID, Side: op.Side, Price: op.Price, Qty: op.Qty, Owner: op.Owner, Book: op.Book, Reason: why})
}

func (x *Matcher) find(n uint16) *oBook {
	b := x.books[n]
	if b != nil && b.state == match.Halted && b.until != 0 && b.until <= x.now {
		x.become(b, b.resume, 0, match.Expired)
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
		if (o.side == match.Buy) == (o.where == 0) {
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
func (x *Matcher) list(n uint16, f func(*oOrder) bool) []*oOrder {
	var l []*oOrder
	if b := x.books[n]; b != nil {
		for _, row := range b.rows {
			for _, o := range row {
				if f(o) {
					l = append(l, o)
				}
			}
		}
	}
	return l
}

// side returns the limit orders of a side, the best first. It must not be changed.
func (x *Matcher) side(n uint16, s match.Side) []*oOrder { return x.books[n].rows[s-1] }

// add puts an order into its row, drop takes it out.
func (x *Matcher) add(o *oOrder) {
	row := &x.books[o.book].rows[o.placeNo()]
	at := sort.Search(len(*row), func(i int) bool { return !(*row)[i].before(o) })
	*row = slices.Insert(*row, at, o)
	x.orders[o.id] = o
	if o.where != 2 {
		x.pages[x.pageOf(o)]++
	}
}

func (x *Matcher) drop(o *oOrder) {
	row := &x.books[o.book].rows[o.placeNo()]
	at := sort.Search(len(*row), func(i int) bool { return !(*row)[i].before(o) })
	*row = slices.Delete(*row, at, at+1)
	delete(x.orders, o.id)
	if p := x.pageOf(o); o.where != 2 {
		if x.pages[p]--; x.pages[p] == 0 {
			delete(x.pages, p)
		}
	}
}

// Resting returns the ids of the orders in the books, sorted.
func (x *Matcher) Resting() []uint64 { return slices.Sorted(maps.Keys(x.orders)) }

// page is one of the engine's, of 64 prices.
type page struct {
	book  uint16
	place int
	n     int64
}

func (x *Matcher) pageOf(o *oOrder) page {
	b := x.books[o.book]
	n := (o.key() - b.Low) / b.Tick
	if (o.side == match.Buy) == (o.where == 0) {
		n = (b.High - o.key()) / b.Tick
	}
	return page{o.book, o.placeNo(), n / 64}
}

// hasRoom counts what the engine's slots and pages would be.
func (x *Matcher) hasRoom(o *oOrder, another bool) bool {
	if another && len(x.orders) >= x.cfg.Orders {
		return false
	}
	return o.where == 2 || x.pages[x.pageOf(o)] > 0 || len(x.pages) < x.cfg.Pages
}

func opposite(s match.Side) match.Side { return 3 - s }

// reaches reports whether a limit of side s reaches a price of the other side.
func reaches(s match.Side, limit, price int64) bool {
	if s == match.Buy {
		return limit >= price
	}
	return limit <= price
}

func (x *Matcher) wouldCross(o *oOrder) bool {
	l := x.side(o.book, opposite(o.side))
	return len(l) > 0 && reaches(o.side, o.price, l[0].price)
}

func (x *Matcher) stopReached(b *oBook, o *oOrder) bool {
	if b.last == nil {
		return false
	}
	if o.side == match.Buy {
		return *b.last >= o.stop
	}
	return *b.last <= o.stop
}

func (b *oBook) priceFault(p int64) match.Reason {
	if p < b.bandLo || p > b.bandHi {
		return match.OutsideBand
	}
	if (p-b.Low)%b.Tick != 0 {
		return match.OffTick
	}
	return match.None
}

// terms checks what new and replace have in common, and sets it.
func (b *oBook) terms(op match.Op, o *oOrder) match.Reason {
	if op.Qty <= 0 || op.Qty%b.Lot != 0 {
		return match.BadQty
	}
	if op.Qty/b.Lot > match.MaxLots {
		return match.QtyTooLarge
	}
	if op.Display < 0 || op.Display > op.Qty || op.Display%b.Lot != 0 {
		return match.BadDisplay
	}
	o.leaves, o.display = op.Qty, op.Display
	if op.Display == op.Qty {
		o.display = 0
	}
	o.price, o.stop = op.Price, op.Stop
	if o.market {
		if op.Price != 0 {
			return match.OutsideBand
		}
	} else {
		if why := b.priceFault(op.Price); why != match.None {
			return why
		}
		value := new(big.Int).Mul(big.NewInt(op.Price), big.NewInt(op.Qty))
		if value.Abs(value).BitLen() > 63 {
			return match.Overflow
		}
	}
	if o.where == 1 {
		return b.priceFault(op.Stop)
	}
	return match.None
}

func (x *Matcher) admit(op match.Op, b *oBook, o *oOrder) match.Reason {
	if op.ID == 0 {
		return match.BadID
	}
	if x.orders[op.ID] != nil {
		return match.DuplicateID
	}
	if b == nil {
		return match.UnknownInstrument
	}
	if op.Side != match.Buy && op.Side != match.Sell || op.Type < match.Limit || op.Type > match.StopMarket || op.TIF > match.FOK || op.SMP > match.CancelBoth {
		return match.BadField
	}
	stop := op.Type == match.StopLimit || op.Type == match.StopMarket
	limited := op.Type == match.Limit || op.Type == match.StopLimit
	switch {
	case stop && (op.TIF == match.FOK || op.Post):
		return match.BadField
	case op.Post && !(op.Type == match.Limit && op.TIF == match.Day):
		return match.BadField
	case !stop && op.Stop != 0:
		return match.BadField
	case op.Display != 0 && !(limited && op.TIF == match.Day):
		return match.BadField
	}
	if b.state != match.Open && b.state != match.Call {
		return match.NotInState
	}
	if b.state == match.Call && (!stop && op.TIF != match.Day || op.Post) {
		return match.NotInState
	}
	*o = oOrder{id: op.ID, owner: op.Owner, group: op.Group, party: op.Party, book: op.Book, side: op.Side, post: op.Post, ioc: op.TIF == match.IOC, smp: op.SMP, market: !limited}
	if o.smp == 0 {
		o.smp = match.CancelNewest
	}
	if stop {
		o.where = 1
	} else if o.market && b.state == match.Call {
		o.where = 2
	}
	if why := b.terms(op, o); why != match.None {
		return why
	}
	mayRest := stop || b.state == match.Call || op.Type == match.Limit && op.TIF == match.Day
	if mayRest && !x.hasRoom(o, true) {
		return match.Full
	}
	if op.Post && x.wouldCross(o) {
		return match.WouldCross
	}
	if stop && x.stopReached(b, o) {
		return match.TriggerPassed
	}
	return match.None
}

func (x *Matcher) enter(op match.Op) {
	b := x.find(op.Book)
	o := &oOrder{}
	if why := x.admit(op, b, o); why != match.None {
		x.reject(op, why)
		return
	}
	x.emit(match.Record{Kind: match.Accepted, Order: op.ID, Side: op.Side, Price: op.Price, Qty: op.Qty, Leaves: op.Qty, Owner: op.Owner, Book: op.Book})
	if o.where == 1 {
		x.rest(o)
		return
	}
	x.trade(b, o, op.TIF)
	x.runStops(b)
}
