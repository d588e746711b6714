package machine

import (
	"fmt"
	"strings"
	"testing"

	"github.com/ordergrid/ordergrid/grid-node/order"
)

// fixLog applies entries of FIX sessions to a machine, checked as a replica does.
type fixLog struct {
	t   *testing.T
	m   Machine
	seq uint64
}

func newFixLog(t *testing.T) *fixLog {
	l := &fixLog{t: t}
	l.m.Begin(8, 0)
	return l
}

func (l *fixLog) add(e order.Entry, payload []byte) error {
	l.seq++
	e.Seq, e.Epoch = l.seq, 1
	if e.Kind == order.KindFix { // as it would come from another replica
		e.Size = uint32(order.HeaderSize + len(payload))
		b := make([]byte, order.HeaderSize)
		e.Put(b)
		if _, err := order.DecodeEntry(append(b, payload...), &e); err != nil {
			l.t.Fatal(err)
		}
	}
	if err := l.m.Check(&e, payload); err != nil {
		l.seq--
		return err
	}
	l.m.Apply(&e, payload)
	if l.m.Digest() != l.m.Recount() {
		l.t.Errorf("entry %d: the digest is not of the state", e.Seq)
	}
	return nil
}

// flags are those of an order of today.
func (l *fixLog) flags(slot uint32) uint8 {
	if int(slot) >= l.m.Fix.Slots() {
		return order.FlagFix
	}
	return order.FixFlags(l.m.Fix.At(slot).Day)
}

func (l *fixLog) order(slot uint32, n uint64) error {
	return l.add(order.Entry{Kind: order.KindOrder, Flags: l.flags(slot), Session: slot, ClientSeq: n}, nil)
}

func (l *fixLog) records(records ...order.FixRecord) error {
	var payload []byte
	for i := range records {
		payload = order.AppendFixRecord(payload, &records[i])
	}
	return l.add(order.Entry{Kind: order.KindFix}, payload)
}

// open opens a session as a primary does.
func (l *fixLog) open(id uint64, o order.FixOpening, slot uint32, logon uint64) error {
	o.ID = [2]uint64{id, ^id}
	r, o, ok := l.m.Fix.Opening(o, slot, logon)
	if !ok {
		return fmt.Errorf("no opening on day %d", o.Day)
	}
	r.Body = o.Append(nil)
	return l.records(r)
}

// record is one that fits the session of a slot.
func (l *fixLog) record(slot uint32, op order.FixOp, outs uint8, in uint64) order.FixRecord {
	s := l.m.Fix.At(slot)
	return order.FixRecord{Slot: slot, Attempt: s.Attempt, Generation: s.Generation, In: in, Op: op, Outs: outs}
}

func (l *fixLog) noop(lineage uint64) error {
	return l.add(order.Entry{Kind: order.KindNoop}, le.AppendUint64(le.AppendUint64(nil, lineage), 7))
}

// fixStates are a session's numbers after each step of TestFix.
type fixStates struct {
	name                     string
	do                       func(*fixLog) error
	in, out                  uint64
	generation, attempt, day uint32
	form                     uint8
}

