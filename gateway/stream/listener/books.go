package listener

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"sync"
	"time"

	"github.com/ordergrid/ordergrid/client"
	"github.com/ordergrid/ordergrid/gateway/stream/fanout"
	"github.com/ordergrid/ordergrid/gateway/stream/topics"
	"github.com/ordergrid/ordergrid/grid-node/order"
	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// Books is the first token of the topics of books: book.{symbol}.L1 and book.{symbol}.L2.
const Books = "book"

const (
	// bookLevels of a side are shown.
	bookLevels = 20
	// bookEvery is how often a book is read at most.
	bookEvery = 25 * time.Millisecond
	// bookRetry is the pause when a book could not be read.
	bookRetry = 200 * time.Millisecond
	// bookPatience bounds one question and the wait for the log up to its answer.
	bookPatience = 10 * time.Second
	// maxBooks of a partition can be subscribed to.
	maxBooks = 1 << 16
)

// anywhere is behind all.
var anywhere = fanout.Position{Seq: math.MaxUint64}

// books are those of a partition that clients want. One question is asked at a time. The loop touches books and publishes;
// a goroutine reads.
type books struct {
	p    *partition
	wake chan struct{}
	show func(context.Context, *book) bool // reads a book and publishes it; false: the context ended
	old  func(*fanout.Hub, *book)          // what is shown of a book is older than the log

	mu    sync.Mutex
	all   map[string]*book // by symbol
	queue []*book          // to be read
}

// book is one that clients want.
type book struct {
	symbol, group string
	touched       uint64 // last entry that may have changed it, as far as the log was read
	read          uint64 // entry of the last answer
	known         bool   // there was one
	queued        bool
	failing       bool      // it could not be read last time; of the goroutine that reads
	shown         [2][]byte // what was published last: L1, L2
	claim         *claim    // nil where everything is followed
	orders        *orders   // of one that is shown order by order
	unseen        bool      // what touches it is not followed yet
}

func newBooks(p *partition) *books {
	b := &books{p: p, wake: make(chan struct{}, 1), all: map[string]*book{}}
	b.show, b.old = b.ladder, func(h *fanout.Hub, k *book) { h.Stale(k.group) }
	return b
}

// tradedAt returns the partition that trades the symbol of a group.
func (g *generation) tradedAt(group string) (p *partition, symbol string, err error) {
	symbol, err = symbolOf(group)
	switch {
	case err != nil:
		return nil, "", err
	case !g.l.cfg.Client.BySymbol():
		return nil, "", errors.New("topics are those of books, allowed: in a grid that matches (grid-node --execution match)")
	case int(g.l.cfg.Client.RouteSymbol(symbol)) >= len(g.parts):
		return nil, "", fmt.Errorf("symbol %.80q is traded by a partition that is not known yet, allowed: try again", symbol)
	}
	return g.parts[g.l.cfg.Client.RouteSymbol(symbol)], symbol, nil
}

// asked is called on the loop when the first client wants a book.
func (g *generation) asked(group string) error {
	p, symbol, err := g.tradedAt(group)
	if err != nil {
		return err
	}
	if p.books.count() >= maxBooks {
		return fmt.Errorf("%w: books of one partition that clients want are more than %d", fanout.ErrLimit, maxBooks)
	}
	p.books.want(&book{symbol: symbol, group: group})
	return nil
}

// want adds a book, which is read. It is on the loop.
func (b *books) want(k *book) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if w := b.p.g.wanted; w != nil {
		k.claim = w.claim([]client.Selector{{Kinds: client.KindExecutions, Symbol: k.symbol}, {Kinds: client.KindOther}})
		_, known := k.claim.Since(int(b.p.id), anywhere)
		k.unseen = !known
	}
	b.all[k.symbol] = k
	b.enqueue(k)
}

// left is called on the loop when no client wants a book any more.
func (g *generation) left(group string) {
	p, symbol, _ := g.tradedAt(group)
	p.books.leave(symbol)
}

func (b *books) leave(symbol string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if k := b.all[symbol]; k != nil && k.claim != nil {
		k.claim.Leave()
	}
	delete(b.all, symbol)
}

// begins has books read again that may have changed before that was followed. It is on the loop.
func (b *books) begins(h *fanout.Hub, through uint64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, k := range b.all {
		if !k.unseen {
			continue
		}
		if _, known := k.claim.Since(int(b.p.id), anywhere); known {
			k.unseen = false
			b.touched(h, k, through)
		}
	}
}

// symbolOf is the symbol of a group of topics, book.{symbol}.
func symbolOf(group string) (string, error) {
	_, token, _ := strings.Cut(group, ".")
	symbol, ok := topics.ReadToken(token)
	if !ok || strings.Contains(token, ".") || len(symbol) == 0 || len(symbol) > order.MaxSymbol {
		return "", fmt.Errorf("topics begin with %.80q, allowed: %s.SYMBOL.L1, .L2, .L3 or .*, of a symbol of 1 to %d bytes", group, Books, order.MaxSymbol)
	}
	return string(symbol), nil
}

