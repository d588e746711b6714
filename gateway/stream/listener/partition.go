package listener

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ordergrid/ordergrid/client"
	"github.com/ordergrid/ordergrid/gateway/stream/fanout"
	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// partition follows the log of a partition and publishes what it says.
type partition struct {
	g      *generation
	id     wire.PartitionID
	end    client.Position // at the survey
	from   client.Position // read from behind it
	readTo atomic.Uint64   // last entry that was published or passed over
	commit atomic.Uint64   // last committed entry that is known of
	orders atomic.Uint64   // published
	begun  bool            // something was read
	// Of the regions that are streamed; nil: none are.
	regions *regionNames
	puts    chan *regionPut        // of clients; nil: there are none
	source  atomic.Pointer[string] // replica that it was read from last
	books   *books
	// Books that are kept order by order.
	orderBooks *books
	eras       []era        // the newest last; of the loop, and none without generation.wanted
	silent     atomic.Int64 // Unix ns of when a history last waited for a turn, and nothing came

	mu       sync.Mutex
	err      error            // why nothing can be read; nil: it can
	follower *client.Follower // which is told what is wanted
	told     []*selected      // its selections, from number first on, toldMost at most
	first    uint32
}

const (
	// followWindow is what a node may send ahead of a reader.
	followWindow = 1 << 20
	surveyTime   = 5 * time.Second
	retryPause   = 500 * time.Millisecond
	// toldMost selections of a follower are known by their number. A node answers one within some round trips, or none
	// but the newest.
	toldMost = 64
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
	if p.regions != nil { // it may read them
		if _, err := p.g.regionsAt(ctx, p.id, b.Address); err != nil {
			return err
		}
	}
	p.fail(nil)
	return nil
}

