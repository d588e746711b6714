package machine

import (
	"fmt"
	"unsafe"

	"github.com/ordergrid/ordergrid/grid-node/order"
)

// MaxFix bounds the slots of FIX sessions, and so what another replica can make this one
// allocate.
const MaxFix = 1 << 17

// maxFixSeq is the last number of a message.
const maxFixSeq = 1 << 62

// FixJump is added to the number sent next, and to the attempt, of every FIX session by
// the entry that begins a new lineage: what was sent after the last entry that survived is
// not known.
const FixJump = 1 << 20

// FixSession is the state of a FIX session. Both numbers change by entries only.
type FixSession struct {
	ID         [2]uint64
	In         uint64 // the MsgSeqNum expected next
	Out        uint64 // the MsgSeqNum sent next
	Touched    uint64 // the last entry that belongs to it
	Generation uint32 // begins with 1 when the numbers do; never falls, whichever session has the slot
	Attempt    uint32 // of the gateway that has it; never falls, likewise
	Day        uint32 // of its calendar, days since 1970; of a removed one kept, since its ClOrdIDs are of that day
	Form       uint8  // of the reports of its generation
	Open       bool   // it was not removed
	Left       bool   // its counterparty has logged out since it logged on
	Lapsed     bool   // its orders were cancelled since, because it was gone
	Mode       order.LapseMode
	GraceMs    uint16
	LogonNs    int64 // the latest SendingTime of a Logon that opened it
}

// CanLapse reports whether the orders of a session are cancelled if it stays without a
// connection.
func (s *FixSession) CanLapse() bool {
	return s.Open && s.Mode != order.LapseNever && !s.Lapsed && !(s.Left && s.Mode == order.LapseOnLoss)
}

// Fix has the FIX sessions, by slot. A partition without one has no slots.
type Fix struct {
	slots []FixSession
	modes int                  // how many sessions have a mode
	byID  map[[2]uint64]uint32 // nil before the first
	sum   uint64

	copies dropCopies
	copied []FixCopy // of the last entry

	expected uint32 // slots of the snapshot that is being restored
}

// FixBytes returns the memory of a FIX session in one state: its slot, and its place in the
// index by id, which is at most twice as large as what is in it.
func FixBytes() int64 {
	return int64(unsafe.Sizeof(FixSession{})) + 2*(16+4+1)
}

// Slots is how many slots were ever used.
func (x *Fix) Slots() int { return len(x.slots) }

// Open is how many sessions there are.
func (x *Fix) Open() int { return len(x.byID) }

// Modes is how many sessions have a mode in which their orders are cancelled when they are gone.
func (x *Fix) Modes() int { return x.modes }

// At returns the session of a slot, removed or not.
func (x *Fix) At(slot uint32) *FixSession { return &x.slots[slot] }

// SlotOf finds a session by its id.
func (x *Fix) SlotOf(id [2]uint64) (slot uint32, ok bool) {
	slot, ok = x.byID[id]
	return slot, ok
}

// Free returns the slot for a session that is opened on a day: a removed one, whose orders
// are of days before, or the next that was never used.
func (x *Fix) Free(day uint32) uint32 {
	if len(x.byID) == len(x.slots) {
		return uint32(len(x.slots))
	}
	for i := range x.slots {
		if s := &x.slots[i]; !s.Open && s.Day < day {
			return uint32(i)
		}
	}
	return uint32(len(x.slots))
}

// Idle returns the session of the earliest day before this one that is not busy, false if
// there is none.
func (x *Fix) Idle(day uint32, busy func(slot uint32) bool) (slot uint32, ok bool) {
	for i := range x.slots {
		if s := &x.slots[i]; s.Open && s.Day < day && (!ok || s.Day < x.slots[slot].Day) && !busy(uint32(i)) {
			slot, ok = uint32(i), true
		}
	}
	return slot, ok
}

