package order

import "fmt"

// InstructionSize is the size of an Instruction, in bytes: the beginning of the payload of
// an entry of kind execute. The FIX message follows, verbatim.
const InstructionSize = 64

// InstructionOp is what an order message asks the book for.
type InstructionOp uint8

// Operations of instructions.
const (
	InstructEnter   InstructionOp = 1
	InstructCancel  InstructionOp = 2
	InstructReplace InstructionOp = 3
)

// Flags of an Instruction.
const (
	InstructPost uint8 = 1 // rejected if it would trade on entry
)

// Instruction is an order message as books execute it: what the primary read in the text,
// so that no other copy parses it, and no change of the parser changes an execution.
// Prices and quantities are integers in the units of the instrument.
//
//	off size field            off size field
//	 0  u8   op                6  u16  book
//	 1  u8   side, as tag 54   8  u32  owner
//	 2  u8   type             12  u32  group, tag 2362, 0 for none
//	 3  u8   time in force    16  i64  price
//	 4  u8   tag 2964         24  i64  stop price
//	 5  u8   flags            32  i64  quantity
//	                          40  i64  display quantity
//	                          48  u64  the order that a cancel or replace means, 0: not found
//	                          56  u64  0
type Instruction struct {
	Op           InstructionOp
	Side         uint8 // 1 buy, 2 sell; 0 in a cancel
	Type         uint8 // 1 limit, 2 market, 3 stop limit, 4 stop
	TIF          uint8 // 0 day, 1 IOC, 2 FOK
	SMP          uint8
	Flags        uint8
	Book         uint16
	Owner, Group uint32
	Price, Stop  int64
	Qty, Display int64
	Orig         uint64
}

// Append appends the InstructionSize bytes of an instruction.
func (i *Instruction) Append(dst []byte) []byte {
	dst = append(dst, byte(i.Op), i.Side, i.Type, i.TIF, i.SMP, i.Flags)
	dst = le.AppendUint16(dst, i.Book)
	dst = le.AppendUint32(le.AppendUint32(dst, i.Owner), i.Group)
	for _, v := range [...]int64{i.Price, i.Stop, i.Qty, i.Display, int64(i.Orig), 0} {
		dst = le.AppendUint64(dst, uint64(v))
	}
	return dst
}

// Instructed reads the instruction of the payload of an entry of kind execute that
// DecodeEntry accepted.
func Instructed(payload []byte) (i Instruction) {
	i.Read(payload)
	return i
}

// Read is Instructed for the hot path: a copy of what was just written would be read in other widths
// than it was written in, and wait for it.
func (i *Instruction) Read(payload []byte) {
	_ = payload[InstructionSize-1]
	i.Op, i.Side, i.Type, i.TIF, i.SMP, i.Flags = InstructionOp(payload[0]), payload[1], payload[2], payload[3], payload[4], payload[5]
	i.Book, i.Owner, i.Group = le.Uint16(payload[6:]), le.Uint32(payload[8:]), le.Uint32(payload[12:])
	i.Price, i.Stop = int64(le.Uint64(payload[16:])), int64(le.Uint64(payload[24:]))
	i.Qty, i.Display = int64(le.Uint64(payload[32:])), int64(le.Uint64(payload[40:]))
	i.Orig = le.Uint64(payload[48:])
}

// InstructedOp returns the operation alone.
func InstructedOp(payload []byte) InstructionOp { return InstructionOp(payload[0]) }

// Message returns the FIX message of an entry of kind order or execute.
func Message(entry []byte) []byte {
	if Kind(entry[4]) == KindExecute {
		return entry[HeaderSize+InstructionSize:]
	}
	return entry[HeaderSize:]
}

// OfFix50 reports whether an entry is an order of FIX 5.0 SP2.
func OfFix50(k Kind, payload []byte) bool {
	switch k {
	case KindOrder:
	case KindExecute:
		payload = payload[InstructionSize:]
	default:
		return false
	}
	const at = len("8=FIX") // FIX.4.2, FIX.4.4, FIXT.1.1
	return len(payload) > at && payload[at] == 'T'
}

// moved returns the fields of a message that begins n bytes later.
func (f Fields) moved(n uint16) Fields {
	f.ClOrdIDOff = moved(f.ClOrdIDOff, n)
	f.SymbolOff, f.AccountOff = moved(f.SymbolOff, n), moved(f.AccountOff, n)
	f.QtyOff, f.PriceOff = moved(f.QtyOff, n), moved(f.PriceOff, n)
	return f
}

func moved(off, n uint16) uint16 {
	if off == 0 {
		return 0
	}
	return off + n
}

// Instructed returns the fields of a message behind an instruction.
func (f Fields) Instructed() Fields { return f.moved(InstructionSize) }

// Instruct sets f to the fields of a message behind an instruction, each as it is read later.
func (f *Fields) Instruct(m *Fields) {
	f.ClOrdIDOff = moved(m.ClOrdIDOff, InstructionSize)
	f.SymbolOff, f.AccountOff = moved(m.SymbolOff, InstructionSize), moved(m.AccountOff, InstructionSize)
	f.QtyOff, f.PriceOff = moved(m.QtyOff, InstructionSize), moved(m.PriceOff, InstructionSize)
	f.ClOrdIDLen, f.SymbolLen, f.AccountLen, f.Side = m.ClOrdIDLen, m.SymbolLen, m.AccountLen, m.Side
}

