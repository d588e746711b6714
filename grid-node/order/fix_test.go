package order

import (
	"bytes"
	"os"
	"testing"
)

// The 305-byte orders are the ones of the published probe: FIX 4.2 and 4.4
// NewOrderSingle of exactly 305 bytes (copied from the project's seed data,
// order-305-fix42.txt and order-305-fix44.txt). That of FIX 5.0 SP2 has the fields of 4.4,
// ApplVerID, and less text.
func seed(tb testing.TB, name string) []byte {
	tb.Helper()
	b, err := os.ReadFile("testdata/" + name)
	if err != nil {
		tb.Fatal(err)
	}
	return b
}

func TestParseSeeds(t *testing.T) {
	for _, c := range []struct {
		file    string
		version Version
	}{{"order-305-fix42.txt", FIX42}, {"order-305-fix44.txt", FIX44}, {"order-305-fix50.txt", FIX50}} {
		msg := seed(t, c.file)
		if len(msg) != 305 {
			t.Fatalf("%s has %d bytes, want 305", c.file, len(msg))
		}
		var o Order
		if err := Parse(msg, &o); err != nil {
			t.Fatalf("%s: %v", c.file, err)
		}
		at := func(off uint16, n int) string { return string(msg[off : int(off)+n]) }
		if o.Version != c.version || o.Side != '1' || o.OrdType != '2' || o.TimeInForce != '0' {
			t.Errorf("%s: got %+v", c.file, o)
		}
		if got := at(o.ClOrdIDOff, int(o.ClOrdIDLen)); got != "PRA20071115T00000001" {
			t.Errorf("ClOrdID %q", got)
		}
		if got := at(o.SymbolOff, int(o.SymbolLen)); got != "IBM" {
			t.Errorf("Symbol %q", got)
		}
		if got := at(o.AccountOff, int(o.AccountLen)); got != "ACCT-00012345" {
			t.Errorf("Account %q", got)
		}
		if got := at(o.QtyOff, 6); got != "000100" {
			t.Errorf("OrderQty %q", got)
		}
		if got := at(o.PriceOff, 8); got != "104.2500" {
			t.Errorf("Price %q", got)
		}
		if !bytes.Equal(msg[o.CheckSumOff-3:o.CheckSumOff], []byte("10=")) {
			t.Errorf("CheckSumOff %d", o.CheckSumOff)
		}
	}
}

func TestParseDoesNotAllocate(t *testing.T) {
	for _, msg := range [][]byte{seed(t, "order-305-fix44.txt"), seed(t, "order-305-fix50.txt"), fix50(whole + laterFields)} {
		var o Order
		if n := testing.AllocsPerRun(1000, func() {
			if err := Parse(msg, &o); err != nil {
				t.Fatal(err)
			}
		}); n != 0 {
			t.Errorf("%v allocations an order, want 0: %q", n, msg)
		}
	}
}

func BenchmarkParse(b *testing.B) {
	for _, f := range []string{"order-305-fix42.txt", "order-305-fix44.txt", "order-305-fix50.txt"} {
		msg := seed(b, f)
		b.Run(f[10:15], func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(int64(len(msg)))
			var o Order
			for b.Loop() {
				if err := Parse(msg, &o); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
