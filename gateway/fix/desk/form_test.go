package desk

import (
	"strings"
	"testing"

	"github.com/ordergrid/ordergrid/gateway/fix"
	"github.com/ordergrid/ordergrid/grid-node/order"
	"github.com/ordergrid/ordergrid/grid-node/wire"
)

func sealed(kind, fields string) []byte {
	body := strings.ReplaceAll("35="+kind+"|34=7|49=BANK|56=GRID|"+fields, "|", "\x01")
	return []byte("8=FIX.4.4\x019=" + "100" + "\x01" + body + "10=000\x01")
}

const fields = "11=o1|1=ACCT|55=INTC|54=1|38=500|40=2|44=21.35|59=0|"

func text(m fix.Sent) string { return m.Type + "|" + strings.ReplaceAll(string(m.Body), "\x01", "|") }

var there = place{partition: 1, seq: 17, epoch: 3, timeNs: 1_795_435_380_000_000_000}

// What a report has is that of the entry.
func TestReportsOfEntries(t *testing.T) {
	grid := func(code wire.Code, detail uint64, why string, message []byte) []byte {
		return order.AppendFixRefused(nil, uint16(code), 0, detail, why, message)
	}
	var x former
	cancel := sealed("F", "11=c1|41=o1|55=INTC|54=1|")
	check := func(name string, got fix.Sent, not string, want ...string) {
		t.Helper()
		all := text(got)
		for _, w := range want {
			if !strings.Contains(all, w) {
				t.Errorf("%s: got %s, want %s", name, all, w)
			}
		}
		if not != "" && strings.Contains(all, not) {
			t.Errorf("%s: got %s, want nothing of %s", name, all, not)
		}
		if !got.Kept || got.TimeNs != there.timeNs {
			t.Errorf("%s: kept %t, time %d", name, got.Kept, got.TimeNs)
		}
	}
	check("order", x.order(fix.FIX44, there, sealed("D", fields)), "|103=", "8|1=ACCT|", "|17=p1/17.1|37=p1/17@3|38=500|39=0|", "|150=0|151=500|")
	check("cancel", x.order(fix.FIX44, there, cancel), "|103=", "|11=c1|", "|39=6|41=o1|", "|150=6|")
	check("replace", x.order(fix.FIX44, there, sealed("G", "41=o1|"+fields)), "|103=", "|39=E|", "|41=o1|", "|150=E|")
	check("function", x.refusal(fix.FIX44, there, grid(wire.CodeFunctionRefused, 3, "above the limit", sealed("D", fields))), "",
		"8|1=ACCT|", "|37=NONE|38=500|39=8|", "|58=above the limit|", "|103=3|150=8|151=0|")
	check("function, 4.2", x.refusal(fix.FIX42, there, grid(wire.CodeFunctionRefused, 99, "no", sealed("D", fields))), "|103=99|", "|103=0|150=8|")
	check("function, cancel", x.refusal(fix.FIX44, there, grid(wire.CodeFunctionRefused, 3, "no", cancel)), "", "9|11=c1|37=NONE|39=8|41=o1|58=no|", "|102=2|434=1|")
	check("function, 5.0", x.refusal(fix.FIXT11, there, grid(wire.CodeFunctionRefused, 18, "tick", sealed("D", fields))), "", "|103=18|150=8|")
	check("function, 5.0, no such reason", x.refusal(fix.FIXT11, there, grid(wire.CodeFunctionRefused, 17, "no", sealed("D", fields))), "|103=17|", "|103=99|150=8|")
	order50 := []byte(strings.Replace(string(sealed("D", "1128=9|"+fields)), "FIX.4.4", "FIXT.1.1", 1))
	check("order, 5.0", x.order(fix.FIXT11, there, order50), "|1128=", "8|1=ACCT|", "|11=o1|", "|17=p1/17.1|37=p1/17@3|38=500|39=0|", "|150=0|151=500|")
	limit := grid(wire.CodeFunctionRefused, 13, "digits: no quantity", sealed("D", fields)) // as the grid records it
	check("limit", x.refusal(fix.FIX44, there, limit), "", "|37=NONE|38=500|39=8|", "|58=digits: no quantity|", "|103=13|150=8|")
	check("limit, 4.2", x.refusal(fix.FIX42, there, limit), "|103=13|", "|103=0|150=8|")
	check("limit, 4.2, a reason it has", x.refusal(fix.FIX42, there, grid(wire.CodeFunctionRefused, 3, "above", sealed("D", fields))), "", "|103=3|150=8|")
	check("limit, of a node before", x.refusal(fix.FIX44, there, grid(wire.CodeLimitRefused, 3, "above", sealed("D", fields))), "|103=3|", "|103=99|150=8|")
	check("duplicate", x.refusal(fix.FIX44, there, grid(wire.CodeDuplicateClOrdID, 5, "there is one", sealed("D", fields))), "", "|58=there is one|", "|103=6|150=8|")
	known := func(message []byte) []byte {
		return append([]byte{3, 0, 2, 0, 9, 0, 0, 0, 12, 0, 0, 0, 0, 0, 0, 0}, message...)
	}
	check("sent again", x.refusal(fix.FIX44, there, known(sealed("D", fields))), "|103=", "8|1=ACCT|", "|17=p1/17.1|37=p1/12@9|38=500|39=0|", "|150=I|151=500|")
	check("sent again, 4.2", x.refusal(fix.FIX42, there, known(sealed("D", fields))), "|150=I|", "|20=3|", "|37=p1/12@9|38=500|39=0|", "|150=0|")
	check("cancel sent again", x.refusal(fix.FIX44, there, known(cancel)), "|103=", "|11=c1|", "|37=p1/12@9|39=6|41=o1|", "|150=I|")
	long := grid(wire.CodeTooLarge, 5, "too long", sealed("D", fields+"58="+strings.Repeat("x", 8000)))
	if len(long) != order.MaxFixBody {
		t.Errorf("the record of a long order has %d bytes, want %d", len(long), order.MaxFixBody)
	}
	check("cut", x.refusal(fix.FIX44, there, long), "xxx", "|11=o1|", "|44=21.35|", "|58=too long|", "|103=99|")
	check("begin", x.refusal(fix.FIX44, there, grid(wire.CodeBadFIX, 5, "bad", []byte("8=FIX.4.4\x01"))), "", "|37=NONE|39=8|", "|58=bad|")
	check("empty", x.refusal(fix.FIX44, there, nil), "", "|37=NONE|39=8|")
	check("gateway", x.refusal(fix.FIX44, there, appendGatewayRefusal(nil, &fix.Sent{Type: "j", Body: []byte("45=7\x0158=no\x01380=3\x01")})), "", "j|45=7|58=no|380=3|")
}

