package function

import (
	"bytes"
	"testing"

	"github.com/ordergrid/ordergrid/grid-node/order"
)

func TestNumber(t *testing.T) {
	for text, want := range map[string]int64{"1": 1e8, "0.00000001": 1, "-2.5": -25e7, "12.340000000000": 1234e6, "007": 7e8, ".5": 5e7, "5.": 5e8, "-0": 0,
		"92233720368": 92233720368e8, "92233720368.5477579": 9223372036854775790, "0000000000000000092233720368": 92233720368e8, "100": 1e10, "31.25": 3125e6} {
		if got, ok := decimal([]byte(text)); !ok || got != want {
			t.Errorf("decimal: %s is %d, %v, want %d", text, got, ok, want)
		}
		if got, ok := number([]byte(text + "\x0110=000\x01")); !ok || got != want {
			t.Errorf("number: %s is %d, %v, want %d", text, got, ok, want)
		}
	}
	for _, text := range []string{"", "-", ".", "-.", "1.000000001", "92233720369", "92233720368.54775808", "1e3", "1.2.3", "99999999999999999999", "--1", "1-", "+1", " 1"} {
		if got, ok := decimal([]byte(text)); ok {
			t.Errorf("decimal: %q is %d", text, got)
		}
		if got, ok := number([]byte(text + "\x0110=000\x01")); ok {
			t.Errorf("number: %q is %d", text, got)
		}
	}
}

// FuzzNumber: what is read in one pass is what decimal reads. The records of Post functions,
// and so the digests of copies, depend on it.
func FuzzNumber(f *testing.F) {
	for _, text := range []string{"100\x01", "31.25\x01", "-1.5\x01", ".\x01", "\x01", "1.0000000000\x01", "1.000000001\x01", "999999999999999999\x01",
		"9223372036854775807\x01", "92233720368.54775807\x01", "92233720368.5477579\x01", "0.00000000000000000000\x01", "1..2\x01", "12", "1.2", "000000000000000001\x01"} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, v []byte) {
		want, there := decimal(v[:max(bytes.IndexByte(v, order.SOH), 0)])
		if got, ok := number(v); got != want || ok != there {
			t.Errorf("%q is %d, %v, decimal has %d, %v", v, got, ok, want, there)
		}
	})
}
