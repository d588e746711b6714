package fix

import "github.com/ordergrid/ordergrid/gateway/fix/dict"

// Application gets the messages of sessions. Its methods run within Receive and Tick, and
// must not block; messages and their fields are valid during the call. A Refusal is sent
// as Reject, or as BusinessMessageReject if it is Business.
type Application interface {
	// LoggedOn and LoggedOut bracket each connection of a session.
	LoggedOn(s *Session)
	LoggedOut(s *Session, why error)
	// Takes reports whether messages of a type other than those below are taken, by Other.
	Takes(msgType []byte) bool

	NewOrder(s *Session, o *NewOrderSingle) *Refusal
	Cancel(s *Session, o *CancelRequest) *Refusal
	Replace(s *Session, o *ReplaceRequest) *Refusal
	Status(s *Session, o *StatusRequest) *Refusal
	MassCancel(s *Session, o *MassCancelRequest) *Refusal
	Other(s *Session, m *Message) *Refusal
}

// Instruction is what messages about orders have in common. A field that the message does
// not have is nil, or 0.
type Instruction struct {
	Message    *Message
	ClOrdID    []byte // 11
	Account    []byte // 1
	Symbol     []byte // 55
	Side       byte   // 54
	PossResend bool   // 97: it may have been sent under another number
}

// NewOrderSingle is a message D.
type NewOrderSingle struct {
	Instruction
	Terms
}

// Terms are the terms of an order.
type Terms struct {
	OrderQty, CashOrderQty, Price, StopPx, TransactTime []byte // 38, 152, 44, 99, 60
	OrdType, TimeInForce                                byte   // 40, 59
}

// CancelRequest is a message F.
type CancelRequest struct {
	Instruction
	OrigClOrdID, OrderID, TransactTime []byte // 41, 37, 60
}

// ReplaceRequest is a message G.
type ReplaceRequest struct {
	Instruction
	Terms
	OrigClOrdID, OrderID []byte // 41, 37
}

// StatusRequest is a message H.
type StatusRequest struct {
	Instruction
	OrderID []byte // 37
}

// MassCancelRequest is a message q.
type MassCancelRequest struct {
	Instruction
	Kind byte // 530 MassCancelRequestType
}

// orderScratch has a message of each type, so that none is allocated.
type orderScratch struct {
	order      NewOrderSingle
	cancel     CancelRequest
	replace    ReplaceRequest
	status     StatusRequest
	massCancel MassCancelRequest
}

// deliver passes an application message on.
func (s *Session) deliver(m *Message) *Refusal {
	o := &s.a.orders
	if len(m.msgType) != 1 {
		return s.app.Other(s, m)
	}
	switch m.msgType[0] {
	case 'D':
		o.order = NewOrderSingle{Instruction: m.Instruction(), Terms: m.Terms()}
		return s.app.NewOrder(s, &o.order)
	case 'F':
		o.cancel = CancelRequest{Instruction: m.Instruction(), OrigClOrdID: m.Get(41), OrderID: m.Get(37), TransactTime: m.Get(60)}
		return s.app.Cancel(s, &o.cancel)
	case 'G':
		o.replace = ReplaceRequest{Instruction: m.Instruction(), Terms: m.Terms(), OrigClOrdID: m.Get(41), OrderID: m.Get(37)}
		return s.app.Replace(s, &o.replace)
	case 'H':
		o.status = StatusRequest{Instruction: m.Instruction(), OrderID: m.Get(37)}
		return s.app.Status(s, &o.status)
	case 'q':
		o.massCancel = MassCancelRequest{Instruction: m.Instruction(), Kind: m.char(530)}
		return s.app.MassCancel(s, &o.massCancel)
	}
	return s.app.Other(s, m)
}

// Instruction returns what the message has of it.
func (m *Message) Instruction() Instruction {
	return Instruction{Message: m, ClOrdID: m.Get(11), Account: m.Get(1), Symbol: m.Get(55), Side: m.char(54), PossResend: m.flag(97)}
}

// Terms returns what the message has of them.
func (m *Message) Terms() Terms {
	return Terms{OrderQty: m.Get(38), CashOrderQty: m.Get(152), Price: m.Get(44), StopPx: m.Get(99), TransactTime: m.Get(60), OrdType: m.char(40), TimeInForce: m.char(59)}
}

// char returns a field of one character, 0 if there is none.
func (m *Message) char(tag int) byte {
	if v := m.Get(tag); len(v) == 1 {
		return v[0]
	}
	return 0
}

// takes reports whether a type of message is delivered.
func (s *Session) takes(d *dict.Message, msgType []byte) bool {
	return d.Category == dict.App || s.app.Takes(msgType)
}

// ReportedOrder is what reports about an order have in common. Empty fields are left out.
type ReportedOrder struct {
	OrderID, ClOrdID, OrigClOrdID []byte // 37, 11, 41
	Account, Symbol               []byte // 1, 55
	Side                          byte   // 54
}

