package listener

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/ordergrid/ordergrid/client"
	"github.com/ordergrid/ordergrid/gateway/stream/fanout"
	"github.com/ordergrid/ordergrid/grid-node/shown"
	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// Orders of a book are its topic book.{symbol}.L3: pages, then changes.
const ordersToken = "L3"

const (
	// mostOrderBooks of a gateway are kept order by order, with mostOrders orders all together.
	mostOrderBooks = 64
	mostOrders     = 1 << 19
	// ordersPage orders are in a message.
	ordersPage = 128
	// warmEvery is how often all copies are asked for what changed, so that any can go on when another is gone.
	warmEvery = 2 * time.Second
	// ordersTurn questions about a book are asked before another book has its turn.
	ordersTurn = 16
	// nonePause is how long a book that cannot be shown is not read.
	nonePause = 10 * time.Second
)

// orders are those of a book that clients want order by order. Its book is of the loop; a goroutine that reads it waits for
// the loop.
type orders struct {
	symbol  string
	prefix  string // of the names of orders
	book    client.OrderBook
	counts  int    // of mostOrders
	counted bool   // it is one of mostOrderBooks
	none    string // why there is nothing to show; empty: the book is shown
	until   time.Time
}

// States that are shown in place of orders.
const (
	unknown  = "unknown"   // the grid does not trade the symbol
	tooLarge = "too-large" // the orders of all books of the gateway are more than mostOrders
	tooMany  = "too-many"  // the nodes keep changes of no further book
	oldNodes = "old-nodes" // they are of a release before
)

// opened is called on the loop when the first client wants the orders of a book.
func (g *generation) opened(topic string) (fanout.Source, int, error) {
	p, symbol, err := g.tradedAt(strings.TrimSuffix(topic, "."+ordersToken))
	switch {
	case err != nil:
		return nil, 0, err
	case g.orderBooks >= mostOrderBooks:
		return nil, 0, fmt.Errorf("%w: books that clients of this gateway read order by order are %d, allowed: at most %d", fanout.ErrLimit, g.orderBooks+1, mostOrderBooks)
	case p.orderBooks.count() >= maxBooks: // of symbols that are not traded, which do not count
		return nil, 0, fmt.Errorf("%w: books of one partition that clients want are more than %d", fanout.ErrLimit, maxBooks)
	}
	k := &book{symbol: symbol, group: topic, orders: &orders{symbol: symbol, prefix: p.id.String() + "/"}}
	g.countBook(k.orders, true)
	p.orderBooks.want(k)
	return k.orders, int(p.id), nil
}

// closed is called on the loop when no client wants them any more.
func (g *generation) closed(topic string) {
	p, symbol, _ := g.tradedAt(strings.TrimSuffix(topic, "."+ordersToken))
	if k := p.orderBooks.all[symbol]; k != nil {
		g.countBook(k.orders, false)
		g.countOrders(k.orders, 0)
	}
	p.orderBooks.leave(symbol)
}

// countBook notes whether a book is one of those that are kept.
func (g *generation) countBook(o *orders, kept bool) {
	if kept != o.counted {
		o.counted = kept
		if g.orderBooks--; kept {
			g.orderBooks += 2
		}
	}
}

// countOrders notes how many orders of a book are kept.
func (g *generation) countOrders(o *orders, n int) {
	g.shownOrders += n - o.counts
	o.counts = n
}

func newOrderBooks(p *partition) *books {
	b := newBooks(p)
	b.show, b.old = b.byOrder, func(h *fanout.Hub, k *book) { h.Behind(k.group) }
	return b
}

// byOrder brings a book up to what a copy has, and publishes it; false: ctx ended.
func (b *books) byOrder(ctx context.Context, k *book) bool {
	if time.Now().Before(k.orders.until) {
		return true // again comes
	}
	more := true
	for n := 0; more && n < ordersTurn; n++ {
		asking, cancel := context.WithTimeout(ctx, bookPatience)
		at := b.p.readTo.Load()
		r, err := b.askOrders(asking, k)
		if err == nil {
			err = b.followed(asking, r.Seq)
		}
		cancel()
		if ctx.Err() != nil {
			return false
		}
		if why := noneOf(err); why != "" {
			if why != unknown && k.orders.none != why {
				b.p.g.l.log.Warn("a book is not shown order by order", "symbol", k.symbol, "state", why, "error", err)
			}
			return b.p.g.server.Do(func(h *fanout.Hub) { b.nothing(h, k, at, why) })
		}
		if err != nil {
			return b.failed(ctx, k, err)
		}
		k.failing = false
		b.p.g.l.metrics.bookReads.Add(1)
		if !b.p.g.server.Do(func(h *fanout.Hub) { more, err = b.publishOrders(h, k, r) }) {
			return false
		}
		if err != nil {
			return b.failed(ctx, k, err)
		}
	}
	if more {
		b.again(k)
	}
	return true
}

