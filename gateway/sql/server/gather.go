package server

import (
	"context"

	"github.com/ordergrid/ordergrid/gateway/sql"
)

// maxGathered bounds the bytes of rows that all connections together keep to sort them or make groups of them.
const maxGathered = 256 << 20

// gatherStep is how often the bound is looked at.
const gatherStep = 1 << 20

// gathered is the next of the rows of a region that are sorted, or of its groups. The first one needs all entries.
func (r *cursor) gathered(ctx context.Context) (record, bool, error) {
	if r.gather == nil {
		g := r.plan.NewGather()
		kept, told := r.c.keptRows(), 0
		for {
			row, ok, err := r.entries.next(ctx)
			if err == nil {
				err = ctx.Err()
			}
			if err != nil {
				return record{}, false, err
			}
			if !ok {
				break
			}
			if err := g.Add(row); err != nil {
				return record{}, false, err
			}
			if g.Bytes() < told+gatherStep {
				continue
			}
			told = g.Bytes()
			r.c.gathered.Store(kept + int64(told))
			if n := r.c.s.gathered(); n > maxGathered {
				r.c.gathered.Store(kept)
				return record{}, false, sql.Refuse("53200", "statements that sort rows of regions, or make groups of them, keep %d MiB in the gateway, allowed: %d", n>>20, maxGathered>>20)
			}
		}
		if err := g.Sort(); err != nil {
			return record{}, false, err
		}
		r.gather = g
	}
	row, group, ok := r.gather.Next()
	return record{values: row, group: group}, ok, nil
}

// keptRows are the bytes that open portals keep.
func (c *conn) keptRows() int64 {
	n := 0
	for _, pl := range c.portals {
		if pl.rows != nil && pl.rows.gather != nil {
			n += pl.rows.gather.Bytes()
		}
	}
	return int64(n)
}

// gathered are the bytes that all connections keep.
func (s *Server) gathered() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := int64(0)
	for _, c := range s.conns {
		n += c.gathered.Load()
	}
	return n
}