// Find returns the session of a slot in this generation, nil if that is over.
func (x *Fix) Find(slot, generation uint32) *FixSession {
	if int(slot) >= len(x.slots) {
		return nil
	}
	if s := &x.slots[slot]; s.Open && s.Generation == generation {
		return s
	}
	return nil
}

// Opening makes the record that opens the session with this id: in the slot that it has,
// or in slot, which must be removed or the next that was never used. seq is the number of
// the Logon that was received, 0 for none. It reports false when the day is before that of
// the state, or not after that of the session that was removed from the slot, or when a reset comes late. The body remains the caller's: o.Append makes it of the opening returned,
// which has the form of the generation that continues.
func (x *Fix) Opening(o order.FixOpening, slot uint32, seq uint64) (order.FixRecord, order.FixOpening, bool) {
	var s FixSession
	if at, ok := x.byID[o.ID]; ok {
		slot = at
	}
	if int(slot) < len(x.slots) {
		s = x.slots[slot]
	}
	begins := x.begins(&s, &o)
	if s.Open && o.Day < s.Day && !mutant(mutFixDayBackwards) || !s.Open && s.Generation > 0 && o.Day <= s.Day {
		return order.FixRecord{}, o, false
	}
	if s.Open && x.late(&s, &o) {
		return order.FixRecord{}, o, false
	}
	r := order.FixRecord{Slot: slot, Attempt: s.Attempt + 1, Generation: s.Generation, In: s.In, Op: order.FixOpen, Outs: 1}
	if begins {
		r.Generation, r.In = s.Generation+1, 1
	} else {
		o.Form = s.Form
	}
	if seq == r.In {
		r.In++
	}
	return r, o, true
}

// late reports whether a reset is one that was under way while a later Logon was taken: it
// would end the generation that the counterparty is in.
func (x *Fix) late(s *FixSession, o *order.FixOpening) bool {
	return o.Flags&order.FixReset != 0 && o.Day == s.Day && o.SentNs < s.LogonNs && !mutant(mutFixLateReset)
}

// begins reports whether an opening begins a new generation of what the slot has.
func (x *Fix) begins(s *FixSession, o *order.FixOpening) bool {
	return !s.Open || s.ID != o.ID || o.Day > s.Day || o.Flags&order.FixReset != 0 && !mutant(mutFixResetKeeps)
}

func (x *Fix) check(e *order.Entry, payload []byte) error {
	switch {
	case e.Kind.IsOrder():
		return x.checkOrder(e)
	case e.Kind == order.KindDropCopy:
		return x.checkCopies(e, payload)
	}
	for rest := payload; len(rest) > 0; {
		var r order.FixRecord
		rest = order.NextFix(rest, &r)
		if err := x.checkRecord(e.Seq, &r); err != nil {
			return err
		}
	}
	return nil
}

func (x *Fix) checkOrder(e *order.Entry) error {
	switch {
	case int(e.Session) >= len(x.slots) || !x.slots[e.Session].Open:
		return fmt.Errorf("entry %d: FIX session is %d, allowed: one that is open", e.Seq, e.Session)
	case e.ClientSeq < x.slots[e.Session].In || e.ClientSeq >= maxFixSeq:
		return fmt.Errorf("entry %d: FIX session %d has MsgSeqNum %d, allowed: %d or more", e.Seq, e.Session, e.ClientSeq, x.slots[e.Session].In)
	case e.Flags != order.FixFlags(x.slots[e.Session].Day):
		return fmt.Errorf("entry %d: FIX session %d: flags are %d, allowed: %d, of day %d", e.Seq, e.Session, e.Flags, order.FixFlags(x.slots[e.Session].Day), x.slots[e.Session].Day)
	}
	return nil
}