func TestFix(t *testing.T) {
	l := newFixLog(t)
	for _, c := range []fixStates{
		{"the first lineage", func(l *fixLog) error { return l.noop(1) }, 0, 0, 0, 0, 0, 0},
		{"a Logon", func(l *fixLog) error { return l.open(5, order.FixOpening{Day: 100, Form: 3}, 0, 1) }, 2, 2, 1, 1, 100, 3},
		{"an order", func(l *fixLog) error { return l.order(0, 2) }, 3, 3, 1, 1, 100, 3},
		{"an order after heartbeats", func(l *fixLog) error { return l.order(0, 9) }, 10, 4, 1, 1, 100, 3},
		{"three administrative messages", func(l *fixLog) error { return l.records(l.record(0, order.FixStep, 3, 11)) }, 11, 7, 1, 1, 100, 3},
		{"one that reports nothing new", func(l *fixLog) error { return l.records(l.record(0, order.FixStep, 1, 11)) }, 11, 8, 1, 1, 100, 3},
		{"a refusal", func(l *fixLog) error { return l.records(l.record(0, order.FixRefusal, 1, 12)) }, 12, 9, 1, 1, 100, 3},
		{"a noop of the same lineage", func(l *fixLog) error { return l.noop(1) }, 12, 9, 1, 1, 100, 3},
		{"another gateway, with a newer form", func(l *fixLog) error { return l.open(5, order.FixOpening{Day: 100, Form: 4}, 0, 12) }, 13, 10, 1, 2, 100, 3},
		{"a Logon that is too high", func(l *fixLog) error { return l.open(5, order.FixOpening{Day: 100}, 0, 20) }, 13, 11, 1, 3, 100, 3},
		{"another session", func(l *fixLog) error { return l.open(6, order.FixOpening{Day: 90}, 1, 0) }, 13, 11, 1, 3, 100, 3},
		{"an accepted loss", func(l *fixLog) error { return l.noop(2) }, 13, 11 + FixJump, 1, 3 + FixJump, 100, 3},
		{"a reset", func(l *fixLog) error {
			return l.open(5, order.FixOpening{Day: 100, Form: 4, Flags: order.FixReset}, 0, 1)
		}, 2, 2, 2, 4 + FixJump, 100, 4},
		{"the next day", func(l *fixLog) error { return l.open(5, order.FixOpening{Day: 101, Form: 5}, 0, 1) }, 2, 2, 3, 5 + FixJump, 101, 5},
		{"a removal", func(l *fixLog) error { return l.records(l.record(0, order.FixRemove, 0, 2)) }, 0, 0, 3, 5 + FixJump, 101, 0},
		{"another session in its slot", func(l *fixLog) error { return l.open(7, order.FixOpening{Day: 102}, 0, 1) }, 2, 2, 4, 6 + FixJump, 102, 0},
		{"one more, behind", func(l *fixLog) error { return l.open(5, order.FixOpening{Day: 101}, 2, 1) }, 2, 2, 4, 6 + FixJump, 102, 0},
		{"records of two sessions", func(l *fixLog) error {
			return l.records(l.record(0, order.FixStep, 255, 3), l.record(2, order.FixRefusal, 1, 3))
		}, 3, 257, 4, 6 + FixJump, 102, 0},
		{"a Logon of a generation that was lost", func(l *fixLog) error { return l.open(5, order.FixOpening{Day: 102}, 0, 9) }, 3, 257, 4, 6 + FixJump, 102, 0},
	} {
		if err := c.do(l); err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		if l.m.Fix.Slots() == 0 {
			continue
		}
		s := l.m.Fix.At(0)
		if got := (fixStates{"", nil, s.In, s.Out, s.Generation, s.Attempt, s.Day, s.Form}); got.in != c.in || got.out != c.out || got.generation != c.generation || got.attempt != c.attempt || got.day != c.day || got.form != c.form {
			t.Fatalf("after %s: in %d out %d generation %d attempt %d day %d form %d, want %d %d %d %d %d %d", c.name,
				s.In, s.Out, s.Generation, s.Attempt, s.Day, s.Form, c.in, c.out, c.generation, c.attempt, c.day, c.form)
		}
	}
	if s := l.m.Fix.At(2); s.Out != 2+FixJump { // the session of id 5, whose generation began in lineage 2 with Logon 9
		t.Errorf("a generation that may have been lost goes on with %d", s.Out)
	}
	if s := l.m.Fix.At(1); s.Out != 2+FixJump || s.Attempt != 1+FixJump || s.In != 1 {
		t.Errorf("the other session has out %d, attempt %d, in %d", s.Out, s.Attempt, s.In)
	}
	for id, want := range map[uint64]uint32{5: 2, 6: 1, 7: 0} {
		if slot, ok := l.m.Fix.SlotOf([2]uint64{id, ^id}); !ok || slot != want {
			t.Errorf("session %d is in slot %d, %t, want %d", id, slot, ok, want)
		}
	}
	if l.m.Fix.Find(0, 4) == nil || l.m.Fix.Find(0, 3) != nil || l.m.Fix.Find(9, 1) != nil || l.m.Fix.Open() != 3 {
		t.Error("sessions are found by other generations than their own")
	}
	if l.m.Sessions.Slots() != 0 || l.m.Cursors.Data != l.seq {
		t.Error("an entry of a FIX session has another part's effect, or counts as no data")
	}
}

