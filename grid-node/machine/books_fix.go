package machine

import (
	"fmt"
	"math/bits"

	"github.com/ordergrid/ordergrid/grid-node/match"
	"github.com/ordergrid/ordergrid/grid-node/order"
)

// fixOwner is the owner of the orders of the first slot of the FIX sessions; the next ones
// follow. A slot has the same owner for good: it is not removed while orders of it rest.
const fixOwner = 1 << 30

// FixOwner returns the owner that the orders of a FIX session have.
func FixOwner(slot uint32) uint32 { return fixOwner | slot }

// FixSlot returns the FIX session of an owner, false if it is another's.
func FixSlot(owner uint32) (slot uint32, ok bool) { return owner &^ fixOwner, owner >= fixOwner }

// FixReport is a record of the last entry that a FIX session is sent a report of.
type FixReport struct {
	Record int    // in Records
	Slot   uint32 // of the session
	Answer bool   // to the message of the entry
	Size   uint8
	Name   [order.MaxClOrdID]byte // that the order has had until now; of an answer that of the message
	First  uint64                 // the entry that the order began with
	Value  [2]uint64              // price x quantity of its fills, in units, high word first
	Number uint64                 // the MsgSeqNum of the report
}

// ClOrdID returns that of the order.
func (r *FixReport) ClOrdID() []byte { return r.Name[:r.Size] }

// Reports returns the reports of the last entry, in order. They are valid until the next.
func (b *Books) Reports() []FixReport { return b.reports }

// FixRests returns how many orders of a FIX session rest.
func (b *Books) FixRests(slot uint32) int {
	if int(slot) >= len(b.resting.ofFix) {
		return 0
	}
	return int(b.resting.ofFix[slot])
}

func (b *Books) ownerOf(e *order.Entry) uint32 {
	if e.Flags&order.FlagFix != 0 {
		return FixOwner(e.Session)
	}
	return b.owners.of(e.Session)
}

// checkFix rejects the removal of a FIX session whose orders rest: their fills would have no
// report.
func (b *Books) checkFix(e *order.Entry, payload []byte) error {
	if m, _, _, ok := order.MassCancelOf(payload); ok && m.Book != match.All && int(m.Book) >= len(b.instruments) {
		return fmt.Errorf("entry %d: book of a mass cancel is %d, allowed: one that is defined, or %d for all", e.Seq, m.Book, match.All)
	}
	if order.IsLapse(payload) && b.LapsesFull() {
		return fmt.Errorf("entry %d: orders of FIX sessions lapse, allowed: while there is a place among pending mass cancels", e.Seq)
	}
	for rest := payload; len(rest) > 0; {
		var r order.FixRecord
		if rest = order.NextFix(rest, &r); r.Op == order.FixRemove && b.FixRests(r.Slot) > 0 {
			return fmt.Errorf("entry %d: FIX session %d is removed with %d orders in the books, allowed: none", e.Seq, r.Slot, b.FixRests(r.Slot))
		}
	}
	return nil
}

// report notes a record of a FIX session, before the order that it is of leaves its row.
func (b *Books) report(op *match.Op, i int, clOrdID []byte) {
	r := &b.out[i]
	switch r.Kind {
	case match.Accepted:
		if (r.Reason == match.MassCancelling || r.Reason == match.Killed) && clOrdID == nil { // the exchange's
			return
		}
	case match.Rejected:
		if op.Kind == match.MassCancel && clOrdID == nil {
			return
		}
	case match.Cancelled:
		if mutant(mutFixMassUnreported) && r.Reason == match.MassCancelling {
			return
		}
	case match.Filled, match.CancelRejected, match.Replaced, match.Triggered:
	default:
		return
	}
	f := FixReport{Record: i, Slot: r.Owner &^ fixOwner, First: op.ID, Value: b.value}
	at := b.resting.at(r.Order)
	if r.Kind == match.Filled {
		f.Value = b.filled(at, r)
	} else if at != 0 {
		f.Value = b.resting.values[at]
	}
	f.Answer = answers(op, r, clOrdID)
	switch {
	case f.Answer || clOrdID != nil && r.Order == op.ID:
		if f.Size = uint8(copy(f.Name[:], clOrdID)); op.Kind != match.Enter && op.Kind != match.MassCancel && !mutant(mutFixFirstOfEntry) {
			f.First = b.resting.firstOf(op.Orig)
		}
	case at != 0:
		row := &b.resting.rows[at]
		f.Size, f.First = uint8(copy(f.Name[:], row.clOrdID())), row.first
	}
	b.reports = append(b.reports, f)
}

