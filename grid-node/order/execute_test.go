package order

import (
	"strings"
	"testing"
)

func TestUnits(t *testing.T) {
	for _, c := range []struct {
		v      string
		digits uint8
		want   int64
		ok     bool
	}{
		{"104.25", 2, 10425, true}, {"104", 2, 10400, true}, {"-1.5", 3, -1500, true}, {"1.500", 1, 15, true}, {".5\x0144=3", 1, 5, true},
		{"1.55", 1, 0, false}, {"", 0, 0, false}, {"-", 0, 0, false}, {".", 2, 0, false}, {"1e3", 0, 0, false}, {"1.2.3", 4, 0, false},
		{"4611686018427387904", 1, 0, false}, {"99999999999999999999", 0, 0, false}, {"9", 12, 9_000_000_000_000, true},
	} {
		if got, ok := Units([]byte(c.v), c.digits); ok != c.ok || ok && got != c.want {
			t.Errorf("Units(%q, %d) = %d, %t, want %d, %t", c.v, c.digits, got, ok, c.want, c.ok)
		}
	}
}

// TestExecutionEntries: an instruction and a market operation survive their bytes, and
// entries that no primary makes are refused.
func TestExecutionEntries(t *testing.T) {
	i := Instruction{Op: InstructReplace, Side: 2, Type: 3, TIF: 1, SMP: 2, Flags: InstructPost, Book: 7, Owner: 8, Group: 9, Price: -10, Stop: 11, Qty: 12, Display: 13, Orig: 14}
	if got := Instructed(i.Append(nil)); got != i {
		t.Errorf("instruction %+v came back as %+v", i, got)
	}
	m := Market{Op: MarketDefine, Kind: 4, Side: 1, State: 3, Book: 5, PriceDigits: 2, QtyDigits: 1, Values: [5]uint64{1, 2, 3, 4, 5}, Symbol: []byte("IBM")}
	if got := MarketOf(m.Append(nil)); string(got.Symbol) != "IBM" || got.Values != m.Values || got.Book != 5 || got.State != 3 || got.QtyDigits != 1 {
		t.Errorf("market operation %+v came back as %+v", m, got)
	}
	message := append(i.Append(nil), "11=a\x01"...)
	fields := Fields{ClOrdIDOff: 3, ClOrdIDLen: 1}.Instructed()
	change := func(at int, v byte) []byte {
		b := append([]byte(nil), message...)
		b[at] = v
		return b
	}
	reasoned := func(op MarketOp, n int) []byte {
		m := Market{Op: op, Kind: 5, Symbol: []byte(strings.Repeat("x", n))}
		return m.Append(nil)
	}
	for name, c := range map[string]struct {
		e       Entry
		payload []byte
		want    string
	}{
		"as it should be":      {Entry{Kind: KindExecute, Fields: fields}, message, ""},
		"no message":           {Entry{Kind: KindExecute, Fields: fields}, message[:InstructionSize], "size is 128"},
		"unknown operation":    {Entry{Kind: KindExecute, Fields: fields}, change(0, 9), "op is 9"},
		"reserved field":       {Entry{Kind: KindExecute, Fields: fields}, change(60, 1), "reserved"},
		"ClOrdID too early":    {Entry{Kind: KindExecute, Fields: Fields{ClOrdIDOff: 3, ClOrdIDLen: 1}}, message, "clOrdIDOff is 3"},
		"market":               {Entry{Kind: KindMarket}, m.Append(nil), ""},
		"market without name":  {Entry{Kind: KindMarket}, m.Append(nil)[:MarketSize], "op is 2"},
		"market too short":     {Entry{Kind: KindMarket}, []byte{1}, "size is 65"},
		"market with reason":   {Entry{Kind: KindMarket}, reasoned(MarketApply, MaxReason), ""},
		"reason too long":      {Entry{Kind: KindMarket}, reasoned(MarketApply, MaxReason+1), "size is 241"},
		"symbol too long":      {Entry{Kind: KindMarket}, reasoned(MarketDefine, MaxSymbol+1), "size is 177"},
		"config with reason":   {Entry{Kind: KindMarket}, reasoned(MarketConfig, 1), "op is 1"},
		"continue":             {Entry{Kind: KindContinue}, nil, ""},
		"continue with bytes":  {Entry{Kind: KindContinue}, []byte{1}, "64 for a continue entry"},
		"kind that is not yet": {Entry{Kind: 250}, nil, "kind is 250"},
	} {
		b := append(make([]byte, HeaderSize), c.payload...)
		c.e.Seq, c.e.Size = 1, uint32(len(b))
		c.e.Put(b)
		var e Entry
		_, err := DecodeEntry(b, &e)
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
		if c.want == "" && e != c.e {
			t.Errorf("%s: decoded as %+v, want %+v", name, e, c.e)
		}
	}
}
