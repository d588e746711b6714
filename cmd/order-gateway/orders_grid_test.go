package main

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ordergrid/ordergrid/client"
	"github.com/ordergrid/ordergrid/e2e/subscriber"
	"github.com/ordergrid/ordergrid/e2e/testgrid"
	"github.com/ordergrid/ordergrid/grid-node/shown"
)

// keeper is a client that keeps a book order by order, and comes back with the position it has.
type keeper struct {
	name, symbol, policy string
	gateways             []*atomic.Pointer[process]
	pause                time.Duration // after each message: a slow one
	list                 []kept        // in the order they came, which is that of priority at each price
	whole                bool
	seq, index           uint64
	from                 uint64 // what the session resumed from, until its book is whole
	seen                 []stateAt
	sessions, gaps       int
	kinds                map[string]int
	lineage              string
	partition            int
	fault                error
}

type kept struct {
	id, price, qty string
	side           int
}

func (k *keeper) run(ctx context.Context, done func(*keeper) bool) {
	ended := func() bool { return k.fault != nil || done(k) }
	err := subscriber.Again(ctx, ended, func(n int) error {
		more := ""
		if k.lineage != "" {
			more = fmt.Sprintf(`,"resume":"%s.p%d:%d"`, k.lineage, k.partition, k.seq)
		}
		k.list, k.whole, k.from, k.index = nil, false, k.seq, 0
		k.sessions++
		first := true
		command := fmt.Sprintf(`{"op":"subscribe","id":1,"topics":"book.%s.L3","policy":%q%s}`, k.symbol, k.policy, more)
		return k.gateways[n%len(k.gateways)].Load().client().Talk(ctx, []string{command}, ended, func(b []byte) error {
			err := k.take(b, &first)
			time.Sleep(k.pause)
			return err
		})
	})
	if err != nil && k.fault == nil {
		k.fault = fmt.Errorf("it is at %d.%d, whole: %v: %w", k.seq, k.index, k.whole, err)
	}
}

// take takes a message of the gateway.
func (k *keeper) take(b []byte, first *bool) error {
	var m struct {
		Op, Position, Code, At string
		Partition              int
		Data                   json.RawMessage
	}
	if k.fault = json.Unmarshal(b, &m); k.fault != nil {
		return k.fault
	}
	switch {
	case m.Op == "message":
		seq, index := uint64(0), uint64(0)
		_, _ = fmt.Sscanf(m.At, "%d.%d", &seq, &index)
		if !*first && (seq < k.seq || seq == k.seq && index < k.index) {
			k.fault = fmt.Errorf("%s is behind %d.%d", b, k.seq, k.index)
			return k.fault
		}
		if k.whole && seq > k.seq {
			k.note()
		}
		*first, k.seq, k.index, k.partition = false, seq, index, m.Partition
		k.fault = k.apply(m.Data)
	case m.Op == "gap":
		k.list, k.whole = nil, false
		k.gaps++
	case m.Op == "subscribed":
		k.lineage, _, _ = strings.Cut(m.Position, ".")
	case m.Op == "error" && m.Code == "ahead":
		return fmt.Errorf("the gateway is behind")
	case m.Op != "welcome":
		k.fault = fmt.Errorf("unexpected: %s", b)
	}
	return k.fault
}

// apply applies a page or a change.
func (k *keeper) apply(data []byte) error {
	var m struct {
		Symbol, Kind, Order, Side, Price, Qty, Traded string
		First, Last                                   bool
		Bids, Asks                                    [][3]string
	}
	d := json.NewDecoder(strings.NewReader(string(data)))
	d.DisallowUnknownFields() // nothing of an owner, account or ClOrdID
	if err := d.Decode(&m); err != nil {
		return fmt.Errorf("%s: %w", data, err)
	}
	if m.Kind == "" {
		if m.First != (len(k.list) == 0 && !k.whole) && m.First || k.whole {
			return fmt.Errorf("a page behind the last, or a first one behind others: %s", data)
		}
		for side, list := range [][][3]string{m.Bids, m.Asks} {
			for _, o := range list {
				if k.find(o[0]) >= 0 {
					return fmt.Errorf("order %s twice: %s", o[0], data)
				}
				k.list = append(k.list, kept{o[0], o[1], o[2], 1 + side})
			}
		}
		k.whole = m.Last
		return nil
	}
	k.kinds[m.Kind]++
	at := k.find(m.Order)
	side := map[string]int{"buy": 1, "sell": 2}[m.Side]
	switch {
	case (at >= 0) != (m.Kind != "added") || side == 0 || at >= 0 && (k.list[at].price != m.Price || k.list[at].side != side):
		return fmt.Errorf("%s; the order is at %d of the list", data, at)
	case m.Kind == "added":
		k.list = append(k.list, kept{m.Order, m.Price, m.Qty, side})
	case m.Kind == "removed", m.Kind == "traded" && m.Qty == "0":
		k.list = slices.Delete(k.list, at, at+1)
	default:
		k.list[at].qty = m.Qty
	}
	return nil
}

