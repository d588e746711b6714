package listener

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ordergrid/ordergrid/client"
	"github.com/ordergrid/ordergrid/gateway/stream/fanout"
	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// partition follows the log of a partition and publishes its orders.
type partition struct {
	g      *generation
	id     wire.PartitionID
	end    client.Position        // at the survey
	from   client.Position        // read from behind it
	readTo atomic.Uint64          // last entry that was published or passed over
	commit atomic.Uint64          // last committed entry that is known of
	orders atomic.Uint64          // published
	begun  bool                   // something was read
	source atomic.Pointer[string] // replica that it was read from last
	books  *books

	mu  sync.Mutex
	err error // why nothing can be read; nil: it can
}

const (
	// followWindow is what a node may send ahead of a reader.
	followWindow = 1 << 20
	surveyTime   = 5 * time.Second
	retryPause   = 500 * time.Millisecond
	// batches of a partition are on the way to the loop at most.
	batches = 2
)

func (p *partition) fail(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err != nil && p.err == nil {
		p.g.l.log.Warn("a partition's log cannot be read", "partition", p.id.String(), "error", err)
	}
	p.err = err
}

func (p *partition) failure() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.err
}

// survey learns where the log ends. The first answer of a stream comes at once.
func (p *partition) survey(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, surveyTime)
	defer cancel()
	f, err := p.g.l.cfg.Client.Follow(ctx, client.FollowOptions{Partition: p.id, AtEnd: true, Window: 64 << 10})
	if err != nil {
		return err
	}
	defer f.Close() //nolint:errcheck // it never fails
	b, err := f.Next(ctx)
	if err != nil {
		return err
	}
	p.end = b.Through
	p.fail(nil)
	return nil
}

// begin says where to read from. What is not known is the hash there: another history is noticed by its lineage.
func (p *partition) begin(backlog uint64) {
	p.from = client.Position{Lineage: p.end.Lineage}
	if p.end.Seq > backlog {
		p.from.Seq = p.end.Seq - backlog
	}
	if backlog == 0 {
		p.from = p.end
	}
	p.readTo.Store(p.from.Seq)
	p.commit.Store(p.end.Seq)
}

// run publishes until ctx ends. An error is for all partitions: the listener begins anew.
func (p *partition) run(ctx context.Context) error {
	free := make(chan *batch, batches)
	for range batches {
		free <- &batch{}
	}
	for from := p.from; ; {
		f, err := p.g.l.cfg.Client.Follow(ctx, client.FollowOptions{Partition: p.id, After: from, Window: followWindow, Executions: p.matches()})
		if err != nil {
			return err
		}
		err = p.read(ctx, f, free)
		from = f.After()
		f.Close() //nolint:errcheck // it never fails
		var freed *client.SnapshotRequiredError
		switch {
		case ctx.Err() != nil:
			return nil
		case errors.Is(err, errAnew):
			return err
		case errors.As(err, &freed) && !p.begun: // what the backlog wants is freed: nobody has been promised it
			from = freed.After
			if !p.skip(freed.After) {
				return nil
			}
		case errors.As(err, &freed), errors.Is(err, client.ErrDiverged):
			return fmt.Errorf("%w: %w", errAnew, err)
		default:
			p.fail(err)
			pause(ctx, retryPause)
		}
	}
}

// matches reports whether the grid has executions.
func (p *partition) matches() bool { return p.g.l.cfg.Client.BySymbol() }

// skip begins behind entries that are freed.
func (p *partition) skip(after client.Position) bool {
	ok := p.g.server.Do(func(h *fanout.Hub) { h.Begin(int(p.id), fanout.Position{Seq: after.Seq}) })
	p.readTo.Store(after.Seq)
	return ok
}

// read publishes what a follower gets, until an error.
func (p *partition) read(ctx context.Context, f *client.Follower, free chan *batch) error {
	for {
		part, err := f.Next(ctx)
		if err != nil {
			return err
		}
		p.fail(nil)
		p.begun = true
		if from := p.source.Load(); from == nil || *from != part.Address {
			from := part.Address
			p.source.Store(&from)
		}
		if part.Through.Lineage != p.end.Lineage {
			return fmt.Errorf("%w: the lineage of %s is %d, it was %d: a loss of data was accepted", errAnew, p.id, part.Through.Lineage, p.end.Lineage)
		}
		var b *batch
		select {
		case b = <-free:
		case <-ctx.Done():
			return ctx.Err()
		}
		b.fill(part, int(p.id))
		if !p.g.server.Post(func(h *fanout.Hub) { p.publish(h, b); free <- b }) {
			return errors.New("the server ended")
		}
	}
}

// publish is on the loop.
func (p *partition) publish(h *fanout.Hub, b *batch) {
	now := time.Now().UnixNano()
	for i := range b.messages {
		if err := h.Publish(&b.messages[i]); err != nil {
			p.g.l.metrics.unpublished.Add(1)
			p.g.l.log.Error("an order is not published", "partition", p.id.String(), "seq", b.messages[i].At.Seq, "error", err)
			continue
		}
		if b.messages[i].At.Seq > p.end.Seq { // what was there before says nothing of delays
			p.g.l.metrics.observe(now - b.received[i])
		}
	}
	h.Examined(int(p.id), fanout.Position{Seq: b.through.Seq})
	p.readTo.Store(b.through.Seq)
	p.commit.Store(max(b.commit, b.through.Seq))
	p.orders.Add(uint64(len(b.messages)))
	p.books.touch(h, b)
}
