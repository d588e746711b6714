package machine

import (
	"bytes"
	"strconv"

	"github.com/ordergrid/ordergrid/grid-node/order"
)

// Resolve makes the instruction of a message that was parsed as o, with terms t, from the session that
// owns its orders. It reads the state and changes nothing: a primary calls it before the entry. What
// no book can be asked for is an error, and gets no entry.
func (b *Books) Resolve(msg []byte, o *order.Order, t *order.Terms, owner uint32) (i order.Instruction, err *order.Error) {
	err = b.ResolveTo(&i, msg, o, t, owner)
	return i, err
}

// ResolveTo is Resolve into an instruction of the caller's, for the hot path.
func (b *Books) ResolveTo(i *order.Instruction, msg []byte, o *order.Order, t *order.Terms, owner uint32) *order.Error {
	*i = order.Instruction{}
	i.Owner = owner
	symbol := msg[o.SymbolOff:][:o.SymbolLen]
	n, known := b.symbols[string(symbol)]
	if o.SymbolLen == 0 || !known {
		return &order.Error{Tag: 55, Reason: order.ReasonEnum, Value: string(symbol), Allowed: "a symbol that this partition trades"}
	}
	i.Book = n
	if o.MsgType != 'D' {
		i.Orig = b.meant(t.OrigClOrdID, i.Owner)
	}
	if o.MsgType == 'F' {
		i.Op = order.InstructCancel
		return nil
	}
	i.Op = order.InstructEnter
	if o.MsgType == 'G' {
		i.Op = order.InstructReplace
	}
	in := &b.instruments[n]
	if err := kinds(i, o, t); err != nil {
		return err
	}
	return numbers(i, msg, o, t, in)
}

// meant returns the order that a cancel or replace of an owner means: the one that rests
// under this ClOrdID, if it is the owner's.
func (b *Books) meant(clOrdID []byte, owner uint32) uint64 {
	id, found := b.Find(clOrdID, owner)
	if o, rests := b.Order(id); !found || !rests || o.Owner != owner {
		return 0
	}
	return id
}

// kinds reads what a message codes.
func kinds(i *order.Instruction, o *order.Order, t *order.Terms) *order.Error {
	unknown := func(tag uint32, v []byte, allowed string) *order.Error {
		return &order.Error{Tag: tag, Reason: order.ReasonEnum, Value: string(v), Allowed: allowed}
	}
	switch o.Side {
	case '1', '2':
		i.Side = o.Side - '0'
	default:
		return unknown(54, []byte{o.Side}, "1 buy, 2 sell, in a grid that matches")
	}
	switch o.OrdType {
	case '1':
		i.Type = 2
	case '2':
		i.Type = 1
	case '3':
		i.Type = 4
	case '4':
		i.Type = 3
	default:
		return unknown(40, []byte{o.OrdType}, "1 market, 2 limit, 3 stop, 4 stop limit, in a grid that matches")
	}
	switch o.TimeInForce {
	case '0', '1':
	case '3':
		i.TIF = 1
	case '4':
		i.TIF = 2
	default:
		return unknown(59, []byte{o.TimeInForce}, "0 day, 1 good till cancel, 3 immediate or cancel, 4 fill or kill, in a grid that matches")
	}
	if bytes.IndexByte(t.ExecInst, '6') >= 0 && !mutant(mutPostOnlyIgnored) {
		i.Flags |= order.InstructPost
	}
	if t.SMP != nil {
		if len(t.SMP) != 1 || t.SMP[0] < '1' || t.SMP[0] > '3' {
			return unknown(2964, t.SMP, "1 cancel the incoming order, 2 the resting one, 3 both")
		}
		i.SMP = t.SMP[0] - '0'
	}
	return nil
}

// numbers converts what a message counts to the units of the instrument.
func numbers(i *order.Instruction, msg []byte, o *order.Order, t *order.Terms, in *Instrument) *order.Error {
	units := func(tag uint32, v []byte, digits uint8, to *int64) *order.Error {
		n, ok := order.Units(v, digits)
		if !ok {
			v, _, _ = bytes.Cut(v, []byte{order.SOH})
			return &order.Error{Tag: tag, Reason: order.ReasonNumber, Value: string(v), Allowed: "at most " + strconv.Itoa(int(digits)) + " digits behind the point, and below 2^62 without it"}
		}
		*to = n
		return nil
	}
	if o.QtyOff == 0 {
		return &order.Error{Tag: 38, Reason: order.ReasonMissing, Value: "none", Allowed: "the tag is required in a grid that matches"}
	}
	if err := units(38, msg[o.QtyOff:], in.QtyDigits, &i.Qty); err != nil {
		return err
	}
	if o.PriceOff != 0 && (i.Type == 1 || i.Type == 3) {
		if err := units(44, msg[o.PriceOff:], in.PriceDigits, &i.Price); err != nil {
			return err
		}
	}
	if t.Stop != nil && i.Type >= 3 {
		if err := units(99, t.Stop, in.PriceDigits, &i.Stop); err != nil {
			return err
		}
	}
	if t.MaxFloor != nil {
		if err := units(111, t.MaxFloor, in.QtyDigits, &i.Display); err != nil {
			return err
		}
	}
	if t.Group != nil {
		var group int64
		if err := units(2362, t.Group, 0, &group); err != nil || group <= 0 || group >= 1<<32 {
			return &order.Error{Tag: 2362, Reason: order.ReasonNumber, Value: string(t.Group), Allowed: "a number from 1 to 4294967295, in a grid that matches"}
		}
		i.Group = uint32(group)
	}
	return nil
}
