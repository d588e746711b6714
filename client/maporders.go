package client

import (
	"context"
	"sync"
	"time"

	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// A Map over orders that is divided into slices is of one prefix of each partition's log, which the primary names before
// the first slice is asked for.

// mapPrefix is that of a partition; it is asked for once.
type mapPrefix func() (from, through uint64, err error)

// mapPrefixes returns those of partitions of a Map.
func (c *Client) mapPrefixes(ctx context.Context, q *MapRequest, slices int, of []wire.PartitionID) []mapPrefix {
	all := make([]mapPrefix, len(of))
	for i, p := range of {
		all[i] = func() (uint64, uint64, error) { return 0, 0, nil } // whatever the primary has
		if q.Orders && slices > 1 {
			type prefix struct{ from, through uint64 }
			ask := sync.OnceValues(func() (prefix, error) {
				part := MapPart{Partition: p}
				err := c.mapOrders(ctx, &wire.MapOrders{Slices: 1}, &part, c.cfg.RequestTimeout)
				return prefix{part.From, part.Seq}, err
			})
			all[i] = func() (uint64, uint64, error) {
				x, err := ask()
				return x.from, x.through, err
			}
		}
	}
	return all
}

// mapOrdersSlice has one slice computed, at the primary.
func (c *Client) mapOrdersSlice(ctx context.Context, function string, q *MapRequest, slices int, part *MapPart, of mapPrefix) error {
	from, through, err := of()
	if err != nil {
		return err
	}
	m := wire.MapOrders{From: from, Through: through, Slice: uint16(part.Slice), Slices: uint16(slices), Function: []byte(function), Args: q.Args}
	return c.mapOrders(ctx, &m, part, q.Timeout)
}

// mapOrders asks primaries until one answers.
func (c *Client) mapOrders(ctx context.Context, m *wire.MapOrders, part *MapPart, timeout time.Duration) error {
	begun := time.Now()
	_, err := c.retry(ctx, part.Partition, false, func(_ context.Context, addr string) error {
		attempt, cancel := context.WithTimeout(ctx, timeout+mapGrace)
		defer cancel()
		m.TimeoutMs = uint32(min(timeout, time.Minute*10) / time.Millisecond)
		part.Address = addr
		frame, err := c.mapFrame(attempt, addr, part.Partition, func(dst []byte, reqID uint64) []byte {
			m.ReqID = reqID
			return wire.AppendMapOrders(dst, part.Partition, m)
		})
		if err != nil {
			return err
		}
		var a wire.MapOrdersPart
		if err := wire.DecodeMapOrdersPart(frame, &a); err != nil {
			return &ProtocolError{Address: addr, What: "answer", Cause: err}
		}
		part.Reply, part.Rows, part.Fuel, part.Epoch = append([]byte(nil), a.Reply...), a.Rows, a.Fuel, a.Epoch
		part.From, part.Seq, part.Hash = a.From, a.Through, a.ThroughHash
		return nil
	})
	part.Took = time.Since(begun)
	return err
}
