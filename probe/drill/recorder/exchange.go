package recorder

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/ordergrid/ordergrid/client"
	"github.com/ordergrid/ordergrid/client/verify"
	"github.com/ordergrid/ordergrid/grid-node/wire"
	"github.com/ordergrid/ordergrid/probe/clock"
	"github.com/ordergrid/ordergrid/probe/drill/api"
	"github.com/ordergrid/ordergrid/probe/drill/collect"
	"github.com/ordergrid/ordergrid/probe/drill/history"
	"github.com/ordergrid/ordergrid/probe/fixorder"
)

// told keeps the executions that the sessions of the drill were told.
type told struct {
	mu sync.Mutex
	by map[wire.PartitionID][]byte
}

func (t *told) add(list []client.Execution) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.by == nil {
		t.by = map[wire.PartitionID][]byte{}
	}
	for i := range list {
		e := &list[i]
		r := verify.RecordOf(e)
		t.by[e.Partition] = history.AppendExecution(t.by[e.Partition], e.Entry, e.N, &r)
	}
}

func (t *told) history() (out []history.Told) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for p, b := range t.by {
		out = append(out, history.Told{Partition: p, Records: b})
	}
	slices.SortFunc(out, func(a, b history.Told) int { return int(a.Partition) - int(b.Partition) })
	t.by = nil
	return out
}

// trading finds what the grid trades, nil if it stores orders, and leaves out partitions that trade
// nothing.
func (r *Recorder) trading(ctx context.Context, parts *[]wire.PartitionID) (map[wire.PartitionID][]fixorder.Book, error) {
	if !r.watch.BySymbol() {
		if r.cfg.Auctions > 0 {
			return nil, errors.New("--auctions: the grid stores orders and matches none, allowed: 0")
		}
		return nil, nil
	}
	if r.cfg.MaxOrders == 0 {
		r.maxOrders /= api.OrdersOfMatching
	}
	trading := map[wire.PartitionID][]fixorder.Book{}
	for _, p := range *parts {
		books, err := collect.BooksOf(ctx, r.watch, p)
		if err != nil {
			return nil, err
		}
		if len(books) > 0 {
			trading[p] = books
		}
	}
	*parts = slices.DeleteFunc(*parts, func(p wire.PartitionID) bool { return trading[p] == nil })
	if len(*parts) == 0 {
		return nil, errors.New("the grid trades nothing: it has no instrument yet")
	}
	return trading, nil
}

// auctions are held in every book in turn: it collects orders for three quarters of the period, is
// uncrossed, and trades. Books of a partition are half a period apart.
type auctions struct {
	cancel context.CancelFunc
	wg     sync.WaitGroup
	mu     sync.Mutex
	held   int
	failed error
}

func (r *Recorder) startAuctions(ctx context.Context, trading map[wire.PartitionID][]fixorder.Book) error {
	if r.cfg.Auctions == 0 {
		return nil
	}
	var running context.Context
	running, r.auctions.cancel = context.WithCancel(context.Background())
	for _, books := range trading {
		for i, b := range books {
			// The first is held here: without the permission there is no drill.
			if _, state, err := r.watch.Market(ctx, client.MarketOp{Symbol: b.Symbol, State: client.BookCall, Reason: "drill"}); err != nil && state != client.BookCall {
				return fmt.Errorf("--auctions: %w", err)
			}
			r.auctions.wg.Go(func() { r.holdAuctions(running, b.Symbol, time.Duration(i%2)*r.cfg.Auctions/2) })
		}
	}
	return nil
}

// holdAuctions begins with a book that collects orders, and leaves it open.
func (r *Recorder) holdAuctions(ctx context.Context, symbol string, after time.Duration) {
	a := &r.auctions
	act := func(op client.MarketOp) {
		op.Symbol, op.Reason = symbol, "drill"
		at, cancel := context.WithTimeout(context.WithoutCancel(ctx), r.cfg.Timeout)
		defer cancel()
		_, _, err := r.watch.Market(at, op)
		var refused *client.MarketError // what was done before its answer was lost
		a.mu.Lock()
		defer a.mu.Unlock()
		if op.Uncross && err == nil {
			a.held++
		}
		if err != nil && !errors.As(err, &refused) {
			a.failed = err
		}
	}
	for pause := after + r.cfg.Auctions*3/4; ; pause = r.cfg.Auctions * 3 / 4 {
		_ = clock.Wait(ctx, pause)
		act(client.MarketOp{State: client.BookOpen, Uncross: true})
		if clock.Wait(ctx, r.cfg.Auctions/4) != nil {
			return
		}
		act(client.MarketOp{State: client.BookCall})
	}
}

// stop ends the auctions, and says for the notes what could not be held.
func (a *auctions) stop() []string {
	if a.cancel == nil {
		return nil
	}
	a.cancel()
	a.wg.Wait()
	if a.failed != nil {
		return []string{fmt.Sprintf("of the auctions %d were held, and not all: %v", a.held, a.failed)}
	}
	return nil
}
