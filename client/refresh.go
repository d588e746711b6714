package client

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// flight is a refresh in progress; whoever wants one meanwhile shares it.
type flight struct {
	done chan struct{}
	err  error
}

// refresh asks for the table of a shard. Concurrent calls for one shard are one
// question to the grid, however many sessions lost their primary.
func (c *Client) refresh(ctx context.Context, shard int, avoid string) error {
	c.mu.Lock()
	f := c.flights[shard]
	if f == nil {
		f = &flight{done: make(chan struct{})}
		c.flights[shard] = f
		go func() {
			ctx, cancel := context.WithTimeout(c.ctx, c.attemptTimeout(time.Second))
			defer cancel()
			targets := c.table.Load().targets(shard, avoid, c.cfg.Endpoints)
			f.err = c.ask(ctx, targets, func(m *wire.Table) bool { return hasShard(m, shard) })
			c.mu.Lock()
			delete(c.flights, shard)
			c.mu.Unlock()
			close(f.done)
		}()
	}
	c.mu.Unlock()
	select {
	case <-f.done:
		return f.err
	case <-ctx.Done():
		return ctx.Err()
	}
}

func hasShard(m *wire.Table, shard int) bool {
	for i := range m.Parts {
		if m.Parts[i].Partition.Shard() == shard {
			return true
		}
	}
	return false
}

// hedge is how long one node may take to say its table before the next is asked
// as well.
const hedge = 50 * time.Millisecond

// ask fetches tables from targets, the next one when one fails or is slow, and
// merges what it gets until enough is satisfied. Seeds it learns are asked too.
func (c *Client) ask(ctx context.Context, targets []string, enough func(*wire.Table) bool) error {
	type answer struct {
		m    *wire.Table
		addr string
		err  error
	}
	answers := make(chan answer) // every sender also looks at ctx
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	asked, open, errs := 0, 0, []error(nil)
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
			if enough(a.m) {
				return nil
			}
			targets = appendNew(targets, c.table.Load().seeds)
		case <-timer.C:
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
	next, err := c.table.Load().merge(m)
	if err != nil {
		return err
	}
	c.table.Store(next)
	return nil
}

// incomplete says what the table lacks, nil if nothing.
func (c *Client) incomplete() error {
	t := c.table.Load()
	if t.shards == 0 {
		return errors.New("no table yet")
	}
	if len(t.missing) > 0 {
		return fmt.Errorf("no node of shard %d is known (%d of %d shards missing): give an endpoint of it, or check the nodes' --seeds", t.missing[0], len(t.missing), t.shards)
	}
	return nil
}

func (c *Client) fetchTable(ctx context.Context, addr string) (*wire.Table, error) {
	var m wire.Table
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