// batch is an empty one.
func (p *partition) batch() *batch {
	ring := cmp.Or(p.g.l.cfg.Server.Hub.RingBytes, fanout.DefaultRingBytes)
	return &batch{names: p.regions, streams: p.g.l.cfg.streams, mostOfPair: mostOfPair(ring)}
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
		free <- p.batch()
	}
	for from := p.from; ; {
		f, err := p.follow(ctx, from)
		if err != nil {
			return err
		}
		from, err = p.read(ctx, f, from, free)
		f.Close() //nolint:errcheck // it never fails
		var freed *client.SnapshotRequiredError
		switch {
		case ctx.Err() != nil:
			return nil
		case errors.Is(err, errAnew):
			return err
		case errors.As(err, &freed) && !p.begun: // what the backlog wants is freed: no client has been promised it
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

// follow begins to follow what is wanted, or everything.
func (p *partition) follow(ctx context.Context, from client.Position) (*client.Follower, error) {
	o := client.FollowOptions{Partition: p.id, After: from, Window: followWindow}
	if p.g.wanted == nil {
		o.Executions = p.g.matches()
		return p.g.l.cfg.Client.Follow(ctx, o)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.told[len(p.told)-1]
	o.Selection = &client.Selection{Selectors: now.list, Quiet: quiet}
	f, err := p.g.l.cfg.Client.Follow(ctx, o)
	p.follower, p.told, p.first = f, []*selected{now}, 1
	return f, err
}

// ask has the follower of now, and those after it, get something else. It is on the loop.
func (p *partition) ask(s *selected) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.follower == nil {
		p.told = []*selected{s}
		return
	}
	if _, err := p.follower.Select(client.Selection{Selectors: s.list, Quiet: quiet}); err != nil { // it fits
		p.g.l.log.Error("a node is not told what is wanted", "partition", p.id.String(), "error", err)
		return
	}
	p.told = append(p.told, s)
	if over := len(p.told) - toldMost; over > 0 {
		p.told, p.first = slices.Delete(p.told, 0, over), p.first+uint32(over)
	}
}

// nothing is what is known to be sent where the selection is not known any more. It is no one of those that are asked for.
var nothing = newSelected()

// selectedBy returns by what a part of the log was selected; nil: everything is followed.
func (p *partition) selectedBy(number uint32) *selected {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case number == 0:
		return nil
	case number < p.first || number-p.first >= uint32(len(p.told)):
		return nothing
	}
	p.told, p.first = slices.Delete(p.told, 0, int(number-p.first)), number
	return p.told[0]
}

// examined is end where what else an entry did may not be wanted, and so not be published.
func (g *generation) examined(seq uint64) fanout.Position {
	if g.wanted == nil {
		return fanout.Position{Seq: seq}
	}
	return g.end(seq)
}

// end is the position of a partition up to which an entry is published, with all that it did.
func (g *generation) end(seq uint64) fanout.Position {
	if g.several() {
		return fanout.Position{Seq: seq, Index: math.MaxUint32}
	}
	return fanout.Position{Seq: seq}
}

// skip begins behind entries that are freed.
func (p *partition) skip(after client.Position) bool {
	ok := p.g.server.Do(func(h *fanout.Hub) { h.Begin(int(p.id), p.g.examined(after.Seq)) })
	p.readTo.Store(after.Seq)
	return ok
}

// read publishes what a follower gets, until an error. It returns where to go on.
func (p *partition) read(ctx context.Context, f *client.Follower, from client.Position, free chan *batch) (client.Position, error) {
	for {
		part, err := f.Next(ctx)
		if err == nil {
			err = p.learn(ctx, part)
		}
		if err != nil {
			return from, err
		}
		p.fail(nil)
		p.begun = true
		if at := p.source.Load(); at == nil || *at != part.Address {
			at := part.Address
			p.source.Store(&at)
		}
		if part.Through.Lineage != p.end.Lineage {
			return from, fmt.Errorf("%w: the lineage of %s is %d, it was %d: a loss of data was accepted", errAnew, p.id, part.Through.Lineage, p.end.Lineage)
		}
		var b *batch
		select {
		case b = <-free:
		case <-ctx.Done():
			return from, ctx.Err()
		}
		b.fill(part, int(p.id))
		b.by, b.byFrom = p.selectedBy(part.Selection), part.SelectedFrom
		if !p.g.server.Post(func(h *fanout.Hub) { p.publish(h, b); free <- b }) {
			return from, errors.New("the server ended")
		}
		from = part.Through
	}
}

// publish is on the loop.
func (p *partition) publish(h *fanout.Hub, b *batch) {
	messages, received := b.messages, b.received
	if n := len(p.eras); b.by != nil && (n == 0 || p.eras[n-1].by != b.by) {
		before, _ := slices.BinarySearchFunc(messages, b.byFrom, func(m fanout.Message, seq uint64) int { return cmp.Compare(m.At.Seq, seq) })
		p.publishAll(h, messages[:before], received[:before])
		messages, received = messages[before:], received[before:]
		p.begins(h, b)
	}
	p.publishAll(h, messages, received)
	h.Examined(int(p.id), p.g.examined(b.through.Seq))
	p.readTo.Store(b.through.Seq)
	p.commit.Store(max(b.commit, b.through.Seq))
	p.orders.Add(uint64(b.orders()))
	p.books.touch(h, b)
	p.orderBooks.touch(h, b)
}

// begins begins an era, at the entry from which on the node selects in another way.
func (p *partition) begins(h *fanout.Hub, b *batch) {
	h.Examined(int(p.id), p.g.end(b.byFrom-1))
	if len(p.eras) == eras {
		p.eras = slices.Delete(p.eras, 0, 1)
	}
	p.eras = append(p.eras, era{after: h.Last(int(p.id)), by: b.by})
	p.books.begins(h, b.byFrom-1)
	p.orderBooks.begins(h, b.byFrom-1)
	p.g.wanted.began(int(p.id))
}

func (p *partition) publishAll(h *fanout.Hub, messages []fanout.Message, received []int64) {
	now := time.Now().UnixNano()
	for i := range messages {
		if err := h.Publish(&messages[i]); err != nil {
			p.g.l.metrics.unpublished.Add(1)
			p.g.l.log.Error("a message is not published", "partition", p.id.String(), "seq", messages[i].At.Seq, "error", err)
			continue
		}
		if messages[i].At.Seq > p.end.Seq && isOfOrder(messages[i].Topic) { // what was there before says nothing of delays
			p.g.l.metrics.observe(now - received[i])
		}
	}
}