// noneOf returns the state of a book that cannot be shown because of an error; empty: it is tried again.
func noneOf(err error) string {
	var refused *client.RejectError
	var old *client.OldNodeError
	switch {
	case errors.As(err, &old):
		return oldNodes
	case errors.As(err, &refused) && refused.Code == wire.CodeUnknownInstrument:
		return unknown
	case errors.As(err, &refused) && refused.Code == wire.CodeCapacity:
		return tooMany
	}
	return ""
}

// askOrders asks the replica that is followed, else the primary.
func (b *books) askOrders(ctx context.Context, k *book) (r *client.OrdersRead, err error) {
	c := b.p.g.l.cfg.Client
	if from := b.p.source.Load(); from != nil {
		trying, cancel := context.WithTimeout(ctx, bookPatience/10)
		r, err = c.ReadOrders(trying, k.symbol, &k.orders.book, *from)
		cancel()
	}
	if r == nil {
		r, err = c.ReadOrders(ctx, k.symbol, &k.orders.book, "")
	}
	return r, err
}

// publishOrders shows what was read. more: there is more to be read now. It is on the loop.
func (b *books) publishOrders(h *fanout.Hub, k *book, r *client.OrdersRead) (more bool, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.all[k.symbol] != k {
		return false, nil
	}
	if k.known && r.Seq < k.read { // a copy that is behind
		b.enqueue(k)
		return false, nil
	}
	o, g := k.orders, b.p.g
	had := o.book.Complete
	anew, err := r.Apply(&o.book, func(e *shown.Event) {
		if had {
			at := fanout.Position{Seq: e.At.Seq, Index: e.At.Index}
			if err := h.Changed(k.group, placeOf(e.Place()), at, o.appendChange(nil, e)); err != nil {
				g.l.metrics.unpublished.Add(1)
				g.l.log.Error("a change of a book is not published", "symbol", k.symbol, "error", err)
			}
		}
	})
	k.read, k.known = r.Seq, true
	stale, at := k.touched > r.Seq, fanout.Position{Seq: r.Seq, Index: math.MaxUint32}
	g.countOrders(o, o.book.Len())
	switch {
	case err != nil:
		h.Interrupted(k.group)
		return false, err
	case g.shownOrders > mostOrders && (!o.book.Complete || o.counts > mostOrders/mostOrderBooks):
		b.none(h, k, at, tooLarge, false)
		return false, nil
	case !o.book.Complete:
		h.Interrupted(k.group)
		return true, nil
	case r.More:
		return true, nil
	case anew || !had:
		o.none = ""
		g.countBook(o, true)
		h.Restarted(k.group, at, stale)
	default:
		h.Reached(k.group, at, stale)
	}
	if stale {
		b.enqueue(k)
	}
	return false, nil
}

// nothing shows that there is no book. It is on the loop.
func (b *books) nothing(h *fanout.Hub, k *book, seq uint64, why string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.all[k.symbol] != k {
		return
	}
	k.read, k.known = max(k.read, seq), true
	stale := why == unknown && k.touched > k.read // its instrument may have come since
	if stale {
		b.enqueue(k)
	}
	b.none(h, k, fanout.Position{Seq: k.read, Index: math.MaxUint32}, why, stale)
}

// none shows a state in place of orders; b.mu is held.
func (b *books) none(h *fanout.Hub, k *book, at fanout.Position, why string, stale bool) {
	o := k.orders
	if why != unknown { // which ends by an entry of the log
		o.until = time.Now().Add(nonePause)
		time.AfterFunc(nonePause, func() { b.again(k) })
	}
	b.p.g.countBook(o, why != unknown)
	b.p.g.countOrders(o, 0)
	o.book.Forget()
	if o.none == why {
		h.Reached(k.group, at, stale)
		return
	}
	o.none = why
	h.Restarted(k.group, at, stale)
}

// again has a book read that nothing has touched.
func (b *books) again(k *book) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.all[k.symbol] == k {
		b.enqueue(k)
	}
}