func TestFixRefuses(t *testing.T) {
	l := newFixLog(t)
	for id, day := range map[uint64]uint32{1: 100} {
		if err := l.open(id, order.FixOpening{Day: day, SentNs: 70}, 0, 1); err != nil {
			t.Fatal(err)
		}
	}
	if err := l.open(2, order.FixOpening{Day: 100}, 1, 1); err != nil {
		t.Fatal(err)
	}
	if err := l.records(l.record(1, order.FixRemove, 0, 2)); err != nil {
		t.Fatal(err)
	}
	before := l.m.Digest()
	opening := func(id uint64, slot, generation, attempt uint32, in uint64, day uint32) order.FixRecord {
		o := order.FixOpening{ID: [2]uint64{id, ^id}, Day: day}
		return order.FixRecord{Slot: slot, Attempt: attempt, Generation: generation, In: in, Op: order.FixOpen, Outs: 1, Body: o.Append(nil)}
	}
	changed := func(op order.FixOp, outs uint8, change func(*order.FixRecord)) error {
		r := l.record(0, op, outs, 3)
		change(&r)
		return l.records(r)
	}
	for name, c := range map[string]struct {
		err  error
		want string
	}{
		"an order of no session":        {l.order(9, 5), "FIX session is 9, allowed: one that is open"},
		"an order of a removed session": {l.order(1, 5), "FIX session is 1, allowed: one that is open"},
		"an order of before":            {l.order(0, 1), "has MsgSeqNum 1, allowed: 2 or more"},
		"an order of no number":         {l.order(0, 1<<62), "has MsgSeqNum 4611686018427387904"},
		"a step of no session":          {changed(order.FixStep, 1, func(r *order.FixRecord) { r.Slot = 9 }), "FIX session is 9, allowed: one that is open"},
		"a step of a removed session":   {changed(order.FixStep, 1, func(r *order.FixRecord) { r.Slot = 1 }), "FIX session is 1, allowed: one that is open"},
		"a step of another generation":  {changed(order.FixStep, 1, func(r *order.FixRecord) { r.Generation++ }), "generation is 2, allowed: 1"},
		"a step of another attempt":     {changed(order.FixStep, 1, func(r *order.FixRecord) { r.Attempt++ }), "attempt is 2, allowed: 1"},
		"a step back":                   {changed(order.FixStep, 1, func(r *order.FixRecord) { r.In = 1 }), "in is 1, allowed: 2"},
		"a step to no number":           {changed(order.FixStep, 1, func(r *order.FixRecord) { r.In = 1<<62 + 1 }), "in is 4611686018427387905"},
		"a refusal of nothing":          {changed(order.FixRefusal, 1, func(r *order.FixRecord) { r.In = 2 }), "in is 2, allowed: 3"},
		"a removal that moves":          {changed(order.FixRemove, 0, func(*order.FixRecord) {}), "in is 3, allowed: 2"},
		"the same attempt":              {l.records(opening(1, 0, 1, 1, 2, 100)), "attempt 1, in 2, allowed: generation 1, attempt 2"},
		"an attempt too many":           {l.records(opening(1, 0, 1, 3, 2, 100)), "attempt 3, in 2, allowed: generation 1, attempt 2"},
		"a generation too many":         {l.records(opening(1, 0, 2, 2, 2, 100)), "generation 2, attempt 2, in 2, allowed: generation 1"},
		"an order of another day":       {l.add(order.Entry{Kind: order.KindOrder, Flags: order.FixFlags(101), ClientSeq: 5}, nil), "flags are 203, allowed: 201, of day 100"},
		"a number that skips":           {l.records(opening(1, 0, 1, 2, 4, 100)), "in 4, allowed: generation 1, attempt 2, in 2 or the next"},
		"a late reset": {func() error {
			o := order.FixOpening{ID: [2]uint64{1, ^uint64(1)}, Day: 100, Flags: order.FixReset, SentNs: 69}
			return l.records(order.FixRecord{Slot: 0, Attempt: 2, Generation: 2, In: 1, Op: order.FixOpen, Outs: 1, Body: o.Append(nil)})
		}(), "is reset by a Logon of 69, allowed: 70 or later"},
		"a day before":                   {l.records(opening(1, 0, 1, 2, 2, 99)), "day is 99, allowed: 100 or later"},
		"a session in another slot":      {l.records(opening(1, 1, 2, 2, 1, 100)), "opened in slot 1, allowed: slot 0"},
		"a session in another's":         {l.records(opening(3, 0, 2, 2, 1, 100)), "FIX session 0 is another's"},
		"a slot that skips":              {l.records(opening(3, 3, 1, 1, 1, 100)), "FIX session is 3, allowed: at most 2"},
		"a removed one with old numbers": {l.records(opening(2, 1, 1, 2, 2, 101)), "allowed: generation 2, attempt 2, in 1 or the next"},
		"a slot of another, on its day":  {l.records(opening(2, 1, 2, 2, 1, 100)), "day is 100, allowed: 101 or later"},
	} {
		if c.err == nil || !strings.Contains(c.err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, c.err, c.want)
		}
	}
	if a, b := l.m.Fix.Free(100), l.m.Fix.Free(101); a != 2 || b != 1 {
		t.Errorf("free are slots %d and %d, want 2 on the day of the removed session and 1 after", a, b)
	}
	if slot, ok := l.m.Fix.Idle(101, func(slot uint32) bool { return slot == 9 }); !ok || slot != 0 {
		t.Errorf("idle is slot %d, %t, want 0: the other one is removed", slot, ok)
	}
	if _, ok := l.m.Fix.Idle(100, func(uint32) bool { return false }); ok {
		t.Error("a session of the day itself is idle")
	}
	if _, _, ok := l.m.Fix.Opening(order.FixOpening{ID: [2]uint64{1, ^uint64(1)}, Day: 99}, 0, 1); ok {
		t.Error("an opening on a day before is made")
	}
	if l.m.Digest() != before {
		t.Error("a check changes the state")
	}
}

