package match

import (
	"math/bits"
	"math/rand/v2"
)

// floor is the least that matching in order of price and time can be: an array of prices
// per side of a book, queues of linked array elements, ids in a hash table. It checks
// nothing, knows no instrument, owner or state, and writes only fills.
type floor struct {
	orders []floorOrder
	free   []uint32
	table  []uint64 // slot<<32 | low half of the id
	books  []floorBook
	fills  []floorFill
	memory []byte
}

type floorOrder struct {
	id         uint64
	prev, next uint32
	qty, price uint32
	book, side uint32
}

type floorLevel struct{ head, tail uint32 }

type floorBook struct {
	levels [2][]floorLevel
	best   [2]int // highest bid or -1, lowest offer or the number of prices
}

type floorFill struct {
	taker, maker uint64
	price, qty   uint32
}

// newFloor returns a floor whose memory has been touched, from the Go heap, or from where
// the engine has its own.
func newFloor(books, prices, orders int, huge bool) *floor {
	f := &floor{books: make([]floorBook, books)}
	places := 1 << bits.Len(uint(2*orders-1))
	if huge {
		parts, memory, _ := allocate(int64(orders+1)*32, int64(places)*8)
		f.memory, f.orders, f.table = memory, slab[floorOrder](parts[0]), slab[uint64](parts[1])
	} else {
		f.orders, f.table = make([]floorOrder, orders+1), make([]uint64, places)
		for i := range f.orders {
			f.orders[i].qty = 0
		}
		for i := range f.table {
			f.table[i] = 0
		}
	}
	for i := orders; i > 0; i-- {
		f.free = append(f.free, uint32(i))
	}
	for i := range f.books {
		f.books[i] = floorBook{[2][]floorLevel{make([]floorLevel, prices), make([]floorLevel, prices)}, [2]int{-1, prices}}
	}
	return f
}

func (f *floor) home(id uint32) uint32 { return (id * 0x9e3779b1) >> 7 & uint32(len(f.table)-1) }

func (f *floor) enter(id uint64, book, side, price, qty uint32, rests bool) {
	b := &f.books[book]
	for qty > 0 {
		p := b.best[1-side]
		if side == 0 && (p > int(price) || p == len(b.levels[1])) || side == 1 && p < int(price) {
			break
		}
		lev := &b.levels[1-side][p]
		slot := lev.head
		m := &f.orders[slot]
		q := min(qty, m.qty)
		qty -= q
		m.qty -= q
		f.fills = append(f.fills, floorFill{id, m.id, uint32(p), q})
		if m.qty == 0 {
			f.remove(slot)
		}
	}
	if qty == 0 || !rests {
		return
	}
	slot := f.free[len(f.free)-1]
	f.free = f.free[:len(f.free)-1]
	lev := &b.levels[side][price]
	f.orders[slot] = floorOrder{id, lev.tail, 0, qty, price, book, side}
	if lev.tail != 0 {
		f.orders[lev.tail].next = slot
	} else {
		lev.head = slot
	}
	lev.tail = slot
	if side == 0 {
		b.best[0] = max(b.best[0], int(price))
	} else {
		b.best[1] = min(b.best[1], int(price))
	}
	i := f.home(uint32(id))
	for f.table[i] != 0 {
		i = (i + 1) & uint32(len(f.table)-1)
	}
	f.table[i] = uint64(slot)<<32 | uint64(uint32(id))
}

func (f *floor) cancel(id uint64) bool {
	for i := f.home(uint32(id)); f.table[i] != 0; i = (i + 1) & uint32(len(f.table)-1) {
		if uint32(f.table[i]) == uint32(id) {
			f.remove(uint32(f.table[i] >> 32))
			return true
		}
	}
	return false
}

func (f *floor) remove(slot uint32) {
	o := &f.orders[slot]
	b := &f.books[o.book]
	lev := &b.levels[o.side][o.price]
	if o.prev != 0 {
		f.orders[o.prev].next = o.next
	} else {
		lev.head = o.next
	}
	if o.next != 0 {
		f.orders[o.next].prev = o.prev
	} else {
		lev.tail = o.prev
	}
	if lev.head == 0 && b.best[o.side] == int(o.price) {
		step := 1 - 2*(1-int(o.side)) // bids down, offers up
		p := int(o.price) + step
		for p >= 0 && p < len(b.levels[o.side]) && b.levels[o.side][p].head == 0 {
			p += step
		}
		b.best[o.side] = p
	}
	f.drop(uint32(o.id))
	f.free = append(f.free, slot)
}

func (f *floor) drop(id uint32) {
	mask := uint32(len(f.table) - 1)
	i := f.home(id)
	for uint32(f.table[i]) != id {
		i = (i + 1) & mask
	}
	for j := (i + 1) & mask; f.table[j] != 0; j = (j + 1) & mask {
		if h := f.home(uint32(f.table[j])); (j-h)&mask >= (j-i)&mask {
			f.table[i], i = f.table[j], j
		}
	}
	f.table[i] = 0
}

// mixedFlow returns operations on 500 books: 60 % limit orders that rest, 35 % cancels of
// a random order, 5 % orders that trade.
const (
	mixedBooks  = 500
	mixedPrices = 2048
)

func mixedFlow(n int) []Op {
	random := rand.New(rand.NewPCG(1, 60355))
	flow := make([]Op, 0, n)
	var live []uint64
	for i := range n {
		op := Op{Kind: Enter, ID: uint64(i + 1), Book: uint16(random.IntN(mixedBooks)), Side: Buy + Side(random.IntN(2)), Type: Limit, Qty: int64(1 + random.IntN(100)), Owner: uint32(1 + random.IntN(1000))}
		away := int64(1 + random.IntN(100))
		switch p := random.IntN(100); {
		case p < 35 && len(live) > 0:
			k := random.IntN(len(live))
			op = Op{Kind: Cancel, Orig: live[k]}
			live[k] = live[len(live)-1]
			live = live[:len(live)-1]
		case p < 95:
			live = append(live, op.ID)
		default:
			away, op.TIF = -20, IOC
		}
		if op.Side == Buy {
			op.Price = mixedPrices/2 - away
		} else {
			op.Price = mixedPrices/2 + away
		}
		flow = append(flow, op)
	}
	return flow
}

func (f *floor) apply(op *Op) {
	if op.Kind == Cancel {
		f.cancel(op.Orig)
		return
	}
	f.enter(op.ID, uint32(op.Book), uint32(op.Side-Buy), uint32(op.Price), uint32(op.Qty), op.TIF == Day)
}
