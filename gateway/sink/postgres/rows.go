package postgres

import (
	"bytes"
	"encoding/binary"
	"fmt"

	"github.com/ordergrid/ordergrid/client"
	"github.com/ordergrid/ordergrid/grid-node/order"
	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// rows is the orders of a batch as data of COPY.
type rows struct {
	copyData
	grid    []byte
	part    wire.PartitionID
	entries []client.LogEntry
	lineage uint32 // at the next entry
}

// next encodes the next entry, if it is an order.
func (r *rows) next() bool {
	if len(r.entries) == 0 {
		return false
	}
	e := &r.entries[0]
	r.entries = r.entries[1:]
	switch e.Kind {
	case order.KindNoop:
		r.lineage = uint32(binary.LittleEndian.Uint64(order.Payload(e.Bytes)))
	case order.KindOrder, order.KindExecute:
		r.row(e)
	}
	return true
}

// row appends an order, its columns in the order of orderColumns.
func (r *rows) row(e *client.LogEntry) {
	payload, f := order.Payload(e.Bytes), &e.Fields
	b := be.AppendUint16(r.buf, uint16(len(orderColumns)))
	b = appendBytes(b, r.grid)
	b = appendInt32(b, int32(r.part))
	b = appendInt64(b, int64(e.Seq))
	b = appendInt64(b, int64(e.Epoch))
	b = appendInt64(b, int64(r.lineage))
	b = appendInt64(b, int64(order.Hash(e.Bytes)))
	b = appendInt64(b, microseconds(e.TimeNs))
	b = appendText(b, payload, f.ClOrdIDOff, f.ClOrdIDLen)
	b = appendText(b, payload, f.SymbolOff, f.SymbolLen)
	b = appendText(b, payload, f.AccountOff, f.AccountLen)
	if f.Side == 0 {
		b = appendNull(b)
	} else {
		b = append(be.AppendUint32(b, 1), f.Side)
	}
	b = r.number(b, e.Seq, "quantity", payload, f.QtyOff)
	b = r.number(b, e.Seq, "price", payload, f.PriceOff)
	r.buf = appendBytes(b, order.Message(e.Bytes))
}

// number appends the value that begins at off and ends at the next SOH.
func (r *rows) number(b []byte, seq uint64, column string, payload []byte, off uint16) []byte {
	if off == 0 {
		return appendNull(b)
	}
	text := payload[off:]
	if end := bytes.IndexByte(text, order.SOH); end >= 0 {
		text = text[:end]
	}
	b, ok := appendNumeric(b, text)
	if !ok && r.err == nil {
		r.err = fmt.Errorf("entry %d of %s: %s is %.40q, allowed: a decimal number", seq, r.part, column, text)
	}
	return b
}

func appendText(b, payload []byte, off uint16, n uint8) []byte {
	if off == 0 {
		return appendNull(b)
	}
	return appendBytes(b, payload[off:int(off)+int(n)])
}
