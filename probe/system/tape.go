package system

import (
	"fmt"
	"maps"
	"slices"

	"github.com/ordergrid/ordergrid/client"
)

// sale is a limit order, as it was sent.
type sale struct {
	symbol     string
	side       uint8 // 1 buy, 2 sell
	price, qty int64
	by         int // which connection
	step       int // and when

	accepted    bool
	leaves, cum int64
}

// tape judges the executions of a partition by price and time, from what was sent and with nothing of the grid. It knows
// limit orders in books that are open.
type tape struct {
	sent    map[uint64]*sale // by entry
	symbols map[uint16]string
	books   map[string]*[3]map[int64][]uint64 // by side and price: entries, the oldest first

	entry, taker uint64           // of the order on its way through the other side
	half         client.Execution // its side of a trade
	fills        int              // trades
	traded       [3]int64         // of each side
	told         map[int]int      // executions of fills by connection, of the present step
	step         int
}

func newTape() *tape {
	return &tape{sent: map[uint64]*sale{}, symbols: map[uint16]string{}, books: map[string]*[3]map[int64][]uint64{}, told: map[int]int{}}
}

// read judges the next execution; "" if it is right.
func (t *tape) read(e client.Execution) string {
	if e.Entry != t.entry {
		if wrong := t.end(); wrong != "" {
			return wrong
		}
		t.entry = e.Entry
	}
	switch e.Kind {
	case client.ExecAccepted:
		return t.accept(e)
	case client.ExecFilled:
		if !e.Passive {
			if t.half.Entry != 0 {
				return "a trade with one side"
			}
			t.half = e
			return ""
		}
		return t.trade(t.half, e)
	case client.ExecRejected, client.ExecCancelled, client.ExecCancelRejected, client.ExecReplaced, client.ExecRestated, client.ExecTriggered:
		return fmt.Sprintf("%s: %s, which no order asked for", e.ID(), e.Kind)
	}
	return ""
}

func (t *tape) accept(e client.Execution) string {
	o := t.sent[e.Order]
	switch {
	case o == nil || e.Order != e.Entry:
		return fmt.Sprintf("%s: an order was accepted that was not sent", e.ID())
	case o.accepted:
		return fmt.Sprintf("%s: an order was accepted twice", e.ID())
	case o.side != e.Side || o.price != e.Price || o.qty != e.Qty:
		return fmt.Sprintf("%s: side %d, %d at %d was accepted, side %d, %d at %d was sent", e.ID(), e.Side, e.Qty, e.Price, o.side, o.qty, o.price)
	}
	if known, ok := t.symbols[e.Book]; ok && known != o.symbol {
		return fmt.Sprintf("%s: an order for %s is in the book of %s", e.ID(), o.symbol, known)
	}
	t.symbols[e.Book] = o.symbol
	if t.books[o.symbol] == nil {
		t.books[o.symbol] = &[3]map[int64][]uint64{1: {}, 2: {}}
	}
	o.accepted, o.leaves, t.taker = true, o.qty, e.Order
	return ""
}

// best is the first order of the other side that an order can trade with; 0: there is none.
func (t *tape) best(o *sale) (entry uint64) {
	side := t.books[o.symbol][3-o.side]
	if len(side) == 0 {
		return 0
	}
	prices := slices.Sorted(maps.Keys(side))
	price := prices[0]
	if o.side == 2 {
		price = prices[len(prices)-1]
	}
	if o.side == 1 && price > o.price || o.side == 2 && price < o.price {
		return 0
	}
	return side[price][0]
}

// trade judges both sides of a trade, of which passive is that of the order in the book.
func (t *tape) trade(active, passive client.Execution) string {
	t.half = client.Execution{}
	if t.taker == 0 || active.Entry != passive.Entry || active.Order != t.taker || active.Other != passive.Order || passive.Other != active.Order {
		return fmt.Sprintf("%s: a trade of others than the incoming order and one in the book", passive.ID())
	}
	a := t.sent[active.Order]
	first := t.best(a)
	if first != passive.Order {
		return fmt.Sprintf("%s: a trade with %d; the first by price, then time, is %d", passive.ID(), passive.Order, first)
	}
	p := t.sent[first]
	qty := min(a.leaves, p.leaves)
	if active.Qty != qty || passive.Qty != qty || active.Price != p.price || passive.Price != p.price {
		return fmt.Sprintf("%s: a trade of %d at %d and %d at %d, want %d at %d", passive.ID(), active.Qty, active.Price, passive.Qty, passive.Price, qty, p.price)
	}
	for o, e := range map[*sale]*client.Execution{a: &active, p: &passive} {
		o.leaves, o.cum = o.leaves-qty, o.cum+qty
		if e.Leaves != o.leaves || e.Cum != o.cum || e.Side != o.side {
			return fmt.Sprintf("%s: side %d, %d left, %d filled, want side %d, %d, %d", e.ID(), e.Side, e.Leaves, e.Cum, o.side, o.leaves, o.cum)
		}
		t.traded[e.Side] += e.Qty
		if o.step == t.step {
			t.told[o.by]++
		}
	}
	t.fills++
	if p.leaves == 0 {
		t.leave(p, first)
	}
	return ""
}

// leave takes the first order of its price out of the book.
func (t *tape) leave(p *sale, entry uint64) {
	side := t.books[p.symbol][p.side]
	if side[p.price] = side[p.price][1:]; len(side[p.price]) == 0 {
		delete(side, p.price)
	}
	delete(t.sent, entry)
}

// end judges what is left of the incoming order, and puts it into the book.
func (t *tape) end() string {
	o := t.sent[t.taker]
	if t.half.Entry != 0 {
		return fmt.Sprintf("%s: a trade with one side", t.half.ID())
	}
	if o == nil || t.taker == 0 {
		return ""
	}
	if o.leaves == 0 {
		delete(t.sent, t.taker)
	} else if with := t.best(o); with != 0 {
		return fmt.Sprintf("order %d rests, and could trade with %d", t.taker, with)
	} else {
		side := t.books[o.symbol][o.side]
		side[o.price] = append(side[o.price], t.taker)
	}
	t.taker = 0
	return ""
}

// lost counts the orders that were acknowledged and neither executed nor are in a book.
func (t *tape) lost() (n int) {
	for _, o := range t.sent {
		if !o.accepted {
			n++
		}
	}
	return n
}

// shows compares a book with what the tape has; "" if they are the same.
func (t *tape) shows(b client.Book) string {
	own := t.books[b.Symbol]
	for side, levels := range [3][]client.BookLevel{1: b.Bids, 2: b.Asks} {
		if side == 0 {
			continue
		}
		want := map[int64][]uint64{}
		if own != nil {
			want = own[side]
		}
		if len(levels) != len(want) {
			return fmt.Sprintf("%s has %d prices on side %d, want %d", b.Symbol, len(levels), side, len(want))
		}
		for _, l := range levels {
			sum := int64(0)
			for _, entry := range want[l.Price] {
				sum += t.sent[entry].leaves
			}
			if l.Qty != sum || int(l.Orders) != len(want[l.Price]) {
				return fmt.Sprintf("%s has %d of %d orders at %d, want %d of %d", b.Symbol, l.Qty, l.Orders, l.Price, sum, len(want[l.Price]))
			}
		}
	}
	return ""
}
