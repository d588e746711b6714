package function

import (
	"bytes"
	"encoding/binary"

	"github.com/ordergrid/ordergrid/grid-node/order"
)

// The area is where a function finds an order and leaves what it has to say, in its own
// memory: docs/functions.md. Numbers are little-endian, places count from its start.
const (
	abiVersion = 1

	areaVersion  = 0  // u32, the module's until areaSeq
	areaSize     = 4  // u32, of the whole area
	areaFlags    = 8  // u32
	areaTagCount = 12 // u32
	areaTagList  = 16 // u32 each
	areaSeq      = 80 // u64
	areaTime     = 88 // i64
	areaQuantity = 96 // i64, times 1e8
	areaPrice    = 104
	areaMsgType  = 112 // then side, ordType, timeInForce: a byte each
	areaPresent  = 116 // u32
	areaClOrdID  = 120 // spans: place and length, u32 each
	areaSymbol   = 128
	areaAccount  = 136
	areaPayload  = 144
	areaTags     = 152
	areaOut      = 280 // span, the module's
	areaReason   = 288 // u32, the module's
	areaAction   = 292 // u32, the module's, of Compute with a key; as are areaValue and areaSet
	areaData     = 296
	areaValue    = areaTags
	areaSet      = areaTags + 8
	areaStep     = areaTags + 16 // u32, then slice and slices: of a Map

	maxTags     = (areaSeq - areaTagList) / 4
	maxArea     = 1 << 18
	maxOutput   = 1 << 12
	wantPayload = 1 // of areaFlags

	hasQuantity = 1 // of areaPresent
	hasPrice    = 2
)

var le = binary.LittleEndian

// Tags that every function gets: the first are numbers and single letters, then come the
// values that have a span of their own.
var ownTags = []uint32{38, 44, 35, 54, 40, 59, 11, 55, 1}

const firstSpan = 6 // in ownTags

// decimal reads a FIX number as an integer of 1e-8. It reports false for what does not fit
// or has more places.
func decimal(v []byte) (int64, bool) {
	const places = 8
	n, negative, after, digits := int64(0), false, -1, 0
	for i, c := range v {
		switch {
		case c == '-' && i == 0:
			negative = true
		case c == '.' && after < 0:
			after = 0
		case c >= '0' && c <= '9':
			digits++
			if after >= 0 {
				if after++; after > places {
					if c != '0' {
						return 0, false
					}
					continue
				}
			}
			if n > (1<<63-1-9)/10 {
				return 0, false
			}
			n = n*10 + int64(c-'0')
		default:
			return 0, false
		}
	}
	for after = max(after, 0); after < places; after++ {
		if n > (1<<63-1)/10 {
			return 0, false
		}
		n *= 10
	}
	if negative {
		n = -n
	}
	return n, digits > 0
}

// Order is what a function is called with.
type Order struct {
	Seq    uint64 // of its entry; 0 for Pre
	Time   int64  // when the primary received it, in nanoseconds since 1970
	Raw    []byte // the message, as order.Parse accepted it
	Places uint64 // order.Fields.Places, or 0: makes finding its fields faster
	// Parsed is what order.Parse found in Raw, or nil: then nothing has to be found for a
	// module that names no tags.
	Parsed *order.Order
}

// fill writes an order into an area.
func (i *Instance) fill(area []byte, o *Order) {
	le.PutUint64(area[areaSeq:], o.Seq)
	le.PutUint64(area[areaTime:], uint64(o.Time))
	spans := i.spansOf(o)
	present := uint32(0)
	quantity, ok := decimal(spans[0].Of(o.Raw))
	if ok {
		present |= hasQuantity
	}
	price, ok := decimal(spans[1].Of(o.Raw))
	if ok {
		present |= hasPrice
	}
	le.PutUint64(area[areaQuantity:], uint64(quantity))
	le.PutUint64(area[areaPrice:], uint64(price))
	i.fillLetters(area, o, spans)
	le.PutUint32(area[areaPresent:], present)
	at := uint32(areaData)
	if i.module.payload {
		putSpan(area[areaPayload:], at, uint32(copy(area[at:], o.Raw)))
	}
	for k, s := range spans[firstSpan:] {
		place := areaClOrdID + 8*k
		if k >= len(ownTags)-firstSpan {
			place = areaTags + 8*(k-(len(ownTags)-firstSpan))
		}
		switch {
		case s.Len == 0:
			putSpan(area[place:], 0, 0)
		case i.module.payload:
			putSpan(area[place:], areaData+uint32(s.Off), uint32(s.Len))
		default:
			putSpan(area[place:], at, uint32(copy(area[at:], s.Of(o.Raw))))
			at += uint32(s.Len)
		}
	}
	putSpan(area[areaOut:], 0, 0)
	le.PutUint32(area[areaReason:], 0)
}

// fillLetters writes the values that are one character.
func (i *Instance) fillLetters(area []byte, o *Order, spans []order.Span) {
	if p := o.Parsed; p != nil {
		area[areaMsgType], area[areaMsgType+1], area[areaMsgType+2], area[areaMsgType+3] = p.MsgType, p.Side, p.OrdType, p.TimeInForce
		return
	}
	for k, s := range spans[2:firstSpan] {
		area[areaMsgType+k] = 0
		if s.Len > 0 {
			area[areaMsgType+k] = o.Raw[s.Off]
		}
	}
	if area[areaMsgType+3] == 0 {
		area[areaMsgType+3] = '0' // Day, as order.Parse has it
	}
}

// spansOf returns where the values are: of ownTags, then of the module's.
func (i *Instance) spansOf(o *Order) []order.Span {
	p := o.Parsed
	if p == nil || len(i.module.tags) > 0 {
		return i.locator.Locate(o.Raw, o.Places)
	}
	s := i.found[:]
	s[0], s[1] = number(o.Raw, p.QtyOff), number(o.Raw, p.PriceOff)
	s[firstSpan] = order.Span{Off: p.ClOrdIDOff, Len: uint16(p.ClOrdIDLen)}
	s[firstSpan+1] = order.Span{Off: p.SymbolOff, Len: uint16(p.SymbolLen)}
	s[firstSpan+2] = order.Span{Off: p.AccountOff, Len: uint16(p.AccountLen)}
	return s
}

// number is the value that begins at off, 0 for none.
func number(raw []byte, off uint16) (s order.Span) {
	if off == 0 {
		return s
	}
	n := bytes.IndexByte(raw[off:], order.SOH)
	return order.Span{Off: off, Len: uint16(max(n, 0))}
}

func putSpan(b []byte, at, n uint32) {
	le.PutUint32(b, at)
	le.PutUint32(b[4:], n)
}

// output returns what the module left, and whether it is inside its area and not too long.
func output(area []byte) ([]byte, bool) {
	at, n := le.Uint32(area[areaOut:]), le.Uint32(area[areaOut+4:])
	if n > maxOutput || uint64(at)+uint64(n) > uint64(len(area)) {
		return nil, false
	}
	return area[at : at+n], true
}

// needed is the smallest area that every order fits into.
func needed(payload bool, tags int) uint32 {
	if payload {
		return areaData + order.MaxPayload
	}
	return areaData + 3*order.MaxClOrdID + uint32(tags)*order.MaxValue
}
