package main

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sort"
	"strings"
	"testing"

	"github.com/ordergrid/ordergrid/client"
	"github.com/ordergrid/ordergrid/grid-node/order"
)

// ladder is what is shown of a book: text, to be compared.
type ladder struct {
	State, Last string
	Bids, Asks  []string // price quantity orders
}

func (l *ladder) best() ladder {
	first := func(list []string) []string { return list[:min(1, len(list))] }
	return ladder{l.State, l.Last, first(l.Bids), first(l.Asks)}
}

func (l *ladder) top(n int) ladder {
	return ladder{l.State, l.Last, l.Bids[:min(n, len(l.Bids))], l.Asks[:min(n, len(l.Asks))]}
}

func (l ladder) String() string {
	return fmt.Sprintf("%s last %q bids %s asks %s", l.State, l.Last, strings.Join(l.Bids, ","), strings.Join(l.Asks, ","))
}

// naive is a book made of the log by someone who knows no engine: orders in a map, the ladder by sorting.
type naive struct {
	digits  uint8
	state   string
	last    string
	orders  map[uint64]*resting
	states  []stateAt
	display map[uint64]int64 // tag 111 of messages, by entry
}

type resting struct {
	side, entered         uint64
	price, leaves, hidden int64
}

// stateAt is the ladder from an entry on.
type stateAt struct {
	entry uint64
	shown ladder
}

// take applies an execution.
func (b *naive) take(e *client.Execution) {
	o := b.orders[e.Order]
	switch e.Kind {
	case client.ExecAccepted:
		b.orders[e.Order] = &resting{side: uint64(e.Side), entered: e.Entry, price: e.Price, leaves: e.Qty}
	case client.ExecFilled:
		o.leaves = e.Leaves
		b.last = client.Decimal(e.Price, b.digits)
		if o.leaves == 0 {
			delete(b.orders, e.Order)
		}
	case client.ExecCancelled:
		delete(b.orders, e.Order)
	case client.ExecReplaced:
		delete(b.orders, e.Order)
		b.orders[e.Other] = &resting{side: uint64(e.Side), entered: e.Entry, price: e.Price, leaves: e.Leaves}
	case client.ExecRestated:
		o.hidden = e.Leaves - e.Qty
	case 9: // of the book, see match.StateChanged: flags 3 are open, and the test knows halted beside
		b.state = map[bool]string{true: "open", false: "halted"}[e.Passive && e.Auction]
	}
}

// settle is the end of an entry: what its order leaves in the book shows its first part.
func (b *naive) settle(entry uint64) {
	if o := b.orders[entry]; o != nil && o.entered == entry && b.display[entry] > 0 {
		o.hidden = max(0, o.leaves-b.display[entry])
	}
	for _, o := range b.orders {
		o.hidden = min(o.hidden, o.leaves)
	}
	if now := b.shown(); len(b.states) == 0 || now.String() != b.states[len(b.states)-1].shown.String() {
		b.states = append(b.states, stateAt{entry, now})
	}
}

func (b *naive) shown() ladder {
	l := ladder{State: b.state, Last: b.last}
	for side, to := range map[uint64]*[]string{1: &l.Bids, 2: &l.Asks} {
		qty, count := map[int64]int64{}, map[int64]int{}
		prices := []int64{}
		for _, o := range b.orders {
			if o.side == side {
				if count[o.price] == 0 {
					prices = append(prices, o.price)
				}
				qty[o.price] += o.leaves - o.hidden
				count[o.price]++
			}
		}
		slices.Sort(prices)
		if side == 1 {
			slices.Reverse(prices)
		}
		for _, p := range prices {
			*to = append(*to, fmt.Sprintf("%s %d %d", client.Decimal(p, b.digits), qty[p], count[p]))
		}
	}
	return l
}

// at is the ladder after an entry.
func (b *naive) at(entry uint64) *ladder {
	i := sort.Search(len(b.states), func(i int) bool { return b.states[i].entry > entry })
	return &b.states[i-1].shown
}

// naiveBooks reads the log of the grid.
func naiveBooks(t *testing.T, ctx context.Context, c *client.Client, symbols ...string) map[string]*naive {
	t.Helper()
	all := map[string]*naive{}
	for _, symbol := range symbols {
		v, err := c.ReadBook(ctx, symbol, 1, "")
		if err != nil {
			t.Fatal(err)
		}
		b := &naive{digits: v.PriceDigits, state: "open", orders: map[uint64]*resting{}, display: map[uint64]int64{}}
		b.states = []stateAt{{0, b.shown()}}
		if _, err := c.ReadLog(ctx, v.Partition, "", 1, func(e client.LogEntry) error {
			if e.Kind == order.KindExecute {
				n := int64(0)
				_, _ = fmt.Sscan(string(order.TagValue(order.Message(e.Bytes), 111)), &n)
				b.display[e.Seq] = n
			}
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		entry := uint64(0)
		if _, err := c.ReadExecutions(ctx, v.Partition, "", 1, func(e client.Execution) error {
			if e.Book != v.Book {
				return nil
			}
			if e.Entry != entry {
				b.settle(entry)
				entry = e.Entry
			}
			b.take(&e)
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		b.settle(entry)
		all[symbol] = b
	}
	return all
}

// sight is a ladder as a client got it.
type sight struct {
	topic string
	at    uint64
	from  uint64 // what the client resumed from, for the first of a topic in a session
	shown ladder
}

// judge returns what is wrong with a ladder.
func judge(books map[string]*naive, s *sight) error {
	part := strings.Split(s.topic, ".")
	b := books[part[1]]
	for _, at := range []uint64{s.at, max(s.at, s.from)} {
		want := b.at(at).top(20)
		if part[2] == "L1" {
			want = want.best()
		}
		if want.String() != s.shown.String() {
			return fmt.Errorf("%s at %d (resumed from %d) is\n%s\nby the log it is after entry %d\n%s", s.topic, s.at, s.from, s.shown, at, want)
		}
	}
	return nil
}

// sightOf reads a message.
func sightOf(topic string, at uint64, data []byte) (sight, error) {
	var m struct {
		Symbol, State, Last string
		Bid, Ask            []any
		Bids, Asks          [][]any
		Until               string
	}
	d := json.NewDecoder(strings.NewReader(string(data)))
	d.DisallowUnknownFields() // nothing of an owner or account
	if err := d.Decode(&m); err != nil {
		return sight{}, fmt.Errorf("%s: %w", data, err)
	}
	if m.Bid != nil {
		m.Bids = [][]any{m.Bid}
	}
	if m.Ask != nil {
		m.Asks = [][]any{m.Ask}
	}
	s := sight{topic: topic, at: at, shown: ladder{State: m.State, Last: m.Last}}
	for _, side := range []struct {
		from [][]any
		to   *[]string
	}{{m.Bids, &s.shown.Bids}, {m.Asks, &s.shown.Asks}} {
		for _, l := range side.from {
			*side.to = append(*side.to, fmt.Sprintf("%v %v %v", l...))
		}
	}
	if !strings.HasPrefix(topic, "book."+m.Symbol+".") {
		return s, fmt.Errorf("topic %s has a message of %s", topic, m.Symbol)
	}
	return s, nil
}
