package machine

import (
	"fmt"
	"syscall"
	"testing"

	"github.com/ordergrid/ordergrid/grid-node/match"
	"github.com/ordergrid/ordergrid/grid-node/order"
)

// BenchmarkApplyMatched applies orders of both sides around one price, half of which rest until the other half trades with
// them: in a machine with room for as many orders that rest as a node has, and for 4 million, whose tables are larger than
// caches. user-ns/op is the CPU time, without the kernel's: on a busy machine ns/op is mostly others'.
func BenchmarkApplyMatched(b *testing.B) {
	for _, orders := range []uint64{1 << 16, 4 << 20} {
		b.Run(fmt.Sprintf("orders=%d", orders), func(b *testing.B) { applyMatched(b, orders) })
	}
}

func applyMatched(b *testing.B, orders uint64) {
	var m Machine
	m.Begin(16, 0)
	m.Match()
	seq := uint64(0)
	apply := func(e order.Entry, payload []byte) {
		seq++
		e.Seq, e.TimeNs, e.Size = seq, int64(seq)*1000, uint32(order.HeaderSize+len(payload))
		m.Apply(&e, payload)
	}
	config := order.Market{Op: order.MarketConfig, Values: [5]uint64{orders, orders / 64, 4, 64, 99}}
	apply(order.Entry{Kind: order.KindNoop}, le.AppendUint64(le.AppendUint64(nil, 1), 7))
	apply(order.Entry{Kind: order.KindMarket}, config.Append(nil))
	in := Instrument{Instrument: match.Instrument{Tick: 1, Lot: 1, High: 100}, Symbol: "IBM", State: match.Open}
	define := in.Market(0)
	apply(order.Entry{Kind: order.KindMarket}, define.Append(nil))
	apply(order.Entry{Kind: order.KindSessionOpen, ClientSeq: 1}, le.AppendUint64(le.AppendUint64(nil, 1), 1))
	i := order.Instruction{Op: order.InstructEnter, Type: 1, Qty: 1, Owner: m.Books.OwnerOf(0)}
	message := []byte("8=FIX.4.4\x0111=ORDER000000000\x01")
	e := order.Entry{Kind: order.KindExecute, Fields: order.Fields{ClOrdIDOff: order.InstructionSize + 13, ClOrdIDLen: 14}}
	payload := append(i.Append(nil), message...)
	number := func(id []byte, v uint64) {
		for at := len(id) - 1; at >= len("ORDER"); at, v = at-1, v/10 {
			id[at] = byte('0' + v%10)
		}
	}
	id, next := payload[e.Fields.ClOrdIDOff:][:e.Fields.ClOrdIDLen], []byte("ORDER000000000")
	user := func() int64 {
		var u syscall.Rusage
		if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
			b.Fatal(err)
		}
		return u.Utime.Nano()
	}
	b.ReportAllocs()
	began := user()
	for n := uint64(0); b.Loop(); n++ {
		i.Side, i.Price = uint8(1+n%2), 50+int64(n%2) // eight rest, then eight trade
		if n%16 >= 8 {
			i.Price = 50 + int64(1-n%2)
		}
		i.Append(payload[:0])
		number(id, n)
		number(next, n+1)
		m.Books.Hint(next) // as a replica does with the frame, or the entry, behind
		e.ClientSeq++
		apply(e, payload)
	}
	b.ReportMetric(float64(user()-began)/float64(b.N), "user-ns/op")
}
