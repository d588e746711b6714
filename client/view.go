package client

import (
	"bytes"
	"fmt"
	"time"

	"github.com/ordergrid/ordergrid/grid-node/order"
	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// OrderView is a committed order as an asynchronous read hands it to its
// callback. It lies in the buffer it was received into: view and bytes are valid
// until the callback returns. Order copies it.
type OrderView struct {
	partition wire.PartitionID
	commit    uint64
	from      string
	entry     []byte // checked
	head      order.Entry
	decoded   bool
}

// decode reads the header at the first use: many readers want the bytes only.
func (v *OrderView) decode() *order.Entry {
	if !v.decoded {
		v.decoded = true
		order.DecodeEntry(v.entry, &v.head) //nolint:errcheck // it was checked on receipt
	}
	return &v.head
}

func (v *OrderView) field(off uint16, n uint8) []byte {
	fix := order.Payload(v.entry) // offsets count from there
	return fix[off : int(off)+int(n) : int(off)+int(n)]
}

// ID is the partition and the place in its log.
func (v *OrderView) ID() wire.OrderID {
	return wire.OrderID{Partition: v.partition, Seq: order.Seq(v.entry)}
}

// Epoch in which the order was sequenced.
func (v *OrderView) Epoch() uint64 { return uint64(v.decode().Epoch) }

// Hash of the order's log entry, that of its receipt.
func (v *OrderView) Hash() uint64 { return order.Hash(v.entry) }

// Received is when the primary received the order, in nanoseconds since 1970.
func (v *OrderView) Received() int64 { return v.decode().TimeNs }

// ClOrdID is the value of FIX tag 11.
func (v *OrderView) ClOrdID() []byte { return order.ClOrdID(v.entry) }

// Symbol is the value of FIX tag 55; empty if the message has none.
func (v *OrderView) Symbol() []byte {
	e := v.decode()
	return v.field(e.Fields.SymbolOff, e.Fields.SymbolLen)
}

// Account is the value of FIX tag 1; empty if the message has none.
func (v *OrderView) Account() []byte {
	e := v.decode()
	return v.field(e.Fields.AccountOff, e.Fields.AccountLen)
}

// Side is the value of FIX tag 54; 0 if the message has none.
func (v *OrderView) Side() byte { return v.decode().Fields.Side }

// FIX is the message verbatim.
func (v *OrderView) FIX() []byte { return order.Message(v.entry) }

// Entry is the log entry, header included.
func (v *OrderView) Entry() []byte { return v.entry }

// CommitSeq is the committed prefix of the replica that answered.
func (v *OrderView) CommitSeq() uint64 { return v.commit }

// From is the address of that replica.
func (v *OrderView) From() string { return v.from }

// Order is a copy that may be kept.
func (v *OrderView) Order() Order {
	c := OrderView{partition: v.partition, commit: v.commit, from: v.from, entry: bytes.Clone(v.entry)}
	return Order{
		ID: c.ID(), Epoch: c.Epoch(), Received: time.Unix(0, c.Received()),
		ClOrdID: string(c.ClOrdID()), Symbol: string(c.Symbol()), Account: string(c.Account()), Side: c.Side(),
		FIX: c.FIX(), Entry: c.entry, CommitSeq: c.commit, From: c.from,
	}
}

// checkReply checks that an answer is complete, of the order asked for, and part of what the
// replica reports as committed.
func checkReply(request *wire.Get, reply *wire.GetReply) error {
	switch {
	case reply.Status == wire.GetNotFound:
		return nil
	case reply.Status == wire.GetFreed && request.By == wire.ByID && request.Seq > reply.Freed:
		return fmt.Errorf("GetReply.freed is %d, allowed: at least %d, which was asked for", reply.Freed, request.Seq)
	case reply.Status == wire.GetFreed:
		return nil
	}
	var e order.Entry
	entry, err := order.DecodeEntry(reply.Entry, &e)
	switch {
	case err != nil:
		return fmt.Errorf("GetReply.entry: %w", err)
	case len(entry) != len(reply.Entry):
		return fmt.Errorf("GetReply.entry: %d bytes follow the entry, allowed: none", len(reply.Entry)-len(entry))
	case !e.Kind.IsOrder():
		return fmt.Errorf("GetReply.entry: kind is %s, allowed: order", e.Kind)
	case e.Seq > reply.CommitSeq:
		return fmt.Errorf("GetReply.entry: seq is %d, allowed: at most GetReply.commitSeq, %d", e.Seq, reply.CommitSeq)
	case request.By == wire.ByID && e.Seq != request.Seq:
		return fmt.Errorf("GetReply.entry: seq is %d, allowed: %d, which was asked for", e.Seq, request.Seq)
	case request.By == wire.ByFix && !isFixOrder(entry, request.Key):
		return fmt.Errorf("GetReply.entry: clOrdID is %.80q, allowed: %.80q of a FIX session, which was asked for", order.ClOrdID(entry), request.Key[fixKeyFixed:])
	case request.By == wire.ByClOrdID && !bytes.Equal(order.ClOrdID(entry), request.Key):
		return fmt.Errorf("GetReply.entry: clOrdID is %.80q, allowed: %.80q, which was asked for", order.ClOrdID(entry), request.Key)
	}
	return nil
}
