package client

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/ordergrid/ordergrid/grid-node/order"
	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// FixSession is the id of a FIX session.
type FixSession [2]uint64

// FixSessionOf is the id of the session between two CompIDs, as the Logon of its initiator
// has them: begin is BeginString, sender and target are SenderCompID and TargetCompID. subIDs
// are SenderSubID, SenderLocationID, TargetSubID and TargetLocationID, those in use.
func FixSessionOf(begin, sender, target string, subIDs ...string) FixSession {
	h := sha256.New()
	for _, s := range append([]string{begin, sender, target}, subIDs...) {
		h.Write(append([]byte(s), 1)) //nolint:errcheck // it never fails
	}
	sum := h.Sum(nil)
	return FixSession{binary.LittleEndian.Uint64(sum), binary.LittleEndian.Uint64(sum[8:])}
}

// FixToday is the day that a session is in.
const FixToday = wire.FixToday

// RouteFix is the partition of a FIX session: all its orders are there. A session with a
// segment, in a grid that matches, is in that of its segment (RouteSymbol).
func (c *Client) RouteFix(s FixSession) wire.PartitionID {
	return wire.PartitionID(s[0] % uint64(len(c.table.Load().parts)))
}

// fixKeyFixed is what stands before the ClOrdID in the key of a read.
const fixKeyFixed = 20

// isFixOrder reports whether an entry may be the order of a key.
func isFixOrder(entry, key []byte) bool {
	_, _, clOrdID := wire.SplitFixKey(key)
	return order.IsFix(entry) && bytes.Equal(order.ClOrdID(entry), clOrdID)
}

// GetFix reads the order with a ClOrdID of a FIX session, where it is unique within a day:
// days since 1970 as the session's calendar has it, or FixToday. ErrNotFound, ErrFreed: as
// with GetByClOrdID. All nodes have to know FIX sessions. Before a grid that matches it asks
// all partitions: the session's segment is not known here.
func (c *Client) GetFix(ctx context.Context, s FixSession, day uint32, clOrdID string, opts ...ReadOption) (Order, error) {
	if clOrdID == "" || len(clOrdID) > wire.MaxKey-fixKeyFixed {
		return Order{}, badClOrdID(len(clOrdID))
	}
	home, n := c.RouteFix(s), 1
	if c.BySymbol() {
		n = len(c.table.Load().parts)
	}
	var o Order
	err := ErrNotFound
	for i := 0; i < n && errors.Is(err, ErrNotFound); i++ {
		p := wire.PartitionID((int(home) + i) % len(c.table.Load().parts))
		o, err = c.get(ctx, p, &wire.Get{By: wire.ByFix, Key: wire.FixKey(s, day, []byte(clOrdID))}, opts)
	}
	if errors.Is(err, ErrNotFound) {
		return o, fmt.Errorf("client: ClOrdID %.80q of FIX session %016x%016x: %w", clOrdID, s[0], s[1], err)
	}
	return o, err
}