// warm asks all copies for what changed, so that each notes it: when one is gone another goes on where it was.
func (b *books) warm(ctx context.Context) {
	for pause(ctx, warmEvery) {
		silent := map[string]bool{}
		for _, q := range b.questions() {
			for _, m := range b.p.g.l.cfg.Client.Table()[b.p.id].Members {
				if silent[m.Address] {
					continue
				}
				asking, cancel := context.WithTimeout(ctx, time.Second)
				_, err := b.p.g.l.cfg.Client.ReadOrders(asking, q.symbol, &q.book, m.Address)
				cancel()
				var refused *client.RejectError
				silent[m.Address] = err != nil && !errors.As(err, &refused) // it notes nothing, and keeps the others waiting
			}
		}
	}
}

// questions are books of which a copy is asked what has changed since now.
func (b *books) questions() (list []*orders) {
	b.p.g.server.Do(func(*fanout.Hub) {
		for _, k := range b.all {
			if k.orders.book.Complete {
				q := &orders{symbol: k.symbol}
				q.book.BehindAll(k.orders.book.Through)
				list = append(list, q)
			}
		}
	})
	return list
}

// Page implements fanout.Source.
func (o *orders) Page(from fanout.Place) (payload []byte, to fanout.Place, last bool) {
	b := appendString([]byte(`{"symbol":`), []byte(o.symbol))
	if from == (fanout.Place{}) {
		b = append(b, `,"first":true`...)
	}
	if o.none != "" {
		return fmt.Appendf(b, `,"state":"%s","bids":[],"asks":[],"last":true}`, o.none), placeOf(shown.End), true
	}
	place := shown.Place{Side: uint8(from[0]), Price: priceOf(from), Prio: from[2]}
	b = append(b, `,"bids":[`...)
	comma, side := "", shown.Buy
	next := o.book.Page(place, ordersPage, func(r *shown.Order) {
		if r.Side != side {
			b, comma, side = append(b, `],"asks":[`...), "", r.Side
		}
		b = append(append(append(b, comma...), `["`...), o.prefix...)
		b = append(strconv.AppendUint(b, r.ID, 10), `","`...)
		b = append(append(b, client.Decimal(r.Price, o.book.PriceDigits)...), `","`...)
		b = append(append(b, client.Decimal(r.Qty, o.book.QtyDigits)...), `"]`...)
		comma = ","
	})
	if side == shown.Buy {
		b = append(b, `],"asks":[`...)
	}
	if next == shown.End {
		return append(b, `],"last":true}`...), placeOf(next), true
	}
	return append(b, `]}`...), placeOf(next), false
}

var shownKinds = [...]string{wire.ShownAdded: "added", wire.ShownChanged: "changed", wire.ShownRemoved: "removed", wire.ShownTraded: "traded"}

// appendChange makes a message of a change.
func (o *orders) appendChange(b []byte, e *shown.Event) []byte {
	side := "buy"
	if e.Order.Side == shown.Sell {
		side = "sell"
	}
	b = append(append(append(b, `{"kind":"`...), shownKinds[e.Kind]...), `","order":"`...)
	b = strconv.AppendUint(append(b, o.prefix...), e.Order.ID, 10)
	b = append(append(append(b, `","side":"`...), side...), `","price":"`...)
	b = append(append(b, client.Decimal(e.Order.Price, o.book.PriceDigits)...), `","qty":"`...)
	b = append(b, client.Decimal(e.Order.Qty, o.book.QtyDigits)...)
	if e.Kind == wire.ShownTraded {
		b = append(append(b, `","traded":"`...), client.Decimal(e.Traded, o.book.QtyDigits)...)
	}
	return append(b, `"}`...)
}

// placeOf is a place in a book as one of its series.
func placeOf(p shown.Place) fanout.Place {
	if p.Prio == 0 {
		return fanout.Place{uint64(p.Side)}
	}
	return fanout.Place{uint64(p.Side), keyOf(p.Side, p.Price), p.Prio}
}

// keyOf is lower for better prices.
func keyOf(side uint8, price int64) uint64 {
	key := uint64(price) ^ 1<<63
	if side != shown.Sell {
		key = ^key
	}
	return key
}

func priceOf(p fanout.Place) int64 {
	key := p[1]
	if uint8(p[0]) != shown.Sell {
		key = ^key
	}
	return int64(key ^ 1<<63)
}
