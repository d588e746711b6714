package client

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// ExecutionKind is what happened to an order, in a grid that matches.
type ExecutionKind uint8

// Kinds, as docs/exchange.md explains them. Others are of books, not of orders.
const (
	ExecAccepted       ExecutionKind = 1
	ExecRejected       ExecutionKind = 2
	ExecFilled         ExecutionKind = 3
	ExecCancelled      ExecutionKind = 4
	ExecCancelRejected ExecutionKind = 5
	ExecReplaced       ExecutionKind = 6
	ExecRestated       ExecutionKind = 7
	ExecTriggered      ExecutionKind = 8
)

var executionNames = [...]string{1: "accepted", 2: "rejected", 3: "filled", 4: "cancelled", 5: "cancel rejected", 6: "replaced", 7: "restated", 8: "triggered",
	9: "state changed", 10: "auction price", 11: "mass cancelled", 12: "band changed"}

func (k ExecutionKind) String() string {
	if int(k) < len(executionNames) && executionNames[k] != "" {
		return executionNames[k]
	}
	return fmt.Sprintf("kind %d", uint8(k))
}

// Execution is a record of what a committed entry did. Order and Other are numbers of
// entries: an order has that of its last accepted message. Prices and quantities are in
// the units of the instrument.
type Execution struct {
	Partition               wire.PartitionID
	Entry                   uint64
	N                       uint32 // in the entry, from 1
	Kind                    ExecutionKind
	Side                    uint8 // 1 buy, 2 sell
	Reason                  uint8 // of a rejection or cancel, see docs/exchange.md
	Passive, Auction        bool  // of a trade: the order was in the book before; in an auction
	Flags                   uint8 // as sent: 1 Passive, 2 Auction; of a change of a book's state the BookState
	Book                    uint16
	Owner                   uint32 // session, as the partition numbers them
	Order, Other            uint64
	Price, Qty, Leaves, Cum int64
}

// ID is the execution's name, the same on every copy: p1/17.2.
func (e *Execution) ID() string { return fmt.Sprintf("%s/%d.%d", e.Partition, e.Entry, e.N) }

// decodeExecution reads a record and its number in its entry.
func decodeExecution(p wire.PartitionID, entry uint64, b []byte) Execution {
	return DecodeExecution(p, entry, binary.LittleEndian.Uint32(b), b[8:wire.ExecSize])
}

// DecodeExecution reads the wire.ExecRecordSize bytes of a record, which is the n-th of its
// entry.
func DecodeExecution(p wire.PartitionID, entry uint64, n uint32, r []byte) Execution {
	le := binary.LittleEndian
	e := Execution{Partition: p, Entry: entry, N: n, Order: le.Uint64(r), Other: le.Uint64(r[8:]), Price: int64(le.Uint64(r[16:])), Qty: int64(le.Uint64(r[24:])),
		Leaves: int64(le.Uint64(r[32:])), Cum: int64(le.Uint64(r[40:])), Owner: le.Uint32(r[48:]), Book: le.Uint16(r[56:]), Kind: ExecutionKind(r[58]), Side: r[59], Reason: r[60]}
	e.Flags = r[61]
	e.Passive, e.Auction = r[61]&1 != 0, r[61]&2 != 0
	return e
}

// onExecutions gives the records of a frame to the user.
func (s *Session) onExecutions(c *conn, frame []byte) error {
	var m wire.Executions
	if err := wire.DecodeExecutions(frame, &m); err != nil {
		return s.violation(c, "executions", err)
	}
	if s.client.cfg.OnExecutions == nil {
		return s.violation(c, "executions were not asked for", nil)
	}
	if m.Slot != s.slot {
		return s.violation(c, fmt.Sprintf("executions are for session slot %d, allowed: %d", m.Slot, s.slot), nil)
	}
	list := make([]Execution, 0, len(m.Records)/wire.ExecSize)
	for rest := m.Records; len(rest) > 0; rest = rest[wire.ExecSize:] {
		list = append(list, decodeExecution(s.partition, m.Entry, rest))
	}
	s.client.cfg.OnExecutions(list)
	return nil
}

// ReadExecutions calls fn for every record of the committed entries of a replica from entry
// from on, of all sessions, and returns the entry to go on with: the one behind those that
// were committed at the end of the read. replica is the address of a member of the
// partition; "" means the primary. ErrSnapshotRequired: entry from is freed, and what it
// did with it; the *RejectError's Detail is the last one that is.
func (c *Client) ReadExecutions(ctx context.Context, partition wire.PartitionID, replica string, from uint64, fn func(Execution) error) (next uint64, err error) {
	if err := c.checkPartition(partition); err != nil {
		return from, err
	}
	if from == 0 {
		return from, errors.New("client: ReadExecutions: from is 0, allowed: an entry of 1 or more")
	}
	for {
		var m wire.ExecutionsRead
		ask := func(ctx context.Context, addr string) error {
			return c.call(ctx, addr, func(dst []byte, reqID uint64) []byte {
				return wire.AppendReadExecutions(dst, partition, &wire.ReadExecutions{ReqID: reqID, From: from})
			}, func(frame []byte) error { return wire.DecodeExecutionsRead(frame, &m) })
		}
		if replica != "" {
			err = ask(ctx, replica)
		} else {
			_, err = c.retry(ctx, partition, false, ask)
		}
		if err != nil {
			return from, fmt.Errorf("read the executions of %s from entry %d: %w", partition, from, err)
		}
		if m.Through+1 < from || m.Through > m.CommitSeq && m.Through+1 != from {
			return from, fmt.Errorf("read the executions of %s from entry %d: the answer goes through entry %d, allowed: %d..%d", partition, from, m.Through, from-1, m.CommitSeq)
		}
		for rest := m.Records; len(rest) > 0; rest = rest[wire.ExecReadSize:] {
			entry := binary.LittleEndian.Uint64(rest)
			if entry < from || entry > m.Through {
				return from, fmt.Errorf("read the executions of %s from entry %d: one is of entry %d, allowed: %d..%d", partition, from, entry, from, m.Through)
			}
			if err := fn(decodeExecution(partition, entry, rest[8:])); err != nil {
				return from, err
			}
		}
		done := m.Through+1 == from || m.Through == m.CommitSeq
		if from = m.Through + 1; done {
			return from, nil
		}
	}
}
