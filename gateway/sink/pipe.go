package sink

import (
	"context"
	"sync"
	"time"

	"github.com/ordergrid/ordergrid/client"
	"github.com/ordergrid/ordergrid/grid-node/order"
	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// limits of a batch.
type limits struct {
	entries, bytes int
	linger         time.Duration // a batch with news waits this long for more
	quiet          time.Duration // a batch without news waits this long for some
}

// pipe hands entries from the goroutine that follows the log to the one that writes: one buffer fills while the other
// one is written. So a batch is as large as what came during the write before, and back-pressure is put when waiting.
type pipe struct {
	p      wire.PartitionID
	limits limits

	mu      sync.Mutex
	filling *buffer
	other   *buffer // nil: it is being written
	since   time.Time
	err     error // why nothing more comes

	news, room chan struct{} // something was put; something was taken
}

func newPipe(p wire.PartitionID, l limits) *pipe {
	x := &pipe{p: p, limits: l, filling: &buffer{}, other: &buffer{}, news: make(chan struct{}, 1), room: make(chan struct{}, 1)}
	x.filling.reset(p)
	return x
}

func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// put copies a follower's batch. It waits while the buffer is full.
func (x *pipe) put(ctx context.Context, b *client.FollowBatch) error {
	executions := b.Executions
	for rest := b.Entries; len(rest) > 0; {
		rest, executions = x.fill(rest, executions, b)
		signal(x.news)
		if len(rest) == 0 {
			return nil
		}
		select {
		case <-x.room:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// fill puts what there is room for, entries with what they did, and returns the rest.
func (x *pipe) fill(entries []client.LogEntry, executions []client.Executed, b *client.FollowBatch) ([]client.LogEntry, []client.Executed) {
	x.mu.Lock()
	defer x.mu.Unlock()
	f := x.filling
	n := 0
	for n < len(entries) && !f.full(x.limits) {
		if len(f.batch.Entries) == 0 {
			x.since = time.Now()
		}
		f.add(&entries[n])
		executions = f.executed(executions, entries[n].Seq)
		n++
	}
	switch {
	case n == len(entries):
		f.batch.Through = b.Through
	case n > 0:
		last := &entries[n-1]
		f.batch.Through = client.Position{Seq: last.Seq, Hash: order.Hash(last.Bytes), Lineage: b.Through.Lineage}
	}
	return entries[n:], executions
}

// end says that nothing more comes, and why.
func (x *pipe) end(err error) {
	x.mu.Lock()
	if x.err == nil {
		x.err = err
	}
	x.mu.Unlock()
	signal(x.news)
}

// take returns the next batch to write, and takes back the one before. What was put before the end is still returned.
func (x *pipe) take(ctx context.Context, done *buffer) (*buffer, error) {
	if done != nil {
		x.mu.Lock()
		done.reset(x.p)
		x.other = done
		x.mu.Unlock()
	}
	for {
		full, wait, err := x.tryTake()
		if full != nil || err != nil {
			return full, err
		}
		var timer *time.Timer
		var due <-chan time.Time
		if wait > 0 {
			timer = time.NewTimer(wait)
			due = timer.C
		}
		select {
		case <-x.news:
		case <-due:
		case <-ctx.Done():
			err = ctx.Err()
		}
		if timer != nil {
			timer.Stop()
		}
		if err != nil {
			return nil, err
		}
	}
}

// tryTake returns the batch if it is due, or how long until it is; 0: there is none.
func (x *pipe) tryTake() (*buffer, time.Duration, error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	f := x.filling
	if len(f.batch.Entries) == 0 {
		return nil, 0, x.err
	}
	patience := x.limits.linger
	if f.oldest == 0 {
		patience = x.limits.quiet
	}
	if wait := patience - time.Since(x.since); wait > 0 && !f.full(x.limits) && x.err == nil {
		return nil, wait, nil
	}
	x.filling, x.other = x.other, nil
	signal(x.room)
	return f, 0, nil
}

// waiting is what was put and not taken.
func (x *pipe) waiting() (bytes int, oldest int64) {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.filling.batch.Bytes, x.filling.oldest
}