func (x *Fix) checkRecord(seq uint64, r *order.FixRecord) error {
	fail := func(field string, v, allowed uint64) error {
		return fmt.Errorf("entry %d: FIX session %d: %s is %d, allowed: %d", seq, r.Slot, field, v, allowed)
	}
	if r.Op == order.FixOpen {
		return x.checkOpening(seq, r)
	}
	if int(r.Slot) >= len(x.slots) || !x.slots[r.Slot].Open {
		return fmt.Errorf("entry %d: FIX session is %d, allowed: one that is open", seq, r.Slot)
	}
	s, least := &x.slots[r.Slot], uint64(0)
	if least = s.In; r.Op == order.FixRefusal || r.Op == order.FixMass {
		least++
	}
	switch {
	case r.Generation != s.Generation:
		return fail("generation", uint64(r.Generation), uint64(s.Generation))
	case r.Attempt != s.Attempt:
		return fail("attempt", uint64(r.Attempt), uint64(s.Attempt))
	case r.In < least || r.In > maxFixSeq || (r.Op == order.FixRemove || r.Op == order.FixLapse) && r.In != s.In:
		return fail("in", r.In, least)
	case r.Op == order.FixLapse && !s.CanLapse():
		return fmt.Errorf("entry %d: FIX session %d lapses in mode %d (left %t, lapsed %t), allowed: once after a Logon, in a mode that says so", seq, r.Slot, s.Mode, s.Left, s.Lapsed)
	case r.Op == order.FixLeave && s.Mode == order.LapseNever:
		return fmt.Errorf("entry %d: FIX session %d leaves, allowed: in a mode in which it can lapse", seq, r.Slot)
	}
	return nil
}

func (x *Fix) checkOpening(seq uint64, r *order.FixRecord) error {
	o := r.Opening()
	at, known := x.byID[o.ID]
	switch {
	case known && at != r.Slot:
		return fmt.Errorf("entry %d: FIX session %d is opened in slot %d, allowed: slot %d, where it is", seq, at, r.Slot, at)
	case int(r.Slot) > len(x.slots) || r.Slot >= MaxFix:
		return fmt.Errorf("entry %d: FIX session is %d, allowed: at most %d, and below %d", seq, r.Slot, len(x.slots), MaxFix)
	case int(r.Slot) < len(x.slots) && x.slots[r.Slot].Open && x.slots[r.Slot].ID != o.ID:
		return fmt.Errorf("entry %d: FIX session %d is another's, allowed: its own slot, or one that is removed", seq, r.Slot)
	}
	want, _, ok := x.Opening(o, r.Slot, 0)
	if !ok {
		least := x.slots[r.Slot].Day
		if known && o.Day == least {
			return fmt.Errorf("entry %d: FIX session %d is reset by a Logon of %d, allowed: %d or later, as the one before", seq, r.Slot, o.SentNs, x.slots[r.Slot].LogonNs)
		}
		if !known {
			least++
		}
		return fmt.Errorf("entry %d: FIX session %d: day is %d, allowed: %d or later", seq, r.Slot, o.Day, least)
	}
	if r.Generation != want.Generation || r.Attempt != want.Attempt || r.In != want.In && r.In != want.In+1 {
		return fmt.Errorf("entry %d: FIX session %d is opened as generation %d, attempt %d, in %d, allowed: generation %d, attempt %d, in %d or the next",
			seq, r.Slot, r.Generation, r.Attempt, r.In, want.Generation, want.Attempt, want.In)
	}
	return nil
}

