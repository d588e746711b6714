package machine

import (
	"bytes"

	"github.com/ordergrid/ordergrid/grid-node/limits"
	"github.com/ordergrid/ordergrid/grid-node/match"
	"github.com/ordergrid/ordergrid/grid-node/order"
)

// Offer is an order that a primary may make an entry of.
type Offer struct {
	TimeNs  int64 // of the entry that it would be
	Session uint32
	Fix     bool // Session is a slot of the FIX sessions
	Message []byte
	Fields  *order.Fields
	Orig    uint64 // that a cancel or replace means, in a partition that matches
	Digits  [2]uint8
}

// Admit returns why the limits refuse an order, limits.None if they do not or if there are
// none. It is what Apply of its entry counts, and changes nothing.
func (m *Machine) Admit(o *Offer) limits.Reason {
	g := m.Guard
	if g == nil || g.bare() {
		return limits.None
	}
	op, why := g.operation(o)
	if why != limits.None {
		return why
	}
	s := m.senderIn(o)
	h := s.hash()
	if op.Party = g.party(&s, h); op.Party != 0 {
		return g.core.Check(&op)
	}
	n, fresh, ok := g.enlist(&s, h)
	if !ok {
		return limits.Full
	}
	op.Party = n
	why = g.core.Check(&op)
	g.delist(h, n, fresh)
	return why
}

func (m *Machine) senderIn(o *Offer) sender {
	slot := o.Session
	var id [2]uint64
	if o.Fix {
		id = m.Fix.At(o.Session).ID
		slot |= fixSession
	} else {
		id = m.Sessions.At(o.Session).ID
	}
	return m.Guard.senderOf(slot, id, o.Message, o.Message[o.Fields.AccountOff:][:o.Fields.AccountLen])
}

// operation reads what an order asks for. The units are those of the profile.
func (g *Guard) operation(o *Offer) (limits.Op, limits.Reason) {
	f, msg := o.Fields, o.Message
	kept := g.books && !g.blind
	op := limits.Op{Time: o.TimeNs, ID: 1, Orig: o.Orig, Kind: limits.Enter, Side: sideOf(f.Side), Unkept: !kept, Free: g.profile.CreditThreshold == nil}
	switch messageType(msg) {
	case 'F':
		op.Kind = limits.Cancel
		return op, limits.None
	case 'G':
		if op.Kind = limits.Amend; kept && g.core.Holds(o.Orig) { // an order that rested before the limits is none of theirs
			op.Kind = limits.Replace
		}
	}
	op.Symbol = g.symbols[string(msg[f.SymbolOff:][:f.SymbolLen])]
	if g.blind {
		op.Qty, op.Market = 1, true
		return op, limits.None
	}
	ok := true
	if f.QtyOff != 0 {
		op.Qty, ok = limits.Units(fieldAt(msg, f.QtyOff), g.digits[1])
	}
	op.Market = f.PriceOff == 0
	if ok && !op.Market {
		op.Price, ok = limits.Units(fieldAt(msg, f.PriceOff), g.digits[0])
	}
	if !ok || g.books && (int(o.Digits[0]) > g.digits[0] || int(o.Digits[1]) > g.digits[1]) {
		return op, limits.BadField
	}
	if r := g.core.RulesOf(oneProfile); g.books && op.Market && (!op.Free || r.CollarReference|r.CollarLast != 0 || r.MaxValue != 0) {
		return op, limits.NoPrice // the book would not keep to the limit that it is charged by
	}
	return op, limits.None
}

// sideOf returns the side of Side (54): what does not sell buys.
func sideOf(c uint8) limits.Side {
	switch c {
	case '2', '4', '5', '6':
		return limits.Sell
	}
	return limits.Buy
}

func fieldAt(msg []byte, off uint16) []byte {
	v := msg[off:]
	return v[:max(bytes.IndexByte(v, order.SOH), 0)]
}

// messageType returns MsgType (35), which is the third field.
func messageType(msg []byte) byte {
	at := bytes.IndexByte(msg, order.SOH) + 1
	at += bytes.IndexByte(msg[at:], order.SOH) + 1
	if at+3 < len(msg) && msg[at] == '3' && msg[at+1] == '5' && msg[at+2] == '=' {
		return msg[at+3]
	}
	return 0
}

// entered counts an order, before the books execute it.
func (m *Machine) entered(e *order.Entry, payload []byte) {
	g := m.Guard
	if g.bare() {
		m.note(e, payload)
		return
	}
	if day := e.TimeNs / nsPerDay; day > g.day {
		if g.day = day; g.books {
			g.change(limits.Change{Kind: limits.NewDay, Time: e.TimeNs})
		}
	}
	o := Offer{TimeNs: e.TimeNs, Session: e.Session, Fix: e.Flags&order.FlagFix != 0, Message: payload, Fields: &e.Fields}
	if e.Kind == order.KindExecute {
		i := order.Instructed(payload)
		in := &m.Books.instruments[i.Book]
		f := e.Fields.Uninstructed()
		o.Orig, o.Digits, o.Message, o.Fields = i.Orig, [2]uint8{in.PriceDigits, in.QtyDigits}, payload[order.InstructionSize:], &f
	}
	op, _ := g.operation(&o)
	s := m.senderIn(&o)
	h := s.hash()
	if op.Party = g.party(&s, h); op.Party == 0 {
		op.Party, _, _ = g.enlist(&s, h) // there was room when it was admitted
	}
	g.entrant = op.Party
	if !op.Unkept {
		op.ID = e.Seq
		if op.Kind == limits.Enter {
			op.Symbol = g.list(string(o.Message[o.Fields.SymbolOff:][:o.Fields.SymbolLen]))
		}
	}
	g.core.Apply(&op)
}

// executed counts what the books did.
func (g *Guard) executed(b *Books, e *order.Entry) {
	if g.bare() {
		return
	}
	for i := range b.out {
		switch r := &b.out[i]; r.Kind {
		case match.Filled:
			in := &b.instruments[r.Book]
			g.core.Apply(&limits.Op{Time: e.TimeNs, Kind: limits.Filled, ID: r.Order,
				Price: scaled(r.Price, g.digits[0]-int(in.PriceDigits)), Qty: scaled(r.Qty, g.digits[1]-int(in.QtyDigits))})
		case match.Replaced:
			in := &b.instruments[r.Book]
			g.core.Apply(&limits.Op{Time: e.TimeNs, Kind: limits.Revised, Orig: r.Order, ID: r.Other,
				Price: scaled(r.Price, g.digits[0]-int(in.PriceDigits)), Qty: scaled(r.Qty, g.digits[1]-int(in.QtyDigits))})
		case match.MassCancelled:
			g.complete(r.Order, e.Seq, uint64(r.Cum))
		case match.Cancelled, match.Rejected:
			g.core.Apply(&limits.Op{Time: e.TimeNs, Kind: limits.Done, ID: r.Order})
		}
	}
}

// scaled returns n x 10^digits. Orders with more digits than the limits were not counted.
func scaled(n int64, digits int) int64 {
	for ; digits > 0; digits-- {
		n *= 10
	}
	return n
}
