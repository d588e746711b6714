package kafka

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/ordergrid/ordergrid/client"
	"github.com/ordergrid/ordergrid/grid-node/order"
	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// Format of a record's value.
type Format uint8

// Formats.
const (
	FormatFIX      Format = iota // the FIX message, byte for byte
	FormatJSON                   // an object, see docs/sinks.md
	FormatProtobuf               // message Order of order.proto
)

// ParseFormat reads fix, json or protobuf.
func ParseFormat(s string) (Format, error) {
	switch s {
	case "fix":
		return FormatFIX, nil
	case "json":
		return FormatJSON, nil
	case "protobuf":
		return FormatProtobuf, nil
	}
	return 0, fmt.Errorf("format is %.40q, allowed: fix, json, protobuf", s)
}

// view is an order as the formats need it.
type view struct {
	entry     *client.LogEntry
	partition wire.PartitionID
	lineage   uint32
	hash      uint64
	prev      uint64
}

func (v *view) fix() []byte { return order.Message(v.entry.Bytes) }

// payload is what the entry's fields are places in.
func (v *view) payload() []byte { return order.Payload(v.entry.Bytes) }

func (v *view) field(off uint16, n uint8) []byte {
	if n == 0 {
		return nil
	}
	return v.payload()[off : int(off)+int(n) : int(off)+int(n)]
}

func (v *view) symbol() []byte { return v.field(v.entry.Fields.SymbolOff, v.entry.Fields.SymbolLen) }

// open is a field that ends at the next SOH.
func (v *view) open(off uint16) []byte {
	if off == 0 {
		return nil
	}
	rest := v.payload()[off:]
	if end := bytes.IndexByte(rest, 1); end >= 0 {
		rest = rest[:end:end]
	}
	return rest
}

func (v *view) side() []byte {
	if v.entry.Fields.Side == 0 {
		return nil
	}
	return []byte{v.entry.Fields.Side}
}

func (f Format) append(dst []byte, v *view, grid string) []byte {
	if f == FormatJSON {
		return appendJSON(dst, v, grid)
	}
	return appendProtobuf(dst, v, grid)
}

// appendJSON writes an object. FIX is text in it, with fields separated by '|' as kubectl ordergrid prints it; what is
// not UTF-8, in data fields, is replaced. The hash is 16 hex digits: JSON numbers do not hold it.
func appendJSON(dst []byte, v *view, grid string) []byte {
	e := v.entry
	text := func(name string, value []byte) {
		if len(value) > 0 {
			dst = append(append(append(dst, `,"`...), name...), `":`...)
			quoted, _ := json.Marshal(string(value)) // a string can always be marshalled
			dst = append(dst, quoted...)
		}
	}
	number := func(name string, n uint64) {
		dst = append(append(append(dst, `,"`...), name...), `":`...)
		dst = strconv.AppendUint(dst, n, 10)
	}
	quoted, _ := json.Marshal(grid)
	dst = append(append(dst, `{"grid":`...), quoted...)
	number("partition", uint64(v.partition))
	number("seq", e.Seq)
	number("epoch", uint64(e.Epoch))
	number("lineage", uint64(v.lineage))
	text("hash", appendHash(nil, v.hash))
	number("prev", v.prev)
	dst = append(dst, `,"received":"`...)
	dst = time.Unix(0, e.TimeNs).UTC().AppendFormat(dst, time.RFC3339Nano)
	dst = append(dst, '"')
	text("clOrdID", order.ClOrdID(e.Bytes))
	text("symbol", v.symbol())
	text("account", order.Account(e.Bytes))
	text("side", v.side())
	text("orderQty", v.open(e.Fields.QtyOff))
	text("price", v.open(e.Fields.PriceOff))
	text("fix", bytes.ReplaceAll(v.fix(), []byte{1}, []byte{'|'}))
	return append(dst, '}')
}

// appendProtobuf writes message Order of order.proto. It is written by hand: one flat message does not need generated
// code, and a test reads it with a descriptor made of the file.
func appendProtobuf(dst []byte, v *view, grid string) []byte {
	e := v.entry
	number := func(n protowire.Number, x uint64) {
		if x != 0 {
			dst = protowire.AppendVarint(protowire.AppendTag(dst, n, protowire.VarintType), x)
		}
	}
	text := func(n protowire.Number, x []byte) {
		if len(x) > 0 {
			dst = protowire.AppendBytes(protowire.AppendTag(dst, n, protowire.BytesType), x)
		}
	}
	text(1, []byte(grid))
	number(2, uint64(v.partition))
	number(3, e.Seq)
	number(4, uint64(e.Epoch))
	number(5, uint64(v.lineage))
	dst = protowire.AppendFixed64(protowire.AppendTag(dst, 6, protowire.Fixed64Type), v.hash)
	number(7, v.prev)
	number(8, uint64(e.TimeNs))
	text(9, order.ClOrdID(e.Bytes))
	text(10, v.symbol())
	text(11, order.Account(e.Bytes))
	text(12, v.side())
	text(13, v.open(e.Fields.QtyOff))
	text(14, v.open(e.Fields.PriceOff))
	text(15, v.fix())
	return dst
}
