package desk

import (
	"testing"

	"github.com/ordergrid/ordergrid/gateway/fix"
	"github.com/ordergrid/ordergrid/grid-node/match"
	"github.com/ordergrid/ordergrid/grid-node/order"
	"github.com/ordergrid/ordergrid/grid-node/wire"
)

func TestReportsOfMassCancels(t *testing.T) {
	var x former
	request := sealed("q", "11=m1|55=IBM|54=2|530=1|")
	executed := func(rec match.Record, value [2]uint64) []byte {
		r := order.FixReport{N: 1, First: 17, Value: value, Record: rec.AppendTo(nil), ClOrdID: []byte("m1"), Message: request}
		return r.Append(nil)
	}
	taken := match.Record{Kind: match.Accepted, Reason: match.MassCancelling, Order: 17, Book: match.All}
	for _, c := range []struct {
		name string
		body []byte
		want string
	}{
		{"complete", executed(taken, [2]uint64{1, 12}), "r|11=m1|37=p1/17|54=2|55=IBM|60=20261123-12:03:00.000|530=1|531=1|533=12|"},
		{"it goes on", executed(taken, [2]uint64{}), "r|11=m1|37=p1/17|54=2|55=IBM|60=20261123-12:03:00.000|530=1|531=1|"},
		{"refused by the books", executed(match.Record{Kind: match.Rejected, Reason: match.Busy, Order: 17}, [2]uint64{}),
			"r|11=m1|37=p1/17|54=2|55=IBM|58=too many mass cancels are pending|60=20261123-12:03:00.000|530=1|531=0|532=99|"},
		{"another type", order.AppendFixRefused(nil, uint16(wire.CodeUnsupported), 530, 0, "no", request),
			"r|11=m1|37=NONE|54=2|55=IBM|58=no|60=20261123-12:03:00.000|530=1|531=0|532=0|"},
		{"another symbol", order.AppendFixRefused(nil, uint16(wire.CodeUnknownInstrument), 55, 0, "no", request),
			"r|11=m1|37=NONE|54=2|55=IBM|58=no|60=20261123-12:03:00.000|530=1|531=0|532=1|"},
		{"another side", order.AppendFixRefused(nil, uint16(wire.CodeBadFIX), 54, 0, "no", request),
			"r|11=m1|37=NONE|54=2|55=IBM|58=no|60=20261123-12:03:00.000|530=1|531=0|532=99|"},
	} {
		if got := text(x.refusal(fix.FIX44, there, c.body)); got != c.want {
			t.Errorf("%s:\n got %s\nwant %s", c.name, got, c.want)
		}
		if got, want := text(x.refusal(fix.FIXT11, there, c.body)), c.want+"1369=p1/17.1|"; got != want {
			t.Errorf("%s, FIX 5.0 SP2:\n got %s\nwant %s", c.name, got, want)
		}
	}
}
