package function

import (
	"bytes"
	"os"
	"testing"

	"github.com/ordergrid/ordergrid/grid-node/order"
)

// cancel is an OrderCancelRequest, which has neither OrdType nor price.
const cancel = "35=F\x0149=P\x0156=G\x0134=1\x0152=20071115-14:30:00.123\x0141=A\x0111=B\x0155=IBM\x0154=1\x0160=20071115-14:30:00.123\x0138=100\x01"

// TestWhatWasParsedIsWhatIsFound: a function gets the same area from what the node has
// parsed as from the message alone.
func TestWhatWasParsedIsWhatIsFound(t *testing.T) {
	v42, err := os.ReadFile("../order/testdata/order-305-fix42.txt")
	if err != nil {
		t.Fatal(err)
	}
	v50, err := os.ReadFile("../order/testdata/order-305-fix50.txt")
	if err != nil {
		t.Fatal(err)
	}
	short := cat("8=FIX.4.4\x019=99\x01", cancel, "10=000\x01")
	if len(cancel) != 99 || !order.Seal(short) {
		t.Fatalf("the cancel has %d bytes", len(cancel))
	}
	i := load(t, entry(Pre, nil, constI32(0)), Pre, Options{})
	for name, raw := range map[string][]byte{
		"FIX 4.2": v42, "FIX 5.0 SP2": v50, "FIX 4.4": message(t), "cancel": short,
		"no account": bytes.Clone(short), "immediate": with(t, set(59, "3")).Raw, "small price": with(t, set(44, "0.00000001")).Raw,
		"long account": with(t, set(1, "A-VERY-LONG-ACCOUNT")).Raw, "other quantity": with(t, set(38, "123456789.5")).Raw,
	} {
		var areas [2][]byte
		for k, p := range []*order.Order{nil, parsed(t, raw)} {
			if f := i.Decide(t.Context(), &Order{Seq: 3, Time: 4, Raw: raw, Parsed: p}).Fault; f != None {
				t.Fatal(f)
			}
			area, _ := i.view()
			areas[k] = bytes.Clone(area)
			clear(area[areaSeq:areaOut])
		}
		if !bytes.Equal(areas[0], areas[1]) {
			t.Errorf("%s: found\n%x, parsed\n%x", name, areas[0][areaSeq:areaOut], areas[1][areaSeq:areaOut])
		}
	}
}