// MarketOp is what an entry of kind market does.
type MarketOp uint8

// Operations of kind market.
const (
	MarketConfig MarketOp = 1 // bounds of the engine: the first of its partition
	MarketDefine MarketOp = 2 // an instrument, and the state that its book begins in
	MarketApply  MarketOp = 3 // an operation of the exchange on a book, or on all
	// MarketScheduled is the same by the calendar, on one book, or none if the book is in the state
	// of the phase already: kind 0. The fifth value is when it was due, Unix ns.
	MarketScheduled MarketOp = 4
	// MarketCalendar: the calendar is that of another source, which is the symbol.
	MarketCalendar MarketOp = 5
)

// MaxCalendarSource bounds the source of a calendar, in bytes.
const MaxCalendarSource = 256

// MaxReason bounds the reason of an operation of the exchange, in bytes.
const MaxReason = 128

// MarketSize is the size of the fixed part of the payload of an entry of kind market. The
// symbol of an instrument, or the reason of an operation, follows.
//
//	off size field            off size field
//	 0  u8   op                4  u8   side
//	 1  u8   kind of MarketApply, an operation of grid-node/match
//	 2  u16  book              5  u8   digits behind the point of prices
//	                           6  u8   the same of quantities
//	                           7  u8   state
//	 8  u64  x5                values, by operation
const MarketSize = 48

// Market is the payload of an entry of kind market.
type Market struct {
	Op                     MarketOp
	Kind, Side, State      uint8
	Book                   uint16
	PriceDigits, QtyDigits uint8
	// Values: of a config orders, pages, books, work, seed; of an instrument tick, lot,
	// lowest, highest and reference price; of an operation price, stop, until, owner, and when
	// it was due by the calendar.
	Values [5]uint64
	Symbol []byte // of an instrument; of an operation the reason that a person gave, if one did; the source of a calendar
}

// Append appends the payload.
func (m *Market) Append(dst []byte) []byte {
	dst = append(dst, byte(m.Op), m.Kind)
	dst = le.AppendUint16(dst, m.Book)
	dst = append(dst, m.Side, m.PriceDigits, m.QtyDigits, m.State)
	for _, v := range m.Values {
		dst = le.AppendUint64(dst, v)
	}
	return append(dst, m.Symbol...)
}

// MarketOf reads the payload of an entry of kind market that DecodeEntry accepted.
func MarketOf(payload []byte) (m Market) {
	m = Market{
		Op: MarketOp(payload[0]), Kind: payload[1], Book: le.Uint16(payload[2:]), Side: payload[4],
		PriceDigits: payload[5], QtyDigits: payload[6], State: payload[7], Symbol: payload[MarketSize:],
	}
	for i := range m.Values {
		m.Values[i] = le.Uint64(payload[8+8*i:])
	}
	return m
}

// checkExecution checks the form of the payload of an entry of kind execute or market.
func (e *Entry) checkExecution(b []byte) error {
	n := len(b)
	if e.Kind == KindMarket {
		return e.checkMarket(b)
	}
	switch {
	case n <= InstructionSize:
		return &EntryError{Seq: e.Seq, Field: "size", Value: uint64(e.Size), Allowed: "more than 128 for an execute entry"}
	case InstructionOp(b[0]) < InstructEnter || InstructionOp(b[0]) > InstructReplace:
		return &EntryError{Seq: e.Seq, Field: "op", Value: uint64(b[0]), Allowed: "1 enter, 2 cancel, 3 replace"}
	case le.Uint64(b[56:]) != 0 || b[5]&^InstructPost != 0:
		return &EntryError{Seq: e.Seq, Field: "reserved", Value: le.Uint64(b[56:]), Allowed: "0, and flags 0 or 1"}
	case e.Fields.ClOrdIDOff < InstructionSize:
		return &EntryError{Seq: e.Seq, Field: "clOrdIDOff", Value: uint64(e.Fields.ClOrdIDOff), Allowed: "64 or more: the message is behind the instruction"}
	}
	return nil
}

// textsOfMarket are the shortest and the longest text of each operation of kind market.
var textsOfMarket = [...][2]int{MarketConfig: {0, 0}, MarketDefine: {1, MaxSymbol}, MarketApply: {0, MaxReason}, MarketScheduled: {0, 0}, MarketCalendar: {1, MaxCalendarSource}}

func (e *Entry) checkMarket(b []byte) error {
	n := len(b) - MarketSize
	if n < 0 {
		return &EntryError{Seq: e.Seq, Field: "size", Value: uint64(e.Size), Allowed: "112 or more for a market entry"}
	}
	op := int(b[0])
	if op == 0 || op >= len(textsOfMarket) || n < textsOfMarket[op][0] || n > 0 && textsOfMarket[op][1] == 0 {
		return &EntryError{Seq: e.Seq, Field: "op", Value: uint64(op), Allowed: "1 config, 2 define, which has a symbol, 3 apply, which may have a reason, 4 scheduled, 5 calendar, which has a source"}
	}
	if most := textsOfMarket[op][1]; n > most {
		return &EntryError{Seq: e.Seq, Field: "size", Value: uint64(e.Size), Allowed: fmt.Sprintf("112..%d for a market entry of op %d", HeaderSize+MarketSize+most, op)}
	}
	return nil
}

// Uninstructed returns the fields of the message alone.
func (f Fields) Uninstructed() Fields { return f.moved(1<<16 - InstructionSize) }
