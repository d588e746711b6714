package system

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"time"

	"github.com/ordergrid/ordergrid/client"
	"github.com/ordergrid/ordergrid/grid-node/order"
	"github.com/ordergrid/ordergrid/grid-node/wire"
	"github.com/ordergrid/ordergrid/probe/devgrid"
	"github.com/ordergrid/ordergrid/probe/published"
	"github.com/ordergrid/ordergrid/probe/scenario"
)

const (
	// auctionClients send the orders of an auction, each by a connection of its own.
	auctionClients = 4
	// marketPct of them are market orders.
	marketPct = 10
	// Limits are up to auctionBeyond ticks on the side of the reference that trades, and auctionBehind on the other.
	auctionReference, auctionBeyond, auctionBehind = 500, 60, 20
	// maxSteeper is how much more time an order of the largest auction may take than one of the smallest.
	maxSteeper = 2
	// besideSymbol trades in the same partition all the time.
	besideSymbol = "BESIDE"
	// uncrossedWithin bounds the wait for the end of an auction.
	uncrossedWithin = time.Minute
)

// auctions are how many orders the auctions have, and how many there are of each.
type auctions struct {
	orders []int
	rounds int
}

func auctionsOf(mode scenario.Mode) auctions {
	switch mode {
	case scenario.Exact:
		return auctions{[]int{10_000, 20_000, 40_000}, 3}
	case scenario.Quick:
		return auctions{[]int{1_000, 4_000}, 3}
	}
	return auctions{[]int{5_000, 10_000, 20_000}, 3}
}

// uncrossed is an auction that is over.
type uncrossed struct {
	auctioned
	orders int
	rate   float64       // collected a second
	took   time.Duration // from the uncross asked for to the book seen open
	within int           // orders of the other book with an entry while the auction was executed
	beside []time.Duration
	wrong  string
}

// each is the time of an order of the auction.
func (u *uncrossed) each() time.Duration { return u.took / time.Duration(u.orders) }

// auction collects orders of many connections in a call, uncrosses, and holds what the grid executed against the naive
// matcher, which is given what was sent.
func auction(ctx context.Context, _ *published.Data, _ published.Scenario, o Options, r *Report) error {
	p := auctionsOf(o.Mode)
	r.Columns = []string{"orders", "collected/s", "price", "volume", "surplus", "trades", "entries", "uncrossed in ms", "us an order", "orders beside", "their p99 ms"}
	r.Differences = append(r.Differences,
		"no report has an auction: sizes are of this program, and no figure is published",
		fmt.Sprintf("one partition of two nodes; %d connections send limit and market orders as fast as windows let them, in a call; another book of the partition trades all the while", auctionClients),
		"an auction is executed in parts, each an entry that both nodes execute with the same result; its time ends when its book is seen open",
		"clients and grid share this machine")
	middle := make([]*uncrossed, len(p.orders))
	for i, n := range p.orders {
		var err error
		if middle[i], err = o.auctionsOfSize(ctx, r, n, p.rounds); err != nil {
			return err
		}
		u := middle[i]
		r.row(n, fmt.Sprintf("%.0f", u.rate), u.price, u.volume, u.surplus, u.trades, u.entries, ms(u.took), fmt.Sprintf("%.2f", float64(u.each())/float64(time.Microsecond)),
			fmt.Sprintf("%d of %d", u.within, len(u.beside)), ms(at(u.beside, 0.99)))
	}
	auctionShape(r, middle[0], middle[len(middle)-1])
	return nil
}

// auctionsOfSize holds so many auctions on a grid of its own, and returns the one whose time is in the middle.
func (o *Options) auctionsOfSize(ctx context.Context, r *Report, n, rounds int) (_ *uncrossed, err error) {
	text := instrumentText(besideSymbol, auctionReference, "open")
	for round := range rounds {
		text = append(text, instrumentText(auctionSymbol(round), auctionReference, "call")...)
	}
	g, err := o.exchange(ctx, fmt.Sprintf("auction-%d", n), text, 1, gridMiB(n*rounds*5/2))
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, g.Stop()) }()
	var all []*uncrossed
	for round := range rounds {
		o.Say("auction of %d orders, %d of %d", n, round+1, rounds)
		h := &hall{grid: g, symbol: auctionSymbol(round), orders: n}
		u, err := h.hold(ctx)
		if err != nil {
			return nil, err
		}
		u.judged(r)
		if r.Control == "" {
			h.control(r)
		}
		all = append(all, u)
	}
	slices.SortFunc(all, func(a, b *uncrossed) int { return cmp.Compare(a.took, b.took) })
	return all[len(all)/2], nil
}

