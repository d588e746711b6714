package file

import (
	"strings"
	"testing"

	"github.com/ordergrid/ordergrid/grid-node/order"
	"github.com/ordergrid/ordergrid/grid-node/sink"
)

// TestLineOfAMatchedOrder: the line of an order of a partition that matches has the message as it was sent, without the
// instruction in front of it.
func TestLineOfAMatchedOrder(t *testing.T) {
	const fix = "8=FIX.4.2\x0111=late\x0110=000\x01"
	payload := append((&order.Instruction{Op: order.InstructEnter, Side: 1}).Append(nil), fix...)
	e := order.Entry{Kind: order.KindExecute, Seq: 7, Epoch: 2, ClientSeq: 3, TimeNs: 1234, Size: uint32(order.HeaderSize + len(payload)),
		Fields: order.Fields{ClOrdIDOff: order.InstructionSize + 13, ClOrdIDLen: 4}}
	b := make([]byte, order.HeaderSize)
	e.Put(b)
	line := string(appendLine(nil, append(b, payload...), 1, sink.SessionID{Hi: 10, Lo: 11}))
	if !strings.HasPrefix(line, "7\t2\t1\texecute\t000000000000000a000000000000000b\t3\t1234\t") || !strings.HasSuffix(line, "\tlate\t8=FIX.4.2|11=late|10=000|\n") {
		t.Errorf("line %q", line)
	}
}
