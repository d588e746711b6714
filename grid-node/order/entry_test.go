package order

import (
	"strings"
	"testing"
)

func TestEntryRefuses(t *testing.T) {
	good := func() (Entry, []byte) {
		msg := seed(t, "order-305-fix44.txt")
		var o Order
		if err := Parse(msg, &o); err != nil {
			t.Fatal(err)
		}
		e := Entry{Size: uint32(HeaderSize + len(msg)), Kind: KindOrder, Seq: 3, PrevHash: 1, Epoch: 1, ClientSeq: 2, TimeNs: 5, Fields: o.Fields}
		b := make([]byte, Padded(int(e.Size)))
		copy(b[HeaderSize:], msg)
		return e, b
	}
	for _, c := range []struct {
		name, want string
		change     func(e *Entry, b *[]byte)
	}{
		{"cut header", "entry 0: bytes is 10, allowed: 64 or more", func(_ *Entry, b *[]byte) { *b = (*b)[:10] }},
		{"size below the header", "entry 3: size is 63, allowed: 64..65536 and no more than the bytes there", func(e *Entry, _ *[]byte) { e.Size = 63 }},
		{"size beyond the bytes", "entry 3: size is 377, allowed: 64..65536 and no more than the bytes there", func(e *Entry, _ *[]byte) { e.Size = 377 }},
		{"size of 4 GiB", "entry 3: size is 4294967295, allowed: 64..65536 and no more than the bytes there", func(e *Entry, _ *[]byte) { e.Size = 1<<32 - 1 }},
		{"kind 0", "entry 3: kind is 0, allowed: 1 noop, 2 order, 3 session, 4 cursor, 5 truncate, 6 reader, 7 fix, 8 execute, 9 market, 10 continue, 11 guard, 12 functions, 14 region, 15 drop-copy", func(e *Entry, _ *[]byte) { e.Kind = 0 }},
		{"noop with an order's bytes", "entry 3: size is 369, allowed: 80 for a noop entry", func(e *Entry, _ *[]byte) { e.Kind = KindNoop }},
		{"seq 0", "entry 0: seq is 0, allowed: 1 or more", func(e *Entry, _ *[]byte) { e.Seq = 0 }},
		{"no ClOrdID", "entry 3: clOrdIDOff is 0, allowed: 1 or more: an order has a ClOrdID", func(e *Entry, _ *[]byte) { e.Fields.ClOrdIDOff = 0 }},
		{"ClOrdID outside", "entry 3: clOrdIDOff is 300, allowed: an offset inside the payload", func(e *Entry, _ *[]byte) { e.Fields.ClOrdIDOff = 300 }},
		{"symbol outside", "entry 3: symbolOff is 65535, allowed: an offset inside the payload", func(e *Entry, _ *[]byte) { e.Fields.SymbolOff = 65535 }},
		{"account outside", "entry 3: accountOff is 305, allowed: an offset inside the payload", func(e *Entry, _ *[]byte) { e.Fields.AccountOff = 305 }},
		{"quantity outside", "entry 3: qtyOff is 305, allowed: an offset inside the payload", func(e *Entry, _ *[]byte) { e.Fields.QtyOff = 305 }},
		{"price outside", "entry 3: priceOff is 400, allowed: an offset inside the payload", func(e *Entry, _ *[]byte) { e.Fields.PriceOff = 400 }},
		{"padding not there", "entry 3: padding is 370, allowed: entries padded to 8 bytes", func(_ *Entry, b *[]byte) { *b = (*b)[:370] }},
		{"padding not zero", "entry 3: padding is 7, allowed: zero bytes", func(_ *Entry, b *[]byte) { (*b)[369] = 7 }},
	} {
		e, b := good()
		c.change(&e, &b)
		if len(b) >= HeaderSize {
			e.Put(b)
		}
		var got Entry
		_, _, err := NextEntry(b, &got)
		if err == nil || err.Error() != c.want {
			t.Errorf("%s:\n got  %v\n want %s", c.name, err, c.want)
		}
	}
	e, b := good()
	e.Put(b)
	b[55] = 2
	if _, err := DecodeEntry(b, &e); err == nil || !strings.Contains(err.Error(), "flags is 2, allowed: 0, and an odd number for an order") {
		t.Errorf("an unknown flag: %v", err)
	}
	b[55] = FlagFix
	if entry, err := DecodeEntry(b, &e); err != nil || e.Flags != FlagFix || !IsFix(entry) {
		t.Errorf("an order of a FIX session: %v, flags %d", err, e.Flags)
	}
	b[55], b[60] = 0, 1
	if _, err := DecodeEntry(b, &e); err == nil || !strings.Contains(err.Error(), "reserved") {
		t.Errorf("reserved bytes: %v", err)
	}
}

func TestReaderEntries(t *testing.T) {
	for name, ok := range map[string]bool{"a": true, "archive-2": true, strings.Repeat("x", MaxReaderName): true,
		"": false, strings.Repeat("x", MaxReaderName+1): false, "A": false, "a.b": false, "a b": false, "\x00": false} {
		payload := AppendReader(nil, 7, name)
		e := Entry{Size: uint32(HeaderSize + len(payload)), Kind: KindReader, Seq: 9}
		b := make([]byte, HeaderSize, 256)
		e.Put(b)
		var got Entry
		entry, err := DecodeEntry(append(b, payload...), &got)
		if ok != (err == nil) || ok != IsReaderName(name) {
			t.Errorf("%q: %v, want taken: %t", name, err, ok)
		}
		if !ok {
			continue
		}
		if seq, n := Reader(Payload(entry)); seq != 7 || string(n) != name {
			t.Errorf("%q is read as %q at %d", name, n, seq)
		}
	}
}

func TestChainOfHashes(t *testing.T) {
	// Hash covers prevHash: one changed bit anywhere changes all later hashes.
	b := make([]byte, HeaderSize+16)
	e := Entry{Size: uint32(len(b)), Kind: KindNoop, Seq: 1}
	e.Put(b)
	one := Hash(b)
	e.Seq, e.PrevHash = 2, one
	e.Put(b)
	two := Hash(b)
	e.PrevHash ^= 1
	e.Put(b)
	if Hash(b) == two {
		t.Error("the hash does not cover prevHash")
	}
}

func TestPeekClOrdID(t *testing.T) {
	payload := []byte("....id-1....")
	e := Entry{Size: uint32(HeaderSize + len(payload)), Kind: KindOrder, Seq: 1, Fields: Fields{ClOrdIDOff: 4, ClOrdIDLen: 4}}
	b := make([]byte, Padded(int(e.Size)))
	e.Put(b)
	copy(b[HeaderSize:], payload)
	for n := range len(b) + 1 {
		want := ""
		if n >= HeaderSize+8 {
			want = "id-1"
		}
		if got := string(PeekClOrdID(b[:n])); got != want {
			t.Errorf("of %d bytes: %q, want %q", n, got, want)
		}
	}
	b[4] = byte(KindNoop)
	if got := PeekClOrdID(b); got != nil {
		t.Errorf("of a noop: %q", got)
	}
}
