package order

import (
	"bytes"
	"testing"
)

// FuzzParse: for any input, Parse neither panics nor points outside the message, does not
// change it, and explains a rejection. An accepted message has the required fields. The
// envelope is repaired half of the time, so that the fuzzer gets past the CheckSum.
func FuzzParse(f *testing.F) {
	for _, name := range []string{"order-305-fix42.txt", "order-305-fix44.txt", "order-305-fix50.txt"} {
		f.Add(seed(f, name), uint8(0))
	}
	f.Add([]byte(whole+"453=1|448=A|447=D|452=1|95=3|96=a\x01b|5001=x|"), uint8(1))
	f.Add([]byte(whole+laterFields), uint8(2))
	f.Add([]byte(header+whole), uint8(1))
	f.Add(envelopeFor("F", header+"11=B|41=A|55=IBM|54=1|60=20071115-14:30:00|38=1|"), uint8(0))
	f.Add(envelopeFor("G", header+"11=B|41=A|21=1|"+rest), uint8(0))
	f.Fuzz(func(t *testing.T, data []byte, repair uint8) { // 0: not
		msg := data
		if version := []string{"", "FIX.4.4", "FIXT.1.1"}[repair%3]; version != "" && len(data) < 60000 {
			msg = envelopeOf(version, string(data))
		}
		before := bytes.Clone(msg)
		var o Order
		err := Parse(msg, &o)
		if !bytes.Equal(before, msg) {
			t.Fatal("Parse changed the message")
		}
		if err != nil {
			if err.Reason == 0 || err.Value == "" || err.Allowed == "" || len(err.Error()) > 1024 {
				t.Fatalf("an error without words, or with too many: %#v", err)
			}
			return
		}
		checkFields(t, msg, &o)
		// An accepted message fits an entry with the same fields.
		e := Entry{Size: uint32(HeaderSize + len(msg)), Kind: KindOrder, Seq: 1, Fields: o.Fields}
		b := make([]byte, Padded(int(e.Size)))
		e.Put(b)
		copy(b[HeaderSize:], msg)
		var back Entry
		entry, rest, err2 := NextEntry(b, &back)
		if err2 != nil || back != e || len(rest) != 0 || !bytes.Equal(Payload(entry), msg) {
			t.Fatalf("entry %+v became %+v: %v", e, back, err2)
		}
	})
}

func checkFields(t *testing.T, msg []byte, o *Order) {
	t.Helper()
	in := func(off uint16, n uint8, what string) []byte {
		if int(off)+int(n) >= len(msg) {
			t.Fatalf("%s is outside: %d+%d of %d", what, off, n, len(msg))
		}
		return msg[off : int(off)+int(n)]
	}
	if len(in(o.ClOrdIDOff, o.ClOrdIDLen, "ClOrdID")) == 0 || len(in(o.SymbolOff, o.SymbolLen, "Symbol")) == 0 {
		t.Fatal("an order without ClOrdID or Symbol")
	}
	in(o.AccountOff, o.AccountLen, "Account")
	in(o.QtyOff, 1, "OrderQty")
	in(o.PriceOff, 1, "Price")
	if o.Side == 0 || o.OrdType == 0 && o.MsgType != 'F' || CheckSum(msg[:int(o.CheckSumOff)-3]) != (msg[o.CheckSumOff]-'0')*100+(msg[o.CheckSumOff+1]-'0')*10+msg[o.CheckSumOff+2]-'0' {
		t.Fatalf("an order that is not whole: %+v", o)
	}
}

// FuzzEntry: decoding never panics, and an accepted entry is what Put writes.
func FuzzEntry(f *testing.F) {
	e := Entry{Size: HeaderSize + 16, Kind: KindNoop, Seq: 7, PrevHash: 9, Epoch: 2, TimeNs: -1}
	b := make([]byte, e.Size)
	e.Put(b)
	f.Add(b)
	f.Add(append(bytes.Clone(b), b...))
	f.Fuzz(func(t *testing.T, data []byte) {
		for rest := data; len(rest) > 0; {
			var e Entry
			entry, after, err := NextEntry(rest, &e)
			if err != nil {
				return
			}
			if len(entry) < HeaderSize || len(after) >= len(rest) || Seq(entry) != e.Seq || PrevHash(entry) != e.PrevHash {
				t.Fatalf("entry of %d bytes, %d left of %d", len(entry), len(after), len(rest))
			}
			_ = ClOrdID(entry)
			again := bytes.Clone(entry)
			e.Put(again)
			if !bytes.Equal(again, entry) {
				t.Fatalf("decoded and put back:\n%x\n%x", entry[:HeaderSize], again[:HeaderSize])
			}
			rest = after
		}
	})
}