func (k *keeper) find(id string) int {
	return slices.IndexFunc(k.list, func(o kept) bool { return o.id == id })
}

// note keeps what the book is after an entry, by price.
func (k *keeper) note() {
	b := naive{orders: map[uint64]*resting{}}
	for i, o := range k.list {
		var price float64
		var qty int64
		_, _ = fmt.Sscan(o.price, &price)
		_, _ = fmt.Sscan(o.qty, &qty)
		b.orders[uint64(i)] = &resting{side: uint64(o.side), price: int64(price*100 + 0.5*map[bool]float64{true: 1, false: -1}[price > 0]), leaves: qty}
	}
	b.digits = 2
	k.seen = append(k.seen, stateAt{max(k.seq, k.from), b.shown()})
	k.from = 0
}

// ordered returns what is kept, the best price first, by priority.
func (k *keeper) ordered() string {
	var all []string
	for side := 1; side <= 2; side++ {
		list := []kept{}
		for _, o := range k.list {
			if o.side == side {
				list = append(list, o)
			}
		}
		price := func(o kept) (v float64) { _, _ = fmt.Sscan(o.price, &v); return v }
		slices.SortStableFunc(list, func(a, b kept) int {
			if d := price(a) - price(b); d < 0 == (side == 2) && d != 0 {
				return -1
			} else if d != 0 {
				return 1
			}
			return 0
		})
		for _, o := range list {
			all = append(all, fmt.Sprint(o))
		}
	}
	return strings.Join(all, "\n")
}

// readOrdered reads the same of the grid.
func readOrdered(t *testing.T, ctx context.Context, c *client.Client, symbol string) string {
	t.Helper()
	var b client.OrderBook
	part := ""
	for more := true; more || !b.Complete; {
		r, err := c.ReadOrders(ctx, symbol, &b, "")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := r.Apply(&b, nil); err != nil {
			t.Fatal(err)
		}
		more, part = r.More, r.Partition.String()
	}
	var all []string
	for _, side := range []uint8{shown.Buy, shown.Sell} {
		for _, o := range b.Orders(side) {
			all = append(all, fmt.Sprint(kept{fmt.Sprintf("%s/%d", part, o.ID), client.Decimal(o.Price, b.PriceDigits), client.Decimal(o.Qty, b.QtyDigits), int(side)}))
		}
	}
	return strings.Join(all, "\n")
}

