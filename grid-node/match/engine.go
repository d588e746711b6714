package match

import (
	"fmt"
	"unsafe"
)

// Config bounds an engine. It is part of its function: replicas need the same.
type Config struct {
	Orders int    // that rest, stops included
	Pages  int    // of 64 prices that have orders, over all books; Orders of them are always enough
	Books  int    // instruments
	Work   int    // counterparties that one order may visit, orders that one Continue may visit
	Data   Data   // market data to write
	Tables int    // that the caller has in the engine's memory, each of the size of that of ids, see Table
	Seed   uint64 // of the hash of order ids, which clients should not be able to predict
}

// Data selects market data.
type Data uint8

// Levels of market data: the best of each side, aggregated prices, single orders.
const (
	L1 Data = 1 << iota
	L2
	L3
)

// order is in the slab, and in one queue.
type order struct {
	id, prio     uint64 // prio rises along a queue
	key          uint32
	leaves, cum  uint32 // lots
	shown        uint32 // of leaves
	display      uint32 // what an iceberg shows, 0 for others
	owner, group uint32
	prev, next   uint32
	limit        uint32 // ticks, of a stop limit order
	party        uint32 // who answers for it, 0 if that is not known
	book         uint16
	place        uint8
	flags        uint8
}

// Flags of an order: the two low bits are its SMP.
const (
	flagSMP  = 3
	flagPost = 4
	flagIOC  = 8  // of a stop, once triggered
	flagMkt  = 16 // a stop without limit, or a market order in a call
)

// set copies p, but for its place in a queue, field by field as they were written.
func (o *order) set(p *order) {
	o.id, o.prio = p.id, p.prio
	o.key = p.key
	o.leaves = p.leaves
	o.cum = p.cum
	o.shown = p.shown
	o.display = p.display
	o.owner = p.owner
	o.group = p.group
	o.limit = p.limit
	o.party = p.party
	o.book = p.book
	o.place = p.place
	o.flags = p.flags
}

func (o *order) side() Side { return Buy + Side(o.place&1) }

// Engine matches. It is not safe for concurrent use.
type Engine struct {
	orders  []order // by slot; 0 is none: what links write there is never read
	pages   []page  // 0 is none
	books   []book
	ids     ids
	busy    []uint64 // books with pending work
	sweeps  []sweep
	out     []Record
	memory  []byte
	tables  [][]byte // of the caller
	cfg     Config
	pos     Position
	now     int64
	prio    uint64
	sum     uint64 // digest of the orders
	resting int
	unnamed int // of resting, without a party
	paged   int
	work    int
	nBusy   int
	free    uint32 // first free slot below top
	top     uint32 // slots ever used
	freePg  uint32
	topPg   uint32
	entered uint32 // slot of the order that the operation entered, 0 if it does not rest
	dirty   int    // book whose best may have changed, -1 for none
	tap     *Tap
}

// New returns an engine without books. All memory but that of books is allocated here.
func New(c Config) (*Engine, error) {
	const most = 1 << 30
	if c.Orders < 1 || c.Orders > most || c.Pages < 1 || c.Pages > most || c.Books < 1 || c.Books > All || c.Work < 1 || c.Work > 1<<20 {
		return nil, fmt.Errorf("engine: orders %d, pages %d, books %d, work %d, allowed: 1..%d, 1..%d, 1..%d, 1..%d",
			c.Orders, c.Pages, c.Books, c.Work, most, most, All, 1<<20)
	}
	e := &Engine{
		cfg:    c,
		books:  make([]book, c.Books),
		busy:   make([]uint64, (c.Books+63)/64),
		sweeps: make([]sweep, 0, maxSweeps+maxKills+maxLapses),
		dirty:  -1,
	}
	mask := idPlaces(c.Orders) - 1
	sizes := []int64{int64(mask+1) * 8, int64(c.Orders+1) * int64(unsafe.Sizeof(order{})), int64(c.Pages+1) * int64(unsafe.Sizeof(page{}))}
	for range c.Tables {
		sizes = append([]int64{sizes[0]}, sizes...)
	}
	parts, memory, err := allocate(sizes...)
	if err != nil {
		return nil, fmt.Errorf("engine: %d orders, %d pages: %w", c.Orders, c.Pages, err)
	}
	e.memory, e.tables = memory, parts[:c.Tables]
	parts = parts[c.Tables:]
	e.ids = ids{slab[uint64](parts[0]), mask, c.Seed}
	e.orders = slab[order](parts[1])
	e.pages = slab[page](parts[2])
	return e, nil
}

