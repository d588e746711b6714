package replica_test

import (
	"fmt"
	"strings"

	"github.com/ordergrid/ordergrid/grid-node/order"
)

// fixOrder is a valid FIX 4.4 order with this ClOrdID, padded to size bytes by its Text
// when size is larger.
func fixOrder(clOrdID string, size int) []byte { return fixOrderWith("", clOrdID, size) }

// asFix50 is an order of FIX 4.4 as one of FIX 5.0 SP2.
func asFix50(fix []byte) []byte {
	msg := append([]byte("8=FIXT.1.1"), fix[len("8=FIX.4.4"):]...)
	order.Seal(msg)
	return msg
}

// fixOrderWith has further fields of the header.
func fixOrderWith(header, clOrdID string, size int) []byte {
	body := func(text string) string {
		s := "35=D|49=P|56=G|34=1|52=20071115-14:30:00.123|" + header + "11=" + clOrdID + "|55=IBM|54=1|60=20071115-14:30:00.123|38=100|40=2|44=104.25|"
		if text != "" {
			s += "58=" + text + "|"
		}
		return s
	}
	make := func(text string) []byte {
		b := body(text)
		return []byte(strings.ReplaceAll(fmt.Sprintf("8=FIX.4.4|9=%d|%s10=000|", len(b), b), "|", "\x01"))
	}
	msg := make("")
	if more := size - len(msg) - len("58=|"); more > 0 {
		msg = make(strings.Repeat("x", min(more, order.MaxValue)))
	}
	if !order.Seal(msg) {
		panic("order has no trailer")
	}
	return msg
}