func auctionSymbol(round int) string { return fmt.Sprintf("CALL%d", round) }

// judged adds what is wrong with an auction.
func (u *uncrossed) judged(r *Report) {
	switch {
	case u.wrong != "":
		r.judge(Wrong, "%d orders: %s", u.orders, u.wrong)
	case u.volume == 0:
		r.judge(Invalid, "%d orders: nothing could be executed", u.orders)
	}
}

// auctionShape judges that time rises with the orders at most as they do, and that a long auction leaves the partition to
// other books.
func auctionShape(r *Report, few, many *uncrossed) {
	if ratio := float64(many.each()) / float64(few.each()); ratio > maxSteeper {
		r.judge(Fail, "an order of %d takes %v to be uncrossed, one of %d %v: %.1f times, allowed: %d", many.orders, many.each(), few.orders, few.each(), ratio, maxSteeper)
	}
	if many.entries > 2 && many.within == 0 {
		r.judge(Fail, "no order of another book got between the %d entries of the auction of %d orders", many.entries, many.orders)
	}
}

// hall is where one auction is held.
type hall struct {
	grid   *devgrid.Grid
	symbol string
	orders int

	sent       []bid
	executions []client.Execution
}

// hold is one auction, from its first order to the comparison.
func (h *hall) hold(ctx context.Context) (*uncrossed, error) {
	c, err := client.Dial(ctx, client.Config{Endpoints: h.grid.Endpoints, RequestTimeout: time.Minute, BySymbol: true})
	if err != nil {
		return nil, err
	}
	defer c.Close() //nolint:errcheck // it never fails
	u := &uncrossed{orders: h.orders}
	if u.rate, err = h.collect(ctx, c); err != nil {
		return nil, err
	}
	beside, err := besideOf(ctx, c)
	if err != nil {
		return nil, err
	}
	begun := time.Now()
	if _, _, err := c.Market(ctx, client.MarketOp{Symbol: h.symbol, State: client.BookOpen, Uncross: true, Reason: "match-auction"}); err != nil {
		return nil, errors.Join(err, beside.end())
	}
	book, err := opened(ctx, c, h.symbol)
	u.took = time.Since(begun)
	if err := errors.Join(err, beside.end()); err != nil {
		return nil, err
	}
	if _, err := c.ReadExecutions(ctx, 0, "", h.sent[0].entry, func(e client.Execution) error {
		if e.Book == book.Book {
			h.executions = append(h.executions, e)
		}
		return nil
	}); err != nil {
		return nil, err
	}
	u.auctioned, u.wrong = judgeAuction(h.sent, h.executions)
	u.within, u.beside = beside.between(u.first, u.last)
	return u, nil
}

// opened waits until a book is open.
func opened(ctx context.Context, c *client.Client, symbol string) (client.Book, error) {
	for until := time.Now().Add(uncrossedWithin); ; {
		b, err := c.ReadBook(ctx, symbol, 1, "")
		switch {
		case err != nil || b.State == client.BookOpen:
			return b, err
		case time.Now().After(until):
			return b, fmt.Errorf("%s is %s %v after it was uncrossed", symbol, b.State, uncrossedWithin)
		}
	}
}

// collect sends the orders of the auction, and returns how many a second were acknowledged. What was sent is in the order
// of the log then.
func (h *hall) collect(ctx context.Context, c *client.Client) (rate float64, err error) {
	feeders := make([]*feeder, auctionClients)
	for i := range feeders {
		feeders[i] = &feeder{number: i, window: make(chan struct{}, 1)}
		if feeders[i].session, err = c.OpenSession(ctx, wire.PartitionID(0)); err != nil {
			return 0, err
		}
		defer feeders[i].session.Close() //nolint:errcheck // all is answered
	}
	begun, drawn := time.Now(), make([][]bid, len(feeders))
	if err := eachBy(ctx, len(feeders), len(feeders), func(ctx context.Context, i int) (err error) {
		drawn[i], err = feeders[i].bids(ctx, h, begun)
		return err
	}); err != nil {
		return 0, err
	}
	last := int64(0)
	for i, f := range feeders {
		for j := range f.orders {
			b := drawn[i][j]
			b.entry = f.orders[j].receipt.Seq
			h.sent = append(h.sent, b)
			last = max(last, f.orders[j].acked)
		}
	}
	slices.SortFunc(h.sent, func(a, b bid) int { return cmp.Compare(a.entry, b.entry) })
	return float64(h.orders) / time.Duration(last).Seconds(), nil
}

