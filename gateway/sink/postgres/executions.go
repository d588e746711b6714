package postgres

import (
	"encoding/binary"

	"github.com/ordergrid/ordergrid/client"
	"github.com/ordergrid/ordergrid/gateway/sink"
	"github.com/ordergrid/ordergrid/grid-node/order"
	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// executionRows is the executions of a batch as data of COPY.
type executionRows struct {
	copyData
	grid    []byte
	part    wire.PartitionID
	list    []client.Executed
	entries []client.LogEntry // those of the batch that were not passed, for the lineage
	lineage uint32            // at the next of them
}

// next encodes the next execution, its columns in the order of executionColumns.
func (r *executionRows) next() bool {
	if len(r.list) == 0 {
		return false
	}
	e := &r.list[0]
	r.list = r.list[1:]
	for len(r.entries) > 0 && r.entries[0].Seq <= e.Entry {
		if x := &r.entries[0]; x.Kind == order.KindNoop {
			r.lineage = uint32(binary.LittleEndian.Uint64(order.Payload(x.Bytes)))
		}
		r.entries = r.entries[1:]
	}
	t := sink.TextOf(e)
	b := be.AppendUint16(r.buf, uint16(len(executionColumns)))
	b = appendBytes(b, r.grid)
	b = appendInt32(b, int32(r.part))
	b = appendInt64(b, int64(e.Entry))
	b = appendInt32(b, int32(e.N))
	b = appendInt64(b, int64(r.lineage))
	b = appendInt64(b, microseconds(e.Received.UnixNano()))
	b = appendString(b, e.Kind.String())
	b = appendString(b, e.Symbol)
	b = appendString(b, e.Account)
	b = appendString(b, t.Side)
	b = appendString(b, e.ClOrdID)
	b = appendSeq(b, e.Order)
	b = appendSeq(b, t.Other)
	for _, amount := range [...]string{t.Price, t.Quantity, t.Leaves, t.Cumulative} {
		b = appendAmount(b, amount)
	}
	b = appendString(b, t.Reason)
	r.buf = appendBool(appendBool(b, e.Passive), e.Auction)
	return true
}

// appendSeq appends the number of an entry, NULL for 0.
func appendSeq(b []byte, seq uint64) []byte {
	if seq == 0 {
		return appendNull(b)
	}
	return appendInt64(b, int64(seq))
}

// appendAmount appends a decimal number, NULL for none.
func appendAmount(b []byte, text string) []byte {
	if text == "" {
		return appendNull(b)
	}
	b, _ = appendNumeric(b, []byte(text)) // it is one
	return b
}
