package main

import (
	"fmt"
	"strings"

	"github.com/ordergrid/ordergrid/grid-node/order"
)

// orderVectors are messages that a node takes, with what it finds in them, and messages that it refuses.
func orderVectors() (file, error) {
	f := file{name: "orders.json", about: "A node takes these messages as orders and finds these fields in them; offsets count from the first byte of the message, 0 for none. " +
		"A vector with refused is answered by Reject BadFIX with this tag. A client need not look: it takes tag 11 of any message to route it, and sends it."}
	fields := "49=CLIENT\x0156=GRID\x0134=1\x0152=20261123-09:30:00.000\x0111=%s\x0155=IBM\x0154=1\x0160=20261123-09:30:00.000\x0138=100\x0140=2\x0144=104.25\x01"
	d := func(version, id, more string) []byte {
		return message(version, "35=D\x01"+fmt.Sprintf(fields, id)+more)
	}
	good := d("FIX.4.4", "ORD-1", "")
	for _, m := range []frame{
		{name: "FIX 4.4 limit order", bytes: good},
		{name: "FIX 4.2 limit order", bytes: d("FIX.4.2", "ORD-1", "21=1\x01")},
		{name: "FIX 5.0 SP2 limit order", bytes: d("FIXT.1.1", "ORD-1", "")},
		{name: "FIX 5.0 SP2 with ApplVerID, and a group that is in no version before", bytes: message("FIXT.1.1", "35=D\x011128=9\x01"+fmt.Sprintf(fields, "ORD-1")+"957=2\x01958=a\x01959=1\x01958=b\x01959=1\x01")},
		{name: "with an account", bytes: newOrder("ORD-1")},
		{name: "longest ClOrdID", bytes: d("FIX.4.4", strings.Repeat("~", order.MaxClOrdID), "")},
		{name: "tags that are not known", bytes: d("FIX.4.4", "ORD-1", "9001=x\x0158=some text\x01")},
		{name: "data with an SOH and 11= in it", bytes: message("FIX.4.4", "35=D\x0195=5\x0196=\x0111=x\x01"+fmt.Sprintf(fields, "ORD-1"))},
		{name: "cancel", bytes: message("FIX.4.4", "35=F\x0141=ORD-1\x01"+fmt.Sprintf(fields, "C-1"))},
		{name: "replace", bytes: message("FIX.4.4", "35=G\x0141=ORD-1\x01"+fmt.Sprintf(fields, "R-1"))},
	} {
		var o order.Order
		if err := order.Parse(m.bytes, &o); err != nil {
			return f, fmt.Errorf("%s: %w", m.name, err)
		}
		at := func(off uint16, n uint8) string { return string(m.bytes[off : int(off)+int(n)]) }
		f.vectors = append(f.vectors, object{{"name", m.name}, {"msgType", string(o.MsgType)}, {"side", string(o.Side)},
			{"clOrdID", at(o.ClOrdIDOff, o.ClOrdIDLen)}, {"symbol", at(o.SymbolOff, o.SymbolLen)}, {"account", at(o.AccountOff, o.AccountLen)},
			{"clOrdIDOff", small(o.ClOrdIDOff)}, {"symbolOff", small(o.SymbolOff)}, {"accountOff", small(o.AccountOff)},
			{"qtyOff", small(o.QtyOff)}, {"priceOff", small(o.PriceOff)}, {"hex", m.bytes}})
	}
	for _, m := range []frame{
		{name: "no bytes", bytes: nil},
		{name: "cut", bytes: good[:len(good)-1]},
		{name: "wrong CheckSum", bytes: with(good, func(b []byte) { b[len(b)-2] ^= 1 })},
		{name: "wrong BodyLength", bytes: with(good, func(b []byte) { b[12] ^= 1 })},
		{name: "FIX 5.0 without FIXT", bytes: d("FIX.5.0", "ORD-1", "")},
		{name: "FIX 4.4 over FIXT", bytes: message("FIXT.1.1", "35=D\x011128=6\x01"+fmt.Sprintf(fields, "ORD-1"))},
		{name: "an ExecutionReport", bytes: message("FIX.4.4", "35=8\x01"+fmt.Sprintf(fields, "ORD-1"))},
		{name: "no ClOrdID", bytes: message("FIX.4.4", "35=D\x01"+strings.Replace(fields, "11=%s\x01", "", 1))},
		{name: "ClOrdID of 65 bytes", bytes: d("FIX.4.4", strings.Repeat("x", order.MaxClOrdID+1), "")},
		{name: "a tag twice", bytes: d("FIX.4.4", "ORD-1", "55=MSFT\x01")},
		{name: "side Z", bytes: message("FIX.4.4", "35=D\x01"+strings.Replace(fmt.Sprintf(fields, "ORD-1"), "54=1", "54=Z", 1))},
		{name: "quantity 0", bytes: message("FIX.4.4", "35=D\x01"+strings.Replace(fmt.Sprintf(fields, "ORD-1"), "38=100", "38=0", 1))},
		{name: "cancel of nothing", bytes: message("FIX.4.4", "35=F\x01"+fmt.Sprintf(fields, "C-1"))},
		{name: "a byte that is no ASCII", bytes: d("FIX.4.4", "ORD-\xe9", "")},
	} {
		var o order.Order
		err := order.Parse(m.bytes, &o)
		if err == nil {
			return f, fmt.Errorf("%s: taken", m.name)
		}
		f.vectors = append(f.vectors, object{{"name", m.name}, {"refused", true}, {"tag", small(err.Tag)}, {"reason", err.Reason.String()}, {"value", err.Value}, {"allowed", err.Allowed}, {"hex", m.bytes}})
	}
	return f, nil
}
