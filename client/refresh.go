package client

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// flight is a refresh of one partition in progress, shared by concurrent callers.
type flight struct {
	began int64         // monotonic
	done  chan struct{} // closed with the answer
	err   error
}

// question is a TableRequest to one node. All callers that want something of the node share it,
// whatever their partition: one node knows the whole grid.
type question struct {
	asked int64         // monotonic
	done  chan struct{} // closed with the answer
	m     *wire.Table
	err   error
}

// shareGap is for how long an answer is shared after it arrived, so that waiting clients do not
// load a grid without a primary.
const shareGap = 2 * time.Millisecond

// refresh asks where a partition is; avoid is an address that is most likely not the
// primary any more. Concurrent calls for one partition are one search, however many
// sessions lost their primary, and so are calls within shareGap. Searches for several
// partitions share the questions to a node, and each judges the answers for its own.
func (c *Client) refresh(ctx context.Context, p wire.PartitionID, avoid string) error {
	return c.fly(p, avoid, 0).wait(ctx)
}

// Refresh asks the grid where its partitions are now. On an error, which is that of the first
// partition no node reports, the table still has the answers for the others.
func (c *Client) Refresh(ctx context.Context) error {
	now := nanotime() // an answer to an earlier question may be older
	flights := make([]*flight, len(c.table.Load().parts))
	for p := range flights {
		flights[p] = c.fly(wire.PartitionID(p), "", now)
	}
	var first error
	for _, f := range flights {
		if err := f.wait(ctx); first == nil {
			first = err
		}
	}
	return first
}

// fly returns the refresh of a partition that is under way, or begins one: always if
// that one began before since.
func (c *Client) fly(p wire.PartitionID, avoid string, since int64) *flight {
	c.mu.Lock()
	defer c.mu.Unlock()
	if f := c.flights[p]; f != nil && f.began >= since {
		return f
	}
	f := &flight{began: nanotime(), done: make(chan struct{})}
	c.flights[p] = f
	go func() {
		ctx, cancel := context.WithTimeout(c.ctx, c.attemptTimeout(time.Second))
		defer cancel()
		targets, own := c.table.Load().targets(p, avoid, c.cfg.Endpoints)
		f.err = c.ask(ctx, p.String(), targets, own, since, func(m *wire.Table) verdict { return judge(m, p, avoid) })
		close(f.done)
		sleep(shareGap, c.ctx.Done(), nil, nil)
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.flights[p] == f {
			delete(c.flights, p)
		}
	}()
	return f
}

