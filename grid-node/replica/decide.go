package replica

import (
	"bytes"

	"github.com/ordergrid/ordergrid/grid-node/order"
	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// Decider decides on orders of clients before they are entries: functions of users. Only a
// primary calls it, on the thread of Step, for an order that is valid, not applied yet, and
// whose ClOrdID is free. What it decided is the entry: no other replica calls its own.
//
// An order may be decided and not become an entry, for lack of memory; the same order is
// decided anew when it is sent again, here or by the next primary. None is decided again
// once it is an entry.
type Decider interface {
	// Decide sets d to the decision on a message, of which o is what order.Parse found in it.
	// It may keep nothing.
	Decide(nowNs int64, msg []byte, o *order.Order, d *Decision)
}

// Decision of a Decider. What it points to is valid until its next call.
type Decision struct {
	Message []byte        // becomes the entry: the one given, or another that order.Parse accepts; nil refuses the order
	Fields  *order.Fields // of Message
	Reason  uint32        // of a refusal: OrdRejReason (103)
	Text    []byte        // of a refusal, printable
}

// decides reports whether functions of kind Pre decide on orders here.
func (r *Replica) decides() bool { return order.FunctionsBuilt && r.opt.Pre != nil }

// decide asks the Decider. An order stays what its client knows it by. The decision is valid
// until the next one.
func (r *Replica) decide(msg []byte, o *order.Order) *Decision {
	d := &r.decided
	r.opt.Pre.Decide(r.now.Wall, msg, o, d)
	switch {
	case d.Message == nil, len(d.Message) == len(msg) && &d.Message[0] == &msg[0]: // refused, or as it came
	case len(d.Message) > r.opt.Limits.MaxPayload:
		*d = Decision{Reason: reasonOther, Text: textTooLong}
	case !bytes.Equal(clOrdID(d.Message, d.Fields), clOrdID(msg, &o.Fields)):
		*d = Decision{Reason: reasonOther, Text: textIdentity}
	}
	return d
}

const reasonOther = 99 // OrdRejReason (103): other

var (
	textTooLong  = []byte("the functions make the order longer than the limit")
	textIdentity = []byte("the functions change the order's ClOrdID")
)

func clOrdID(msg []byte, f *order.Fields) []byte { return msg[f.ClOrdIDOff:][:f.ClOrdIDLen] }

// rejectDecided answers an order that the Decider refused.
func (r *Replica) rejectDecided(conn uint64, m *wire.Submit, d *Decision) {
	r.rejectSubmit(conn, m, wire.CodeFunctionRefused, uint64(d.Reason), string(d.Text))
}

// mutateRetry is what a primary with mutDecidedAgain does to an order before it looks
// whether it was applied. It reports whether the order is answered.
func (r *Replica) mutateRetry(conn uint64, m *wire.Submit) bool {
	if !mutant(mutDecidedAgain) || r.opt.Pre == nil || r.layouts.Parse(m.Payload, &r.order) != nil {
		return false
	}
	d := r.decide(m.Payload, &r.order)
	if d.Message == nil {
		r.rejectDecided(conn, m, d)
	}
	return d.Message == nil
}

// mutateEntry is what a backup with mutDecidedOnBackup makes of an entry.
func (r *Replica) mutateEntry(entry []byte, e *order.Entry) []byte {
	if !mutant(mutDecidedOnBackup) || r.opt.Pre == nil || e.Kind != order.KindOrder {
		return entry
	}
	o := order.Order{Fields: e.Fields}
	var d Decision
	r.opt.Pre.Decide(r.now.Wall, order.Payload(entry), &o, &d)
	if d.Message == nil {
		return entry
	}
	e.Size, e.Fields = uint32(order.HeaderSize+len(d.Message)), *d.Fields
	out := make([]byte, order.HeaderSize, e.Size)
	e.Put(out)
	return append(out, d.Message...)
}