// enqueue has a book read; b.mu is held.
func (b *books) enqueue(k *book) {
	if k.queued {
		return
	}
	k.queued = true
	b.queue = append(b.queue, k)
	select {
	case b.wake <- struct{}{}:
	default:
	}
}

// touch notes what a part of the log may have changed. It is on the loop.
func (b *books) touch(h *fanout.Hub, part *batch) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.all) == 0 {
		return
	}
	for _, t := range part.touched {
		if k := b.all[t.symbol]; k != nil {
			b.touched(h, k, t.entry)
		}
	}
	if part.touchedAll > 0 {
		for _, k := range b.all {
			b.touched(h, k, part.touchedAll)
		}
	}
}

func (b *books) touched(h *fanout.Hub, k *book, entry uint64) {
	if k.touched = max(k.touched, entry); k.known && k.touched <= k.read {
		return
	}
	b.old(h, k)
	b.enqueue(k)
}

// run reads books until ctx ends.
func (b *books) run(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-b.wake:
		}
		began := time.Now()
		b.mu.Lock()
		list := b.queue
		b.queue = nil
		for _, k := range list {
			k.queued = false
		}
		b.mu.Unlock()
		for _, k := range list {
			if b.wants(k) && !b.show(ctx, k) {
				return
			}
		}
		if !pause(ctx, time.Until(began.Add(bookEvery))) {
			return
		}
	}
}

func (b *books) wants(k *book) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.all[k.symbol] == k
}

func (b *books) count() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.all)
}

// ladder reads the levels of a book and publishes them; false: ctx ended.
func (b *books) ladder(ctx context.Context, k *book) bool {
	asking, cancel := context.WithTimeout(ctx, bookPatience)
	defer cancel()
	v, err := b.ask(asking, k.symbol)
	if err == nil {
		err = b.followed(asking, v.Seq)
	}
	if ctx.Err() != nil {
		return false
	}
	if err != nil {
		return b.failed(ctx, k, err)
	}
	k.failing = false
	b.p.g.l.metrics.bookReads.Add(1)
	return b.p.g.server.Do(func(h *fanout.Hub) { b.publish(h, k, &v) })
}

// followed waits until the log is read up to an entry: no client gets what is ahead of its position.
func (b *books) followed(ctx context.Context, seq uint64) error {
	for b.p.readTo.Load() < seq {
		if !pause(ctx, time.Millisecond) {
			return fmt.Errorf("its entry %d is not followed within %s", seq, bookPatience)
		}
	}
	return nil
}

// failed has a book that could not be read be read again, some time from now; false: ctx ended.
func (b *books) failed(ctx context.Context, k *book, err error) bool {
	b.p.g.l.metrics.bookFailures.Add(1)
	if !k.failing {
		b.p.g.l.log.Warn("a book is not shown as it is", "symbol", k.symbol, "error", err)
	}
	k.failing = true
	b.mu.Lock()
	b.enqueue(k)
	b.mu.Unlock()
	return pause(ctx, bookRetry)
}

// ask reads a book at the replica that is followed, which is a backup if there is one in sync, else at the primary.
func (b *books) ask(ctx context.Context, symbol string) (client.Book, error) {
	at := b.p.readTo.Load()
	v, err := client.Book{}, error(nil)
	if from := b.p.source.Load(); from != nil {
		trying, cancel := context.WithTimeout(ctx, bookPatience/10)
		v, err = b.p.g.l.cfg.Client.ReadBook(trying, symbol, bookLevels, *from)
		cancel()
	}
	if v.From == "" || err != nil {
		v, err = b.p.g.l.cfg.Client.ReadBook(ctx, symbol, bookLevels, "")
	}
	var refused *client.RejectError
	if errors.As(err, &refused) && refused.Code == wire.CodeUnknownInstrument {
		return client.Book{Symbol: symbol, Seq: at, State: bookUnknown}, nil
	}
	return v, err
}

// bookUnknown is the state of what the grid does not trade.
const bookUnknown client.BookState = 255

// publish shows what was read, if it is news. It is on the loop.
func (b *books) publish(h *fanout.Hub, k *book, v *client.Book) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.all[k.symbol] != k {
		return
	}
	stale := k.touched > v.Seq
	if stale {
		b.enqueue(k)
	}
	if k.known && v.Seq <= k.read { // a replica that is behind, or nothing has happened
		if v.Seq == k.read && !stale {
			h.Fresh(k.group)
		}
		return
	}
	k.read, k.known = v.Seq, true
	for i, payload := range [2][]byte{appendBest(nil, v), appendDepth(nil, v)} {
		if bytes.Equal(payload, k.shown[i]) {
			continue
		}
		m := fanout.Message{Partition: int(b.p.id), At: fanout.Position{Seq: v.Seq}, Topic: fmt.Appendf(nil, "%s.L%d", k.group, i+1), Payload: payload}
		if err := h.Keep(&m, stale); err != nil {
			b.p.g.l.metrics.unpublished.Add(1)
			b.p.g.l.log.Error("a book is not published", "symbol", k.symbol, "seq", v.Seq, "error", err)
			continue
		}
		k.shown[i] = payload
	}
	if !stale {
		h.Fresh(k.group)
	}
}
