package client

import (
	"context"
	"sync"
	"time"

	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// Shards that are added take orders from one moment to the next, and the first orders
// of each partition would wait until it is connected to: a dial, a TLS handshake, a
// session opened. So a client that submits opens its sessions there first, and goes on
// with the shards it has for as long as that takes, aheadLimit at most.

const aheadLimit = time.Second

// merged is old with what a node said. It runs with mu held.
func (c *Client) merged(old *table, m *wire.Table) (*table, error) {
	next, err := old.merge(m)
	if err != nil || len(next.placing) <= len(old.placing) || len(old.placing) == 0 || !c.submits() {
		return next, err
	}
	if revision := next.layout.Revision; revision > c.opening && next.open() > old.open() {
		c.opening = revision
		var added []wire.PartitionID
		for _, p := range next.placing {
			if p.Shard() >= old.open() {
				added = append(added, p)
			}
		}
		next.ahead = revision
		next.place(old)
		go c.openAhead(added, revision)
	}
	return next, nil
}

// submits says whether orders go by the sessions that the client keeps.
func (c *Client) submits() bool {
	for key := range *c.shared.Load() {
		if key.reads == 0 {
			return true
		}
	}
	return false
}

// openAhead opens sessions of partitions, and has orders go there.
func (c *Client) openAhead(added []wire.PartitionID, revision uint64) {
	ctx, cancel := context.WithTimeout(c.ctx, aheadLimit)
	defer cancel()
	var wg sync.WaitGroup
	for _, p := range added {
		if s, err := c.sharedSession(p, 0); err == nil {
			wg.Go(func() { s.open(ctx) }) //nolint:errcheck // whoever submits there hears of it
		}
	}
	wg.Wait()
	for {
		old := c.table.Load()
		if old.ahead != revision {
			return
		}
		next := *old
		next.parts, next.ahead = append([]PartitionInfo(nil), old.parts...), 0
		next.place(old)
		if c.table.CompareAndSwap(old, &next) {
			return
		}
	}
}