// TestGridOrdersOverDeaths: primaries, other nodes and gateways are killed while orders of all sorts come and a book is
// halted and opened. Each client, wherever it resumes and however slow it is, has after each entry the book that a naive
// reader of the log has, gets no change of an order that it does not have, and in the end has the book of the grid, order by
// order.
func TestGridOrdersOverDeaths(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 4*time.Minute)
	defer cancel()
	g := testgrid.Matching(t)
	c := clientOf(t, g)
	clients := []string{"--websocket-clients", booksFile(t, "book.>")}
	wanted := append([]string{"--websocket-follow", "wanted"}, clients...)
	var a, b atomic.Pointer[process]
	a.Store(startGateway(t, g, "127.0.0.1:0", clients...))
	b.Store(startGateway(t, g, "127.0.0.1:0", wanted...))
	load, stop := make(chan int), atomic.Bool{}
	go func() {
		d := &trader{c: c, open: map[string][]string{}, r: rand.New(rand.NewPCG(59, 98))}
		submit := func(msg []byte) {
			if _, err := c.Submit(ctx, msg); err != nil {
				t.Errorf("order %d: %v", d.n, err)
				stop.Store(true)
			}
		}
		for !stop.Load() && ctx.Err() == nil {
			_, msg := d.next()
			if submit(msg); d.n%10 == 0 {
				for _, msg := range lessened(d.n) {
					submit(msg)
				}
			}
		}
		load <- d.n
	}()
	var last atomic.Pointer[map[string]string]
	done := func(k *keeper) bool {
		all := last.Load()
		return all != nil && k.whole && k.ordered() == (*all)[k.symbol]
	}
	var keepers []*keeper
	var running sync.WaitGroup
	for i := range 4 {
		k := &keeper{name: fmt.Sprint("keeper ", i), symbol: []string{"IBM", "OIL"}[i/2], policy: []string{"drop", "disconnect"}[i%2], gateways: []*atomic.Pointer[process]{&a, &b}, kinds: map[string]int{}}
		if i%2 == 1 {
			slices.Reverse(k.gateways)
		}
		if i == 3 {
			k.pause = 5 * time.Millisecond
		}
		keepers = append(keepers, k)
		running.Go(func() { k.run(ctx, done) })
	}
	time.Sleep(3 * time.Second) // all copies note what changes
	killPrimary(t, c, g)
	time.Sleep(500 * time.Millisecond)
	killGateways(t, g, map[*atomic.Pointer[process]][]string{&a: clients, &b: wanted})
	waitForCopies(t, c)
	time.Sleep(300 * time.Millisecond)
	stop.Store(true)
	n := <-load
	all := naiveBooks(t, ctx, c, "IBM", "OIL")
	last.Store(&map[string]string{"IBM": readOrdered(t, ctx, c, "IBM"), "OIL": readOrdered(t, ctx, c, "OIL")})
	running.Wait()
	checkKept(t, all, keepers, n)
}

// lessened is an order far from the others for each symbol, which keeps its priority as it becomes less, and is cancelled.
func lessened(n int) (list [][]byte) {
	for symbol, price := range map[string]string{"IBM": "101.00", "OIL": "-90"} {
		of := fmt.Sprintf("55=%s|54=1", symbol)
		for i, more := range []string{"35=D|38=50|40=2|44=" + price, "35=G|38=30|40=2|44=" + price, "35=F|38=30"} {
			if i > 0 {
				more += fmt.Sprintf("|41=L-%s-%d-%d", symbol, n, i-1)
			}
			list = append(list, fixMessage(fmt.Sprintf("%s|11=L-%s-%d-%d|%s", more, symbol, n, i, of)))
		}
	}
	return list
}

// checkKept judges what clients had after each entry.
func checkKept(t *testing.T, all map[string]*naive, keepers []*keeper, n int) {
	t.Helper()
	for _, k := range keepers {
		if k.fault != nil {
			t.Errorf("%s of %s: %v", k.name, k.symbol, k.fault)
		}
		b := all[k.symbol]
		b.digits = 2
		wrong := 0
		for _, s := range k.seen {
			want := b.at(s.entry)
			got := *want
			got.Bids, got.Asks = s.shown.Bids, s.shown.Asks
			if k.symbol == "OIL" { // it has no digits, and is noted with two
				got.Bids, got.Asks = bare(got.Bids), bare(got.Asks)
			}
			if got.String() != want.String() {
				if wrong++; wrong == 1 {
					t.Errorf("%s of %s has after entry %d\n%s\nby the log it is\n%s", k.name, k.symbol, s.entry, got, want)
				}
			}
		}
		for _, kind := range []string{"added", "changed", "removed", "traded"} {
			if k.kinds[kind] == 0 {
				t.Errorf("%s got no change of kind %s", k.name, kind)
			}
		}
		if len(k.seen) < 100 || k.sessions < 2 || wrong > 0 {
			t.Errorf("%s: %d states, %d of them wrong, %d sessions", k.name, len(k.seen), wrong, k.sessions)
		}
		t.Logf("%s of %s: %d states, %d sessions, %d gaps, %v; %d orders in all", k.name, k.symbol, len(k.seen), k.sessions, k.gaps, k.kinds, n)
	}
}

// bare takes the digits behind the point from prices.
func bare(list []string) (out []string) {
	for _, l := range list {
		out = append(out, strings.Replace(l, ".00 ", " ", 1))
	}
	return out
}
