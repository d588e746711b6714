package grid

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/ordergrid/ordergrid/client"
	"github.com/ordergrid/ordergrid/grid-node/order"
)

// An order message is the account's whether its partition stores it or matches it.
func TestEntry(t *testing.T) {
	body := "35=D\x0149=P\x0156=G\x0134=1\x0152=20071115-14:30:00.123\x0111=ORDER-7\x0121=1\x0155=IBM\x0154=1\x0160=20071115-14:30:00.123\x0138=5\x0140=1\x01"
	fix := fmt.Appendf(nil, "8=FIX.4.2\x019=%d\x01%s10=000\x01", len(body), body)
	order.Seal(fix)
	var o order.Order
	if err := order.Parse(fix, &o); err != nil {
		t.Fatal(err)
	}
	for kind, c := range map[order.Kind]struct {
		fields  order.Fields
		payload []byte
		order   bool
	}{
		order.KindOrder:   {o.Fields, fix, true},
		order.KindExecute: {o.Fields.Instructed(), append((&order.Instruction{Op: order.InstructEnter, Side: 1, Type: 2, Qty: 5, Owner: 1}).Append(nil), fix...), true},
		order.KindNoop:    {order.Fields{}, make([]byte, 16), false},
	} {
		head := order.Entry{Kind: kind, Seq: 9, Epoch: 1, ClientSeq: 1, Fields: c.fields, Size: uint32(order.HeaderSize + len(c.payload))}
		if !c.order {
			head.ClientSeq = 0
		}
		b := make([]byte, order.HeaderSize)
		head.Put(b)
		var e client.LogEntry
		var err error
		if e.Bytes, err = order.DecodeEntry(append(b, c.payload...), &e.Entry); err != nil {
			t.Fatal(err)
		}
		got := entry(e)
		if got.Seq != 9 || got.Hash != order.Hash(e.Bytes) || got.IsOrder != c.order {
			t.Errorf("%s: %+v", kind, got)
		}
		if c.order && (!bytes.Equal(got.FIX, fix) || string(got.ClOrdID) != "ORDER-7") {
			t.Errorf("%s: ClOrdID %q, message %q", kind, got.ClOrdID, got.FIX)
		}
	}
}