// fixState has two sessions, and a removed one between them.
func fixState(t *testing.T) *Machine {
	l := newFixLog(t)
	for id := range uint64(3) {
		if err := l.open(id, order.FixOpening{Day: 100, Form: 1}, uint32(id), 1); err != nil {
			t.Fatal(err)
		}
	}
	if err := l.records(l.record(1, order.FixRemove, 0, 2)); err != nil {
		t.Fatal(err)
	}
	if err := l.order(2, 7); err != nil {
		t.Fatal(err)
	}
	l.m.Sessions.open(0, 3, [2]uint64{7, 8}, 2)
	return &l.m
}

func TestFixSnapshot(t *testing.T) {
	want := fixState(t)
	got, err := decode(encode(want), 4, 100)
	if err != nil {
		t.Fatal(err)
	}
	c := got.Clone()
	if got.Digest() != want.Digest() || got.Recount() != want.Digest() || c.Recount() != want.Digest() || c.Fix.Open() != 2 {
		t.Error("the state that is restored is another")
	}
	if slot, ok := got.Fix.SlotOf([2]uint64{2, ^uint64(2)}); !ok || slot != 2 || got.Fix.At(2).In != 8 {
		t.Errorf("slot %d, %t", slot, ok)
	}
	want.Fix.At(2).In++
	if got.Fix.At(2).In != 8 {
		t.Error("the copy shares the sessions")
	}
	if _, err := decode(encode(fixState(t))[:24+16+2*64], 2, 100); err == nil || !strings.Contains(err.Error(), "nFix is 2, allowed: 3") {
		t.Errorf("a snapshot without its last FIX session: %v", err)
	}
}

