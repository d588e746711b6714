package postgres

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"

	"github.com/ordergrid/ordergrid/client"
	"github.com/ordergrid/ordergrid/grid-node/order"
	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// signature begins data of COPY in the binary format: fixed bytes, flags, length of an extension.
const signature = "PGCOPY\n\xff\r\n\x00\x00\x00\x00\x00\x00\x00\x00\x00"

// Seconds and nanoseconds of PostgreSQL's epoch, 2000-01-01.
const (
	epochSeconds = 946684800
	dayNs        = 24 * 3600 * 1e9
)

// microseconds since PostgreSQL's epoch, rounded down.
func microseconds(unixNs int64) int64 {
	us := unixNs / 1000
	if unixNs%1000 < 0 {
		us--
	}
	return us - epochSeconds*1e6
}

// rows is the orders of a batch as data of COPY. It encodes as it is read: the memory it takes does not grow with the
// batch.
type rows struct {
	grid    []byte
	part    wire.PartitionID
	entries []client.LogEntry
	lineage uint32 // at the next entry
	orders  int    // encoded
	buf     []byte // encoded and not read
	off     int
	ended   bool
	err     error
}

func newRows(grid string, p wire.PartitionID, lineage uint32, buf []byte) *rows {
	return &rows{grid: []byte(grid), part: p, lineage: lineage, buf: append(buf[:0], signature...)}
}

// Read implements io.Reader.
func (r *rows) Read(p []byte) (n int, err error) {
	for {
		c := copy(p[n:], r.buf[r.off:])
		r.off += c
		n += c
		switch {
		case n == len(p):
			return n, nil
		case r.err != nil:
			return n, r.err
		case r.ended:
			return n, io.EOF
		}
		r.buf, r.off = r.buf[:0], 0
		r.fill()
	}
}

// fillBytes is how much is encoded at a time, and an order more.
const fillBytes = 32 << 10

func (r *rows) fill() {
	for len(r.buf) < fillBytes {
		if len(r.entries) == 0 {
			r.buf = be.AppendUint16(r.buf, 0xffff)
			r.ended = true
			return
		}
		e := &r.entries[0]
		r.entries = r.entries[1:]
		switch e.Kind {
		case order.KindNoop:
			r.lineage = uint32(binary.LittleEndian.Uint64(order.Payload(e.Bytes)))
		case order.KindOrder:
			r.row(e)
			r.orders++
		}
		if r.err != nil {
			return
		}
	}
}

// row appends an order, its columns in the order of orderColumns.
func (r *rows) row(e *client.LogEntry) {
	payload, f := order.Payload(e.Bytes), &e.Fields
	b := be.AppendUint16(r.buf, uint16(len(orderColumns)))
	b = appendBytes(b, r.grid)
	b = be.AppendUint32(be.AppendUint32(b, 4), uint32(r.part))
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
	r.buf = appendBytes(b, payload)
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

func appendBytes(b, v []byte) []byte { return append(be.AppendUint32(b, uint32(len(v))), v...) }
func appendInt64(b []byte, v int64) []byte {
	return be.AppendUint64(be.AppendUint32(b, 8), uint64(v))
}
func appendNull(b []byte) []byte { return be.AppendUint32(b, 0xffffffff) }