// A copy of a report is that report, with its CompIDs in tags 115 and 128, and CopyMsgIndicator.
func TestCopiesOfReports(t *testing.T) {
	entry := func(op order.DropCopyOp, name string, body []byte) []byte {
		c := order.DropCopy{Op: op, Slot: 4, Name: []byte(name), Body: body}
		payload := c.Append(nil)
		e := order.Entry{Kind: order.KindDropCopy, Seq: there.seq, Epoch: there.epoch, TimeNs: there.timeNs, Size: uint32(order.HeaderSize + len(payload))}
		b := make([]byte, order.HeaderSize)
		e.Put(b)
		return append(b, payload...)
	}
	var x former
	refusal := order.AppendFixRefused(nil, uint16(wire.CodeDuplicateClOrdID), 0, 0, "there is one", sealed("D", fields))
	large := sealed("D", fields+"58="+strings.Repeat("x", 12_000)+"|126=20260101-00:00:00|")
	for _, c := range []struct {
		name  string
		entry []byte
		of    fix.Sent
	}{
		{"order", entry(order.DropCopyOrder, "GRID\x01BANK", sealed("D", fields)), (&former{}).order(fix.FIX44, there, sealed("D", fields))},
		{"large order", entry(order.DropCopyOrder, "GRID\x01BANK", large), (&former{}).order(fix.FIX44, there, large)},
		{"refusal", entry(order.DropCopyReport, "GRID\x01BANK", refusal), (&former{}).refusal(fix.FIX44, there, refusal)},
	} {
		m, ref, ok := x.entry(fix.FIX44, there.partition, 4, c.entry)
		want := "8|115=GRID|128=BANK|" + strings.TrimPrefix(text(c.of), "8|") + "797=Y|"
		if got := text(m); !ok || ref != 0 || got != want || !m.Kept || m.TimeNs != there.timeNs {
			t.Errorf("%s: got %s (%t, answers %d), want %s", c.name, got, ok, ref, want)
		}
	}
	if _, _, ok := x.entry(fix.FIX44, there.partition, 5, entry(order.DropCopyOrder, "GRID\x01BANK", sealed("D", fields))); ok {
		t.Error("a copy for another session is taken")
	}
}