// answers reports whether a record answers the message of its entry.
func answers(op *match.Op, r *match.Record, clOrdID []byte) bool {
	switch r.Kind {
	case match.Accepted, match.Rejected, match.CancelRejected, match.Replaced:
		return clOrdID != nil
	case match.Cancelled:
		return op.Kind == match.Cancel && r.Order == op.Orig
	}
	return false
}

// massCancel takes the orders of a FIX session out, if that is what an entry of kind fix is.
// How many they are is said in its report where that is known: all that rest when nothing else
// is pending, or those of a part that is complete with its entry.
func (b *Books) massCancel(e *order.Entry, payload []byte) {
	m, slot, _, ok := order.MassCancelOf(payload)
	if !ok {
		return
	}
	op := match.Op{Kind: match.MassCancel, Time: e.TimeNs, ID: e.Seq, Owner: FixOwner(slot), Book: m.Book, Side: match.Side(m.Side)}
	all, n := m.Book == match.All && m.Side == 0 && !b.Pending(), uint64(b.FixRests(slot))
	if mutant(mutFixMassOfAll) {
		op.Book = match.All
	}
	b.do(&op, m.ClOrdID())
	if all {
		b.reports[0].Value = [2]uint64{1, n}
		return
	}
	for i := range b.out {
		if r := &b.out[i]; r.Kind == match.MassCancelled && r.Order == e.Seq {
			b.reports[0].Value = [2]uint64{1, uint64(r.Cum)}
		}
	}
}

// lapse takes the orders of the sessions of an entry out.
func (b *Books) lapse(e *order.Entry, payload []byte) {
	op := match.Op{Kind: match.MassCancel, Lapse: true, Time: e.TimeNs, ID: e.Seq, Owner: fixOwner, Book: match.All}
	for rest := payload; len(rest) > 0; {
		var r order.FixRecord
		rest = order.NextFix(rest, &r)
		for int(r.Slot/64) >= len(op.Parties) {
			op.Parties = append(op.Parties, 0)
		}
		if op.Parties[r.Slot/64] |= 1 << (r.Slot % 64); mutant(mutFixLapseOfFirst) {
			break
		}
	}
	b.do(&op, nil)
}

// filled adds a fill to the value of an order: of the row at, or of the order of the entry.
func (b *Books) filled(at uint32, r *match.Record) [2]uint64 {
	v := &b.value
	if at != 0 {
		b.resting.sum -= b.resting.digest(at)
		v = &b.resting.values[at]
	}
	hi, lo := bits.Mul64(uint64(r.Price), uint64(r.Qty))
	if r.Price < 0 {
		hi -= uint64(r.Qty)
	}
	var carry uint64
	v[1], carry = bits.Add64(v[1], lo, 0)
	v[0], _ = bits.Add64(v[0], hi, carry)
	if at != 0 {
		b.resting.sum += b.resting.digest(at)
	}
	return *v
}

func (t *resting) countFix(owner, by uint32) {
	slot := owner &^ fixOwner
	for int(slot) >= len(t.ofFix) {
		t.ofFix = append(t.ofFix, 0)
	}
	t.ofFix[slot] += by
}

func (t *resting) setValue(at uint32, v [2]uint64) {
	for int(at) >= len(t.values) {
		t.values = append(t.values, [2]uint64{})
	}
	t.values[at] = v
}

// valueOf returns the value of the fills of an order of a FIX session, 0 for others.
func (t *resting) valueOf(id uint64) (v [2]uint64) {
	if at := t.at(id); at != 0 && t.rows[at].owner >= fixOwner {
		v = t.values[at]
	}
	return v
}

// report gives each report of the last entry the next number of its session.
func (x *Fix) report(list []FixReport) {
	for i := range list {
		r := &list[i]
		s := &x.slots[r.Slot]
		x.sum -= s.hash(r.Slot)
		if r.Number = s.Out; !mutant(mutFixNumbersShared) || i+1 == len(list) || list[i+1].Slot != r.Slot {
			s.Out++
		}
		x.sum += s.hash(r.Slot)
	}
}
