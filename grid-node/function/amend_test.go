package function

import (
	"bytes"
	"os"
	"testing"

	"github.com/ordergrid/ordergrid/grid-node/order"
)

// TestAmendVersions: what a function sets is set in the message of each version, which stays of
// that version; what makes it another one is refused when it is parsed.
func TestAmendVersions(t *testing.T) {
	for file, version := range map[string]order.Version{"order-305-fix42.txt": order.FIX42, "order-305-fix44.txt": order.FIX44, "order-305-fix50.txt": order.FIX50} {
		raw, err := os.ReadFile("../order/testdata/" + file)
		if err != nil {
			t.Fatal(err)
		}
		out, err := Amend(nil, raw, []Set{set(38, "7"), set(1, "ANOTHER"), set(5001, "new")})
		if err != nil {
			t.Fatal(err)
		}
		var o order.Order
		if err := order.Parse(out, &o); err != nil || o.Version != version {
			t.Fatalf("%s: %v, version %d, want %d: %q", file, err, o.Version, version, out)
		}
		for tag, want := range map[uint32]string{38: "7", 1: "ANOTHER", 5001: "new", 44: "104.2500"} {
			if got := order.TagValue(out, tag); string(got) != want {
				t.Errorf("%s: tag %d is %q, want %q", file, tag, got, want)
			}
		}
		if begin := order.BeginStringLen(raw); !bytes.Equal(out[:begin], raw[:begin]) {
			t.Errorf("%s begins with %q", file, out[:begin])
		}
		out, err = Amend(nil, raw, []Set{set(1128, "6")})
		if err != nil {
			t.Fatal(err)
		}
		if err := order.Parse(out, &o); (err != nil) != (version == order.FIX50) {
			t.Errorf("%s with ApplVerID 6: %v", file, err)
		}
	}
}