// Table returns table i of the caller, with twice as many places as there are orders, at least,
// and a power of two. It is gone with the engine.
func (e *Engine) Table(i int) []uint64 { return slab[uint64](e.tables[i]) }

// Close returns the memory. The engine must not be used after it.
func (e *Engine) Close() {
	unmap(e.memory)
	*e = Engine{}
}

// Bytes returns what New allocates. Beside it a book takes BookBytes.
func (c Config) Bytes() int64 {
	return int64(c.Orders+1)*int64(unsafe.Sizeof(order{})) + int64(1+c.Tables)*int64(idPlaces(c.Orders))*8 +
		int64(c.Pages+1)*int64(unsafe.Sizeof(page{})) + int64(c.Books)*int64(unsafe.Sizeof(book{}))
}

// MaxRecords is how many records an operation can write.
func (e *Engine) MaxRecords() int { return 16*e.cfg.Work + 64 }

// Position returns how much has been written.
func (e *Engine) Position() Position { return e.pos }

// Resting returns the number of orders in the books, stops included.
func (e *Engine) Resting() int { return e.resting }

// Unnamed returns how many of them have no party: a kill of some parties does not include them.
func (e *Engine) Unnamed() int { return e.unnamed }

// Now returns the engine's time: the highest of an operation so far.
func (e *Engine) Now() int64 { return e.now }

// Pending reports whether Continue would do something.
func (e *Engine) Pending() bool { return e.nBusy > 0 || len(e.sweeps) > 0 }

// Apply applies an operation and appends what follows from it to out, at most MaxRecords.
// It allocates nothing if out has room for them.
func (e *Engine) Apply(op *Op, out []Record) []Record {
	start := len(out)
	e.out, e.work, e.entered = out, 0, 0
	e.now = clock(max(e.now, op.Time))
	switch op.Kind {
	case Enter:
		e.enter(op)
	case Cancel:
		e.cancel(op)
	case Replace:
		e.replace(op)
	case MassCancel:
		e.massCancel(op)
	case SetState, Uncross, SetBand:
		e.session(op)
	case Continue:
		e.proceed()
	default:
		e.reject(op, BadField)
	}
	e.publish()
	out, e.out = e.out, nil
	for i := start; i < len(out); i++ {
		e.pos.Add(&out[i])
	}
	return out
}

// record appends a record, all zero but for its kind and book.
func (e *Engine) record(k Kind, book uint16) *Record {
	n := len(e.out)
	if n == cap(e.out) {
		e.out = append(e.out, Record{})
	}
	e.out = e.out[:n+1]
	r := &e.out[n]
	*r = Record{} // in place: a copy would read what was just written, in other widths
	r.Kind, r.Book = k, book
	return r
}

// Entered reports whether the order that the last operation entered is in a book. One that was
// replaced is not meant.
func (e *Engine) Entered() bool { return e.entered != 0 }

// Order is what a book holds of an order.
type Order struct {
	Price, Stop, Leaves, Cum int64
	Owner, Group             uint32
	Book                     uint16
	Side                     Side
}

// Find returns an order in the books.
func (e *Engine) Find(id uint64) (Order, bool) {
	slot := e.ids.find(e.orders, id)
	if slot == 0 {
		return Order{}, false
	}
	o := &e.orders[slot]
	b := &e.books[o.book]
	f := Order{Leaves: int64(o.leaves) * b.Lot, Cum: int64(o.cum) * b.Lot, Owner: o.owner, Group: o.group, Book: o.book, Side: o.side()}
	switch {
	case o.place >= placeMarket:
	case o.place >= placeStopBuy:
		f.Stop = b.price(b.ticks(o.place, o.key))
		if o.flags&flagMkt == 0 {
			f.Price = b.price(o.limit)
		}
	default:
		f.Price = b.price(b.ticks(o.place, o.key))
	}
	return f, true
}
