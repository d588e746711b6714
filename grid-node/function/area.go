package function

import (
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
	h := (*[areaData]byte)(area)
	le.PutUint64(h[areaSeq:], o.Seq)
	le.PutUint64(h[areaTime:], uint64(o.Time))
	at := uint32(areaData)
	if i.module.payload {
		putSpan(h[areaPayload:], at, uint32(copy(area[at:], o.Raw)))
	}
	putSpan(h[areaOut:], 0, 0)
	le.PutUint32(h[areaReason:], 0)
	p := o.Parsed
	if p == nil || len(i.module.tags) > 0 {
		i.fillLocated(area, o, at)
		return
	}
	fillNumbers(h, o.Raw, p.QtyOff, p.PriceOff)
	le.PutUint32(h[areaMsgType:], uint32(p.MsgType)|uint32(p.Side)<<8|uint32(p.OrdType)<<16|uint32(p.TimeInForce)<<24)
	at = i.fillValue(area, areaClOrdID, o.Raw, order.Span{Off: p.ClOrdIDOff, Len: uint16(p.ClOrdIDLen)}, at)
	at = i.fillValue(area, areaSymbol, o.Raw, order.Span{Off: p.SymbolOff, Len: uint16(p.SymbolLen)}, at)
	i.fillValue(area, areaAccount, o.Raw, order.Span{Off: p.AccountOff, Len: uint16(p.AccountLen)}, at)
}

// fillLocated writes what has to be found in the message; at is where values may be copied to.
func (i *Instance) fillLocated(area []byte, o *Order, at uint32) {
	spans, at := i.fillFields(area, o, at)
	for k, s := range spans {
		at = i.fillValue(area, areaTags+8*k, o.Raw, s, at)
	}
}

// fillFields writes the fields that every function gets. It returns the spans of the module's tags, and where their
// values may be copied to.
func (i *Instance) fillFields(area []byte, o *Order, at uint32) ([]order.Span, uint32) {
	h := (*[areaData]byte)(area)
	spans := i.locator.Locate(o.Raw, o.Places)
	fillNumbers(h, o.Raw, spans[0].Off, spans[1].Off)
	for k, s := range spans[2:firstSpan] {
		h[areaMsgType+k] = 0
		if s.Len > 0 {
			h[areaMsgType+k] = o.Raw[s.Off]
		}
	}
	if h[areaMsgType+3] == 0 {
		h[areaMsgType+3] = '0' // Day, as order.Parse has it
	}
	for k, s := range spans[firstSpan:len(ownTags)] {
		at = i.fillValue(area, areaClOrdID+8*k, o.Raw, s, at)
	}
	return spans[len(ownTags):], at
}

// fillNumbers writes quantity and price, whose values begin at these places; 0: not there.
func fillNumbers(h *[areaData]byte, raw []byte, quantityOff, priceOff uint16) {
	quantity, price, present := int64(0), int64(0), uint32(0)
	if quantityOff > 0 {
		var ok bool
		if quantity, ok = number(raw[quantityOff:]); ok {
			present |= hasQuantity
		}
	}
	if priceOff > 0 {
		var ok bool
		if price, ok = number(raw[priceOff:]); ok {
			present |= hasPrice
		}
	}
	le.PutUint64(h[areaQuantity:], uint64(quantity))
	le.PutUint64(h[areaPrice:], uint64(price))
	le.PutUint32(h[areaPresent:], present)
}

// fillValue writes where a value of the message is, which it copies to at if the module does
// not have the message. It returns where the next one may be copied to.
func (i *Instance) fillValue(area []byte, place int, raw []byte, s order.Span, at uint32) uint32 {
	switch {
	case s.Len == 0:
		putSpan(area[place:], 0, 0)
	case i.module.payload:
		putSpan(area[place:], areaData+uint32(s.Off), uint32(s.Len))
	default:
		putSpan(area[place:], at, uint32(copy(area[at:], s.Of(raw))))
		at += uint32(s.Len)
	}
	return at
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