// bids sends the orders of one connection, and returns them.
func (f *feeder) bids(ctx context.Context, h *hall, begun time.Time) (drawn []bid, err error) {
	rng := rand.New(rand.NewPCG(uint64(h.orders), uint64(f.number)))
	f.orders = make([]sold, h.orders/auctionClients)
	drawn = make([]bid, len(f.orders))
	var buf []byte
	for i := range f.orders {
		drawn[i], f.orders[i].symbol = drawBid(rng), h.symbol
		buf = drawn[i].message(buf, h.symbol, fmt.Sprintf("%s-%d-%d", h.symbol, f.number, i))
		if err := f.enqueue(ctx, &f.orders[i], buf, begun); err != nil {
			return nil, err
		}
	}
	f.session.Push()
	return drawn, f.settled(ctx)
}

// settled waits for all answers.
func (f *feeder) settled(ctx context.Context) error {
	for f.open.Load() > 0 {
		if err := f.answer(ctx); err != nil {
			return err
		}
	}
	if err := f.failed.Load(); err != nil {
		return *err
	}
	return nil
}

// beside is a client that trades with itself in another book, one order after the other.
type beside struct {
	stop   context.CancelFunc
	done   chan error
	orders []sold
}

func besideOf(ctx context.Context, c *client.Client) (*beside, error) {
	session, err := c.OpenSession(ctx, wire.PartitionID(0))
	if err != nil {
		return nil, err
	}
	running, stop := context.WithCancel(ctx)
	b := &beside{stop: stop, done: make(chan error, 1)}
	go func() {
		defer session.Close() //nolint:errcheck // all is answered
		rng, begun := rand.Uint64(), time.Now()
		var buf []byte
		for n := 0; running.Err() == nil; n++ {
			one := bid{side: uint8(1 + n%2), price: auctionReference, qty: 1}
			buf = one.message(buf, besideSymbol, strconv.FormatUint(rng, 36)+"-"+strconv.Itoa(n))
			sent := int64(time.Since(begun))
			receipt, err := session.Submit(ctx, buf)
			if err != nil {
				b.done <- fmt.Errorf("an order beside the auction: %w", err)
				return
			}
			b.orders = append(b.orders, sold{sent: sent, acked: int64(time.Since(begun)), receipt: receipt})
		}
		b.done <- nil
	}()
	return b, nil
}

// end stops the client.
func (b *beside) end() error {
	b.stop()
	return <-b.done
}

// between returns how many of its orders have entries between two others, and the times of all, sorted.
func (b *beside) between(first, last uint64) (within int, took []time.Duration) {
	for i := range b.orders {
		o := &b.orders[i]
		if o.receipt.Seq > first && o.receipt.Seq < last {
			within++
		}
		took = append(took, time.Duration(o.acked-o.sent))
	}
	slices.Sort(took)
	return within, took
}

// message is the order as FIX.
func (b *bid) message(buf []byte, symbol, id string) []byte {
	body := fmt.Appendf(nil, "35=D\x0149=AUCTION\x0156=GRID\x0134=1\x0152=20261123-09:30:00\x0111=%s\x0121=1\x0155=%s\x0154=%d\x0160=20261123-09:30:00\x0138=%d\x01", id, symbol, b.side, b.qty)
	if b.price == 0 {
		body = append(body, "40=1\x01"...)
	} else {
		body = fmt.Appendf(body, "40=2\x0144=%d\x01", b.price)
	}
	buf = append(fmt.Appendf(buf[:0], "8=FIX.4.2\x019=%d\x01", len(body)), body...)
	return fmt.Appendf(buf, "10=%03d\x01", order.CheckSum(buf))
}