func TestFixSnapshotRefuses(t *testing.T) {
	const fix = 24 + 16 // behind the head with one epoch
	put := func(at int, v uint64) func([]byte) { return func(b []byte) { le.PutUint64(b[at:], v) } }
	for _, c := range []struct {
		name  string
		spoil func([]byte)
		want  string
	}{
		{"too many", put(16, 1|(MaxFix+1)<<40), "nFix is 131073"},
		{"no number received", put(fix+16, 0), "fixIn is 0"},
		{"no number sent", put(fix+24, 0), "fixOut is 0"},
		{"touched behind the base", put(fix+32, 101), "fixTouched is 101"},
		{"no generation", put(fix+40, 0), "fixOut is 2, allowed: 1 or more, and the generation too"},
		{"other bits", put(fix+48, 1<<5|1), "fixOpen is 33"},
		{"a grace without a mode", put(fix+48, 1<<16|1), "fixOpen is 65537"},
		{"lapsed without a mode", put(fix+48, 1|16), "fixOpen is 17"},
		{"removed, with a state", put(fix+48, 100<<32), "fixOpen is 0, allowed: 1 for a session that has a state"},
		{"one id twice", func(b []byte) { copy(b[fix+128:fix+144], b[fix:]) }, "fixIDLo is"},
	} {
		state := encode(fixState(t))
		c.spoil(state)
		if _, err := decode(state, 4, 100); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		}
	}
}

func TestFixDigestSeesEveryField(t *testing.T) {
	before := fixState(t).Digest()
	for name, change := range map[string]func(*FixSession){
		"id": func(s *FixSession) { s.ID[0]++ }, "id's other half": func(s *FixSession) { s.ID[1]++ }, "in": func(s *FixSession) { s.In++ },
		"out": func(s *FixSession) { s.Out++ }, "touched": func(s *FixSession) { s.Touched++ }, "generation": func(s *FixSession) { s.Generation++ },
		"attempt": func(s *FixSession) { s.Attempt++ }, "day": func(s *FixSession) { s.Day++ }, "form": func(s *FixSession) { s.Form++ },
		"open": func(s *FixSession) { s.Open = false }, "time of the Logon": func(s *FixSession) { s.LogonNs++ },
	} {
		m := fixState(t)
		change(m.Fix.At(0))
		if m.Recount() == before {
			t.Errorf("%s: the digest is the same", name)
		}
	}
	m := fixState(t)
	*m.Fix.At(0), *m.Fix.At(2) = *m.Fix.At(2), *m.Fix.At(0)
	if m.Recount() == before {
		t.Error("slots: the digest is the same")
	}
}

func TestFixOrdersAllocateNothing(t *testing.T) {
	l := newFixLog(t)
	if err := l.open(1, order.FixOpening{Day: 100}, 0, 1); err != nil {
		t.Fatal(err)
	}
	e := order.Entry{Kind: order.KindOrder, Flags: l.flags(0), Seq: 9, ClientSeq: 2}
	step := l.record(0, order.FixStep, 1, 1<<40)
	payload := order.AppendFixRecord(nil, &step)
	if n := testing.AllocsPerRun(1000, func() {
		e.Kind, e.Flags = order.KindOrder, l.flags(0)
		e.ClientSeq++
		l.m.Apply(&e, nil)
		e.Kind, e.Flags = order.KindFix, 0
		l.m.Apply(&e, payload)
	}); n != 0 {
		t.Errorf("an order and a step allocate %.1f times", n)
	}
}
