package traffic

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/ordergrid/ordergrid/client"
	"github.com/ordergrid/ordergrid/grid-node/order"
	"github.com/ordergrid/ordergrid/grid-node/wire"
	"github.com/ordergrid/ordergrid/probe/clock"
	"github.com/ordergrid/ordergrid/probe/fixorder"
)

// EntryBytes is the size of one order of Fill in a log.
const EntryBytes = (order.HeaderSize + fixorder.Size + 7) &^ 7

// fillSessions keep a partition busy whatever the round trip.
const fillSessions = 4

// Fill submits orders to a partition as fast as it accepts them, as ballast: they are in the copies
// and in the sinks, and belong to no stream of a history. It returns when all are acknowledged, or
// with the first error.
func Fill(ctx context.Context, c *client.Client, p wire.PartitionID, orders int64) error {
	id := fixorder.ID{Run: fixorder.NewRun()}
	var next atomic.Int64
	var wg sync.WaitGroup
	errs := make([]error, fillSessions)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	for i := range errs {
		s, err := c.OpenSession(ctx, p)
		if err != nil {
			return fmt.Errorf("fill %s: %w", p, err)
		}
		defer func() { _ = s.Close() }()
		f := filler{s: s, room: make(chan struct{}, 1)}
		if f.maker, err = fixorder.NewMaker(fixorder.FIX42, id); err != nil {
			return err
		}
		wg.Go(func() {
			if errs[i] = f.run(ctx, &next, orders); errs[i] != nil {
				cancel()
			}
		})
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("fill %s: after %d of %d orders: %w", p, min(next.Load(), orders), orders, err)
	}
	return nil
}

// filler is one session of Fill.
type filler struct {
	s      *client.Session
	maker  *fixorder.Maker
	room   chan struct{}
	failed atomic.Pointer[error]
}

func (f *filler) run(ctx context.Context, next *atomic.Int64, orders int64) error {
	for index := next.Add(1) - 1; index < orders; index = next.Add(1) - 1 {
		wall := clock.Wall(clock.Now())
		fix := f.maker.Make(index, index%fixorder.MaxSeqNum+1, wall, wall)
		for {
			if err := f.failed.Load(); err != nil {
				return *err
			}
			err := f.s.SubmitAsync(fix, f.done)
			if err == nil {
				break
			}
			if !errors.Is(err, client.ErrWindowFull) {
				return err
			}
			select {
			case <-f.room:
			case <-ctx.Done():
				return ctx.Err()
			}
		}
	}
	if err := f.s.Drain(ctx); err != nil {
		return err
	}
	if err := f.failed.Load(); err != nil {
		return *err
	}
	return nil
}

func (f *filler) done(_ client.Receipt, err error) {
	if err != nil {
		f.failed.CompareAndSwap(nil, &err)
	}
	select {
	case f.room <- struct{}{}:
	default:
	}
}
