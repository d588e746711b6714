package client

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// flight is a refresh in progress, shared by concurrent callers.
type flight struct {
	done chan struct{} // closed with the answer
	gone chan struct{} // closed when the next caller begins another
	err  error
	all  bool // the answer was of the whole grid
}

// refresh asks for the table of a shard; avoid is an address that is most likely
// not the primary any more. Concurrent calls for one shard are one question to
// the grid, however many sessions lost their primary, and so are calls within
// flightGap: a grid without a primary is not to be kept busy by those who wait.
func (c *Client) refresh(ctx context.Context, shard int, avoid string) error {
	f, _ := c.fly(shard, avoid)
	return f.wait(ctx)
}

// refreshNow is refresh whose question is asked after the call: the answer of one that
// was under way may be older.
func (c *Client) refreshNow(ctx context.Context, shard int) error {
	f, began := c.fly(shard, "")
	if !began {
		select {
		case <-f.gone:
		case <-ctx.Done():
			return ctx.Err()
		}
		f, _ = c.fly(shard, "")
	}
	return f.wait(ctx)
}

// fly returns the refresh of a shard that is under way, or begins one and reports so.
func (c *Client) fly(shard int, avoid string) (f *flight, began bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if f := c.flights[shard]; f != nil {
		return f, false
	}
	f = &flight{done: make(chan struct{}), gone: make(chan struct{})}
	c.flights[shard] = f
	go func() {
		defer close(f.gone)
		ctx, cancel := context.WithTimeout(c.ctx, c.attemptTimeout(time.Second))
		defer cancel()
		targets, own := c.table.Load().targets(shard, avoid, c.cfg.Endpoints)
		f.err = c.ask(ctx, targets, own, func(m *wire.Table) verdict {
			f.all = f.all || wholeGrid(m)
			return judge(m, shard, avoid)
		})
		close(f.done)
		sleep(flightGap, c.ctx.Done(), nil, nil)
		c.mu.Lock()
		delete(c.flights, shard)
		c.mu.Unlock()
	}()
	return f, true
}

func (f *flight) wait(ctx context.Context) error {
	select {
	case <-f.done:
		return f.err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// keepTable asks for the table now and then, and soon after a session has seen an
// epoch that the table does not have. One node knows the whole grid, one of the release
// before its own shard. Random pauses and a random shard keep many clients apart.
func (c *Client) keepTable() {
	every := c.cfg.TableEvery
	timer := time.NewTimer(every/2 + rand.N(every))
	defer timer.Stop()
	for {
		select {
		case <-c.ctx.Done():
			return
		case shard := <-c.aged:
			if !sleep(rand.N(min(time.Second, every)), c.ctx.Done(), nil, nil) {
				return
			}
			c.refresh(c.ctx, shard, "") //nolint:errcheck // whoever needs the table asks again
		case <-timer.C:
			timer.Reset(every/2 + rand.N(every))
			c.refreshAll()
		}
	}
}

// refreshAll asks for the table of every shard, until an answer is of the whole grid.
func (c *Client) refreshAll() {
	shards := c.table.Load().shards
	first := rand.IntN(shards)
	for i := range shards {
		f, _ := c.fly((first+i)%shards, "")
		if f.wait(c.ctx) == nil && f.all { // else whoever needs the table asks again
			return
		}
	}
}

// wholeGrid reports whether a table has partitions of every shard.
func wholeGrid(m *wire.Table) bool {
	shards := int(m.NShards)
	if m.Layout.Revision != 0 {
		shards = int(m.Layout.Shards)
	}
	known := make(map[int]bool, shards)
	for i := range m.Parts {
		if shard := m.Parts[i].Partition.Shard(); shard < shards {
			known[shard] = true
		}
	}
	return len(known) == shards
}

// sawEpoch is told the epoch that a session is served in.
func (c *Client) sawEpoch(p wire.PartitionID, epoch uint64) {
	if epoch <= c.epochOf(p) {
		return
	}
	c.ageTable(p.Shard())
}

const flightGap = 2 * time.Millisecond

// verdict is what a node's table is worth to whoever asked.
type verdict uint8

const (
	useless verdict = iota
	stale           // better than nothing: the other members of the shard are asked as well
	enough
)

// judge: a member that still takes avoid for a primary, or knows none, may not
// have heard yet.
func judge(m *wire.Table, shard int, avoid string) verdict {
	v := useless
	for i := range m.Parts {
		p := &m.Parts[i]
		if p.Partition.Shard() != shard {
			continue
		}
		if int(p.Primary) >= len(p.Members) || string(p.Members[p.Primary].Address) == avoid {
			return stale
		}
		v = enough
	}
	return v
}

// hedge is how long one node may take to say its table before the next is asked
// as well.
const hedge = 50 * time.Millisecond

// ask fetches tables from targets, the next one when one fails or is slow, and
// merges what it gets until a table is enough, or the first own targets were
// asked and one that is stale is all there is. Seeds it learns are asked too.
func (c *Client) ask(ctx context.Context, targets []string, own int, judge func(*wire.Table) verdict) error {
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
			m, err := c.fetchTable(ctx, addr)
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
				return fmt.Errorf("no node gave the partition table: %w", join(append(errs, c.incomplete())...))
			}
			start()
		}
		select {
		case a := <-answers:
			open--
			if a.err == nil {
				a.err = c.learn(a.m)
			}
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
			}
			targets = appendNew(targets, c.table.Load().seeds)
		case <-timer.C:
			if answered && asked >= own {
				return nil
			}
			if asked < len(targets) {
				start()
			}
		case <-ctx.Done():
			return fmt.Errorf("no node gave the partition table in time: %w", join(append(errs, c.incomplete(), ctx.Err())...))
		}
	}
}

func appendNew(list, more []string) []string {
next:
	for _, m := range more {
		for _, l := range list {
			if l == m {
				continue next
			}
		}
		list = append(list, m)
	}
	return list
}

// learn merges a node's table into the client's.
func (c *Client) learn(m *wire.Table) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	old := c.table.Load()
	next, err := c.merged(old, m)
	if err != nil {
		return err
	}
	for !c.table.CompareAndSwap(old, next) { // sawClosed holds no lock
		old = c.table.Load()
		if next, err = c.merged(old, m); err != nil {
			return err
		}
	}
	if next.layout.Revision > old.layout.Revision && old.shards != 0 {
		c.cfg.Logger.Info("shards of the grid changed", "shards", next.shards, "takeOrders", next.layout.Open, "revision", next.layout.Revision)
		for _, shard := range next.missing {
			c.ageTable(shard)
		}
	}
	if next.changed != old.changed && old.changed != nil {
		close(old.changed)
	}
	return nil
}

// incomplete says what the table lacks, nil if nothing.
func (c *Client) incomplete() error {
	t := c.table.Load()
	if t.shards == 0 {
		return errors.New("no table yet")
	}
	if len(t.missing) > 0 {
		return fmt.Errorf("no node of shard %d is known (%d of %d shards missing): give an endpoint of it; a node that cannot list the grid's records knows its own shard only", t.missing[0], len(t.missing), t.shards)
	}
	return nil
}

func (c *Client) fetchTable(ctx context.Context, addr string) (*wire.Table, error) {
	var m wire.Table
	if _, err := c.callerOf(ctx, addr); err != nil {
		return nil, err
	}
	// Connected it is one round trip; a connection that has gone deaf is to be
	// found out while there is time for another.
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