func (f *flight) wait(ctx context.Context) error {
	select {
	case <-f.done:
		return f.err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// sighting is an epoch that a session saw and the table lacks.
type sighting struct {
	partition wire.PartitionID
	epoch     uint64
}

// sawEpoch notes the epoch that a session is served in.
func (c *Client) sawEpoch(p wire.PartitionID, epoch uint64) {
	if epoch <= c.epochOf(p) {
		return
	}
	select {
	case c.aged <- sighting{p, epoch}:
	default: // enough are queued
	}
}

// keepTable asks one node for the table of the whole grid periodically, and soon after a session
// has seen an epoch that the table lacks. Random pauses and a random node spread the requests of
// many clients.
func (c *Client) keepTable() {
	every := c.cfg.TableEvery
	timer := time.NewTimer(every/2 + rand.N(every))
	defer timer.Stop()
	for {
		select {
		case <-c.ctx.Done():
			return
		case saw := <-c.aged:
			if !sleep(rand.N(min(time.Second, every)), c.ctx.Done(), nil, nil) {
				return
			}
			c.catchUp(saw)
		case <-timer.C:
			timer.Reset(every/2 + rand.N(every))
			c.askOne()
		}
	}
}

// catchUp asks for the epochs that sessions have seen so far: usually one answer has all of them.
func (c *Client) catchUp(saw sighting) {
	for {
		if saw.epoch > c.epochOf(saw.partition) {
			c.refresh(c.ctx, saw.partition, "") //nolint:errcheck // the next user of the table asks again
		}
		select {
		case saw = <-c.aged:
		default:
			return
		}
	}
}

// askOne asks a node for the table, and others only if that one fails or does not know the whole
// grid.
func (c *Client) askOne() {
	ctx, cancel := context.WithTimeout(c.ctx, c.attemptTimeout(time.Second))
	defer cancel()
	targets := c.table.Load().addresses(c.cfg.Endpoints)
	rand.Shuffle(len(targets), func(i, j int) { targets[i], targets[j] = targets[j], targets[i] })
	targets = targets[:min(len(targets), maxTargets)]
	c.ask(ctx, "the grid's partitions", targets, len(targets), 0, c.judgeWhole) //nolint:errcheck // the next user of the table asks again
}

// verdict rates a node's table for the caller.
type verdict uint8

const (
	useless verdict = iota
	stale           // better than nothing: the other members of the partition are asked as well
	enough
)

// judge: a member that still names avoid as the primary, or names none, may be behind.
func judge(m *wire.Table, id wire.PartitionID, avoid string) verdict {
	v := useless
	for i := range m.Parts {
		p := &m.Parts[i]
		if p.Partition != id {
			continue
		}
		if int(p.Primary) >= len(p.Members) || string(p.Members[p.Primary].Address) == avoid {
			return stale
		}
		v = enough
	}
	return v
}

// judgeWhole is for a question about all partitions; other nodes may report what one does not know.
func (c *Client) judgeWhole(m *wire.Table) verdict {
	switch {
	case c.table.Load().whole():
		return enough
	case len(m.Parts) > 0:
		return stale
	}
	return useless
}

// hedge is how long one node may take to answer before the next is asked as well.
const hedge = 50 * time.Millisecond

// ask gets tables from targets, the next one when one fails or is slow, until a table is
// enough, or the first own targets were asked and one that is stale is all there is.
func (c *Client) ask(ctx context.Context, what string, targets []string, own int, since int64, judge func(*wire.Table) verdict) error {
	type answer struct {
		m    *wire.Table
		addr string
		err  error
	}
	answers := make(chan answer) // every sender also looks at ctx
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	asked, open, answered, errs := 0, 0, false, []error(nil)
	start := func() {
		addr := targets[asked]
		asked, open = asked+1, open+1
		go func() {
			m, err := c.tableOf(ctx, addr, since)
			select {
			case answers <- answer{m, addr, err}:
			case <-ctx.Done():
			}
		}()
	}
	timer := time.NewTicker(hedge)
	defer timer.Stop()
	for {
		if open == 0 {
			if answered && asked >= own {
				return nil
			}
			if asked == len(targets) {
				return fmt.Errorf("no node knows where to find %s: %w", what, join(errs...))
			}
			start()
		}
		select {
		case a := <-answers:
			open--
			if a.err != nil {
				errs = append(errs, fmt.Errorf("%s: %w", a.addr, a.err))
				continue
			}
			switch judge(a.m) {
			case enough:
				return nil
			case stale:
				answered = true
			case useless:
				errs = append(errs, fmt.Errorf("%s knows %d of the grid's %d partitions; the records of others may not be made yet", a.addr, len(a.m.Parts), a.m.Partitions))
			}
		case <-timer.C:
			if answered && asked >= own {
				return nil
			}
			if asked < len(targets) {
				start()
			}
		case <-ctx.Done():
			return fmt.Errorf("no node answered in time where to find %s: %w", what, join(append(errs, ctx.Err())...))
		}
	}
}

// tableOf is the table of the node at addr, requested at since or later.
func (c *Client) tableOf(ctx context.Context, addr string, since int64) (*wire.Table, error) {
	c.mu.Lock()
	q := c.questions[addr]
	if q == nil || q.asked < since {
		q = &question{asked: nanotime(), done: make(chan struct{})}
		c.questions[addr] = q
		go c.put(q, addr)
	}
	c.mu.Unlock()
	select {
	case <-q.done:
		return q.m, q.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// put asks a node, and merges its answer into the client's table.
func (c *Client) put(q *question, addr string) {
	ctx, cancel := context.WithTimeout(c.ctx, c.attemptTimeout(time.Second))
	defer cancel()
	if q.m, q.err = c.fetchTable(ctx, addr); q.err == nil {
		q.err = c.learn(addr, q.m)
	}
	close(q.done)
	sleep(shareGap, c.ctx.Done(), nil, nil)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.questions[addr] == q {
		delete(c.questions, addr)
	}
}

// learn merges a node's table into the client's.
func (c *Client) learn(addr string, m *wire.Table) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	old := c.table.Load()
	next, err := old.merge(m)
	if err != nil {
		c.cfg.Logger.Error("protocol violation", "peer", addr, "what", err)
		return &ProtocolError{Address: addr, What: err.Error()}
	}
	c.table.Store(next)
	if next.changed != old.changed && old.changed != nil {
		close(old.changed)
	}
	return nil
}

func (c *Client) fetchTable(ctx context.Context, addr string) (*wire.Table, error) {
	var m wire.Table
	if _, err := c.callerOf(ctx, addr); err != nil {
		return nil, err
	}
	// Connected it is one round trip; a dead connection has to be detected while there is time for
	// another.
	ctx, cancel := context.WithTimeout(ctx, c.attemptTimeout(500*time.Millisecond))
	defer cancel()
	err := c.call(ctx, addr, func(dst []byte, reqID uint64) []byte {
		return wire.AppendRequest(dst, wire.TypeTableRequest, &wire.Request{ReqID: reqID})
	}, func(frame []byte) error { return wire.DecodeTable(append([]byte(nil), frame...), &m) })
	if err != nil {
		return nil, err
	}
	return &m, nil
}

// partition is a copy of the table's row.
func (c *Client) partition(id wire.PartitionID) (PartitionInfo, bool) {
	if p, ok := c.table.Load().find(id); ok {
		return *p, true
	}
	return PartitionInfo{}, false
}

func (c *Client) addressOf(id wire.PartitionID) string {
	p, _ := c.partition(id)
	return p.Primary.Address
}

func (c *Client) epochOf(id wire.PartitionID) uint64 {
	p, _ := c.partition(id)
	return p.Epoch
}
