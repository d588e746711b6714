package order

import (
	"strings"
	"testing"
)

// fixEntry makes an entry of kind fix.
func fixEntry(payload []byte) []byte {
	e := Entry{Size: uint32(HeaderSize + len(payload)), Kind: KindFix, Seq: 9}
	b := make([]byte, HeaderSize)
	e.Put(b)
	return append(b, payload...)
}

func someFix() []byte {
	b := AppendFixRecord(nil, &FixRecord{Slot: 4, Attempt: 1, Generation: 1, In: 17, Op: FixStep, Outs: 255})
	b = AppendFixRecord(b, &FixRecord{Slot: 7, Attempt: 1, Generation: 1, In: 18, Op: FixRefusal, Outs: 1, Body: []byte("too large")})
	return AppendFixRecord(b, &FixRecord{Slot: 8, Attempt: 2, Generation: 1, In: 30, Op: FixRemove})
}

func someOpening() []byte {
	o := FixOpening{ID: [2]uint64{1, 2}, Day: 20000, Form: 1, Flags: FixReset, SentNs: 1 << 60}
	return AppendFixRecord(nil, &FixRecord{Slot: 3, Attempt: 4, Generation: 5, In: 2, Op: FixOpen, Outs: 1, Body: o.Append(nil)})
}

func TestFixRecords(t *testing.T) {
	for n, payload := range map[int][]byte{1: someOpening(), 3: someFix()} {
		var e Entry
		entry, err := DecodeEntry(fixEntry(payload), &e)
		if err != nil {
			t.Fatal(err)
		}
		var again []byte
		var ops []FixOp
		for rest := Payload(entry); len(rest) > 0; {
			var r FixRecord
			rest = NextFix(rest, &r)
			again = AppendFixRecord(again, &r)
			ops = append(ops, r.Op)
			if r.Op == FixOpen && r.Opening() != (FixOpening{ID: [2]uint64{1, 2}, Day: 20000, Form: 1, Flags: FixReset, SentNs: 1 << 60}) {
				t.Errorf("the opening is read as %+v", r.Opening())
			}
		}
		if len(ops) != n || string(again) != string(payload) {
			t.Errorf("operations %v, and the bytes are equal: %t", ops, string(again) == string(payload))
		}
	}
}

func TestFixRecordsAreRefused(t *testing.T) {
	const second, third = 24, 64
	put := func(at int, v byte) func([]byte) []byte { return func(b []byte) []byte { b[at] = v; return b } }
	for name, c := range map[string]struct {
		payload []byte
		spoil   func([]byte) []byte
		want    string
	}{
		"no record":                 {someFix(), func(b []byte) []byte { return nil }, "size is 64, allowed: 64 and one record or more"},
		"half a record":             {someFix(), func(b []byte) []byte { return b[:36] }, "record is 12, allowed: 24 bytes"},
		"half a body":               {someFix(), func(b []byte) []byte { return b[:56] }, "bodySize is 9, allowed: 0..4096"},
		"a body that is too long":   {someFix(), put(second+19, 17), "bodySize is 4361"},
		"padding":                   {someFix(), put(third-1, 1), "padding is 1"},
		"one slot twice":            {someFix(), put(second, 4), "slot is 4, allowed: rising"},
		"slots that fall":           {someFix(), put(third, 1), "slot is 1, allowed: rising"},
		"operation 0":               {someFix(), put(0+16, 0), "op is 0"},
		"operation 8":               {someFix(), put(0+16, 8), "op is 8"},
		"a lapse among others":      {someFix(), put(second+16, 6), "op is 6"},
		"a step among lapses":       {someFix(), func(b []byte) []byte { b[16], b[17] = 6, 0; return b }, "op is 3"},
		"a lapse of a number":       {someFix(), put(16, 6), "outs is 255, allowed: 1 for an opening"},
		"a leave with a body":       {someFix(), put(second+16, 7), "bodySize is 9"},
		"a leave of none":           {someFix(), func(b []byte) []byte { b[16], b[17] = 7, 0; return b }, "outs is 0"},
		"mode 3":                    {someOpening(), put(24+21, 6), "bodySize is 32"},
		"a mode without a grace":    {someOpening(), put(24+21, 2), "grace of 0 to 60000 that is 0 without a mode"},
		"half a mass cancel":        {someMass(), func(b []byte) []byte { b[18] = 7; return b[:32] }, "bodySize is 7, allowed: 8 and the message"},
		"a mass cancel of no side":  {someMass(), put(26, 3), "side is 3"},
		"a mass cancel unnamed":     {someMass(), put(27, 0), "clOrdIDLen is 0"},
		"a ClOrdID outside":         {someMass(), put(28, 12), "clOrdIDLen is 3, allowed: 1..64, and inside the message"},
		"a mass cancel's reserve":   {someMass(), put(30, 1), "reserved is 1"},
		"a mass cancel of a number": {someMass(), put(17, 1), "outs is 1"},
		"a mass cancel with a step": {append(someMass(), someFix()...), func(b []byte) []byte { return b }, "op is 5, allowed: 1 and 5 only"},
		"an unknown flag":           {someOpening(), put(24+21, 16), "bodySize is 32, allowed: 32 for an opening, its flags 0 to 13"},
		"a grace without a mode":    {someOpening(), put(24+23, 1), "grace of 0 to 60000 that is 0 without a mode"},
		"an opening without body":   {someFix(), put(16, 1), "bodySize is 0, allowed: 32 for an opening"},
		"an opening with a step":    {append(someOpening(), someFix()...), func(b []byte) []byte { return b }, "op is 1, allowed: 1 and 5 only as the one record"},
		"a step before the opening": {append(someFix()[:24], append(someOpening(), 9)[:56]...), func(b []byte) []byte { b[24] = 9; return b }, "op is 1, allowed: 1 and 5 only as the one record"},
		"a step with a body":        {someFix(), put(second+16, 2), "bodySize is 9, allowed: 0 for a step"},
		"a step of none":            {someFix(), put(17, 0), "outs is 0"},
		"an opening of two":         {someOpening(), put(17, 2), "outs is 2"},
		"a refusal of two":          {someFix(), put(second+17, 2), "outs is 2"},
		"a removal of one":          {someFix(), put(third+17, 1), "outs is 1"},
	} {
		var e Entry
		if _, err := DecodeEntry(fixEntry(c.spoil(c.payload)), &e); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}

func someMass() []byte {
	m := FixMassCancel{Book: 1, Side: 2, ClOrdIDOff: 5, ClOrdIDLen: 3, Message: []byte("35=q|q-1|54=2|")}
	return AppendFixRecord(nil, &FixRecord{Slot: 1, Attempt: 2, Generation: 1, In: 9, Op: FixMass, Body: m.Append(nil)})
}

func TestMassCancelOf(t *testing.T) {
	m, slot, seq, ok := MassCancelOf(someMass())
	if !ok || slot != 1 || seq != 8 || m.Book != 1 || m.Side != 2 || string(m.ClOrdID()) != "q-1" || string(m.Message) != "35=q|q-1|54=2|" {
		t.Errorf("%+v of slot %d, number %d, %t", m, slot, seq, ok)
	}
	if _, _, _, ok := MassCancelOf(someFix()); ok {
		t.Error("a step is a mass cancel")
	}
}