// apply applies an order of a FIX session, an entry of kind fix or drop-copy, or one that begins
// an epoch: lineage is that of before.
func (x *Fix) apply(e *order.Entry, payload []byte, lineage uint64) {
	switch e.Kind {
	case order.KindOrder, order.KindExecute:
		s := &x.slots[e.Session]
		x.sum -= s.hash(e.Session)
		if s.In, s.Touched = e.ClientSeq+1, e.Seq; mutant(mutFixInOfLast) {
			s.In = e.ClientSeq
		}
		if e.Kind == order.KindOrder { // of what is executed each record takes a number
			s.Out++
		}
		x.sum += s.hash(e.Session)
	case order.KindFix:
		for rest := payload; len(rest) > 0; {
			var r order.FixRecord
			rest = order.NextFix(rest, &r)
			x.record(e.Seq, &r, lineage)
		}
	case order.KindDropCopy:
		c := order.DropCopyOf(payload)
		x.setSources(c.Slot, c.Sources, e.Seq)
	case order.KindNoop:
		if le.Uint64(payload) != lineage && len(x.slots) > 0 && !mutant(mutFixNoJump) {
			x.jump(e.Seq)
		}
	}
}

func (x *Fix) record(seq uint64, r *order.FixRecord, lineage uint64) {
	for int(r.Slot) >= len(x.slots) {
		x.slots = append(x.slots, FixSession{})
		x.sum += x.slots[len(x.slots)-1].hash(uint32(len(x.slots) - 1))
	}
	s := &x.slots[r.Slot]
	x.sum -= s.hash(r.Slot)
	switch r.Op {
	case order.FixOpen:
		o := r.Opening()
		if begins := x.begins(s, &o); begins {
			s.ID, s.Day, s.Form, s.Out = o.ID, o.Day, o.Form, 1
			if r.In == 1 && o.Flags&order.FixReset == 0 && lineage > 1 && !mutant(mutFixNoJump) {
				// The Logon does not begin with 1: the generation that it continues may have
				// been lost, with numbers that were sent in it.
				s.Out += (lineage - 1) * FixJump
			}
		}
		if !s.Open {
			if x.byID == nil {
				x.byID = map[[2]uint64]uint32{}
			}
			x.byID[o.ID], s.Open = r.Slot, true
		}
		s.Generation = r.Generation
		if !mutant(mutFixAttemptForgotten) || s.Attempt == 0 {
			s.Attempt = r.Attempt
		}
		s.LogonNs = max(s.LogonNs, o.SentNs)
		if o.Flags&order.FixLate == 0 || mutant(mutFixLapseLate) {
			s.Left, s.Lapsed = false, false
			x.modes -= s.lapsing()
			s.Mode, s.GraceMs = o.Mode, o.GraceMs
			x.modes += s.lapsing()
		}
	case order.FixLeave:
		s.Left = true
	case order.FixLapse:
		if s.Lapsed = true; !mutant(mutFixLapseUnfenced) {
			s.Attempt++
		}
	case order.FixRemove:
		x.modes -= s.lapsing()
		x.setSources(r.Slot, nil, seq)
		delete(x.byID, s.ID)
		*s = FixSession{Generation: s.Generation, Attempt: s.Attempt, Day: s.Day}
	}
	if s.Open {
		s.In, s.Touched = r.In, seq
		s.Out += uint64(r.Outs)
	}
	x.sum += s.hash(r.Slot)
}

// lapsing is 1 for a session with a mode.
func (s *FixSession) lapsing() int {
	if s.Mode == order.LapseNever {
		return 0
	}
	return 1
}

// jump moves every session to numbers that were not sent, under an attempt that no gateway
// has.
func (x *Fix) jump(seq uint64) {
	for slot := range x.slots {
		s := &x.slots[slot]
		x.sum -= s.hash(uint32(slot))
		s.Attempt += FixJump
		if s.Open {
			s.Out += FixJump
			s.Touched = seq
		}
		x.sum += s.hash(uint32(slot))
	}
}

func (x *Fix) clone() Fix {
	if len(x.slots) == 0 {
		return Fix{}
	}
	c := Fix{slots: append([]FixSession(nil), x.slots...), sum: x.sum, modes: x.modes, byID: make(map[[2]uint64]uint32, len(x.byID)), copies: x.copies.clone()}
	for i := range c.slots {
		if c.slots[i].Open {
			c.byID[c.slots[i].ID] = uint32(i)
		}
	}
	return c
}
