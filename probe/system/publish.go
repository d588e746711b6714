package system

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ordergrid/ordergrid/client"
	"github.com/ordergrid/ordergrid/grid-node/order"
	"github.com/ordergrid/ordergrid/probe/clock"
)

// newOrder is a FIX order. more are further fields, each with its SOH.
func newOrder(dst []byte, id, account, symbol string, quantity int, more string) []byte {
	body := fmt.Appendf(nil, "35=D\x0149=PROBE\x0156=GRID\x0134=1\x0152=20261123-09:30:00\x0111=%s\x011=%s\x0121=1\x0155=%s\x0154=1\x0160=20261123-09:30:00\x0138=%d\x0140=2\x0144=125.25\x0159=0\x01%s", id, account, symbol, quantity, more)
	dst = append(append(dst[:0], "8=FIX.4.2\x019="+strconv.Itoa(len(body))+"\x01"...), body...)
	return fmt.Appendf(dst, "10=%03d\x01", order.CheckSum(dst))
}

// timetable is orders at a rate, evenly spaced.
type timetable struct {
	begun time.Time
	rate  int
}

// due is when an order is to be sent.
func (t timetable) due(index int) time.Time {
	return t.begun.Add(time.Duration(index) * time.Second / time.Duration(t.rate))
}

// publisher submits orders to a timetable, whatever the grid does meanwhile.
type publisher struct {
	timetable
	receipts []client.Receipt // by order
	late     []time.Duration  // likewise
	failed   atomic.Pointer[error]
	open     sync.WaitGroup
}

// publish submits n orders, or those that are due until stop returns true, and waits for their answers.
func publish(ctx context.Context, c *client.Client, t timetable, n int, stop func() bool, fix func(dst []byte, index int) []byte) (*publisher, error) {
	p := &publisher{timetable: t, receipts: make([]client.Receipt, n), late: make([]time.Duration, 0, n)}
	var buf []byte
	for i := range n {
		if early := time.Until(p.due(i)); early > 0 {
			if err := clock.Wait(ctx, early); err != nil {
				return nil, err
			}
		}
		if stop() || p.failed.Load() != nil {
			break
		}
		p.late = append(p.late, time.Since(p.due(i)))
		buf = fix(buf, i)
		for {
			p.open.Add(1)
			err := c.SubmitAsync(buf, func(r client.Receipt, err error) { p.answered(i, r, err) })
			if err == nil {
				break
			}
			p.open.Done()
			if !errors.Is(err, client.ErrWindowFull) {
				return nil, err
			}
			if err := clock.Wait(ctx, 100*time.Microsecond); err != nil {
				return nil, err
			}
		}
	}
	p.open.Wait()
	if err := p.failed.Load(); err != nil {
		return nil, *err
	}
	return p, nil
}

// submitAll submits n orders as fast as the grid takes them, and returns the last receipt of each partition.
func submitAll(ctx context.Context, c *client.Client, n int, fix func(dst []byte, index int) []byte) ([]client.Receipt, error) {
	p, err := publish(ctx, c, timetable{time.Now(), 1e9}, n, func() bool { return ctx.Err() != nil }, fix)
	if err == nil {
		err = ctx.Err()
	}
	if err != nil {
		return nil, err
	}
	last := make([]client.Receipt, len(c.Table()))
	for _, r := range p.receipts {
		if r.Seq > last[r.Partition].Seq {
			last[r.Partition] = r
		}
	}
	return slices.DeleteFunc(last, func(r client.Receipt) bool { return r.Seq == 0 }), nil
}

func (p *publisher) answered(i int, r client.Receipt, err error) {
	if err != nil {
		err = fmt.Errorf("order %d: %w", i, err)
		p.failed.CompareAndSwap(nil, &err)
	}
	p.receipts[i] = r
	p.open.Done()
}

// sent is how many orders were.
func (p *publisher) sent() int { return len(p.late) }

// lateness is the p99 of how late messages were sent.
func lateness(late []time.Duration) time.Duration {
	if len(late) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(late))
	return sorted[len(sorted)*99/100]
}