// ExecutionReport is a message 8.
type ExecutionReport struct {
	ReportedOrder
	ExecID                   []byte // 17
	ExecType, OrdStatus      byte   // 150, 39
	Status                   bool   // it tells a state that was reported before: 150=I, in FIX 4.2 20=3
	OrderQty, Price          []byte // 38, 44
	LeavesQty, CumQty, AvgPx []byte // 151, 14, 6; nil: 0
	LastQty, LastPx          []byte // 32, 31
	OrdType, TimeInForce     byte   // 40, 59
	RejectCode               string // 103
	Text                     string // 58
	StatusReqID              []byte // 790
	TransactNs               int64  // 60, unix nanoseconds
}

var zero = []byte("0")

func orZero(v []byte) []byte {
	if len(v) == 0 {
		return zero
	}
	return v
}

// Report sends an ExecutionReport. Without a connection it is kept for the next one.
func (s *Session) Report(now Now, r *ExecutionReport) {
	b := s.a.body.reset()
	b.Report(s.profile.Version, r)
	s.sendKept(now, "8", b.b, 0)
}

// Report appends the fields of an ExecutionReport.
func (b *Body) Report(v Version, r *ExecutionReport) {
	execType, execTrans := r.ExecType, byte('0') // New
	if r.Status {
		execTrans = '3'
		if v != FIX42 {
			execType = 'I'
		}
	}
	b.Bytes(1, r.Account)
	b.Bytes(6, orZero(r.AvgPx))
	b.Bytes(11, r.ClOrdID)
	b.Bytes(14, orZero(r.CumQty))
	b.Bytes(17, r.ExecID)
	if v == FIX42 {
		b.Byte(20, execTrans) // ExecTransType
	}
	b.Bytes(31, r.LastPx)
	b.Bytes(32, r.LastQty)
	b.Bytes(37, r.OrderID)
	b.Bytes(38, r.OrderQty)
	b.Byte(39, r.OrdStatus)
	b.Byte(40, r.OrdType)
	b.Bytes(41, r.OrigClOrdID)
	b.Bytes(44, r.Price)
	b.Byte(54, r.Side)
	b.Bytes(55, r.Symbol)
	b.String(58, text(r.Text))
	b.Byte(59, r.TimeInForce)
	b.time(60, r.TransactNs)
	b.String(103, r.RejectCode)
	b.Byte(150, execType)
	b.Bytes(151, orZero(r.LeavesQty))
	b.Bytes(790, r.StatusReqID)
}

// CancelReject is a message 9.
type CancelReject struct {
	ReportedOrder
	OrdStatus  byte // 39
	ToReplace  bool // 434: the request was G, not F
	Reason     byte // 102
	Text       string
	TransactNs int64 // 60
}

// RejectCancel sends an OrderCancelReject.
func (s *Session) RejectCancel(now Now, r *CancelReject) {
	b := s.a.body.reset()
	b.CancelReject(r)
	s.sendKept(now, "9", b.b, 0)
}

// CancelReject appends the fields of an OrderCancelReject.
func (b *Body) CancelReject(r *CancelReject) {
	b.Bytes(1, r.Account)
	b.Bytes(11, r.ClOrdID)
	b.Bytes(37, orNone(r.OrderID))
	b.Byte(39, r.OrdStatus)
	b.Bytes(41, r.OrigClOrdID)
	b.String(58, text(r.Text))
	b.time(60, r.TransactNs)
	b.Byte(102, r.Reason)
	if r.ToReplace {
		b.Byte(434, '2')
	} else {
		b.Byte(434, '1')
	}
}

func orNone(v []byte) []byte {
	if len(v) == 0 {
		return []byte("NONE")
	}
	return v
}

// MassCancelReport is a message r. Empty fields are left out.
type MassCancelReport struct {
	ClOrdID, OrderID []byte // 11, 37
	Symbol           []byte // 55
	Side             byte   // 54
	Kind             byte   // 530
	Response         byte   // 531: Kind, or '0' if it is refused
	Reason           string // 532
	Total            []byte // 533
	ReportID         []byte // 1369, which FIX 5.0 SP2 requires
	Text             string // 58
	TransactNs       int64  // 60
}

// MassCancelReport appends the fields of an OrderMassCancelReport.
func (b *Body) MassCancelReport(r *MassCancelReport) {
	b.Bytes(11, r.ClOrdID)
	b.Bytes(37, orNone(r.OrderID))
	b.Byte(54, r.Side)
	b.Bytes(55, r.Symbol)
	b.String(58, text(r.Text))
	b.time(60, r.TransactNs)
	b.Byte(530, r.Kind)
	b.Byte(531, r.Response)
	b.String(532, r.Reason)
	b.Bytes(533, r.Total)
	b.Bytes(1369, r.ReportID)
}

// Send sends any application message: fields are the fields after the header.
func (s *Session) Send(now Now, msgType string, fields func(b *Body)) {
	b := s.a.body.reset()
	fields(b)
	s.sendKept(now, msgType, b.b, 0)
}
