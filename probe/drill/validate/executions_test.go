package validate

import (
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/ordergrid/ordergrid/grid-node/machine"
	"github.com/ordergrid/ordergrid/grid-node/match"
	"github.com/ordergrid/ordergrid/grid-node/match/replay"
	"github.com/ordergrid/ordergrid/grid-node/order"
	"github.com/ordergrid/ordergrid/grid-node/wire"
	"github.com/ordergrid/ordergrid/probe/drill/history"
)

// TestSumsOfRecordsOutOfPlace: a trade that a copy has twice under the same numbers does not add up,
// wherever in its entry it is.
func TestSumsOfRecordsOutOfPlace(t *testing.T) {
	const size = history.ExecutionSize
	var records []byte
	for n, r := range []match.Record{
		{Kind: match.Accepted, Order: 1, Owner: 1, Side: match.Sell, Price: 100, Qty: 3, Leaves: 3},
		{Kind: match.Accepted, Order: 2, Owner: 2, Side: match.Buy, Price: 100, Qty: 3, Leaves: 3},
		{Kind: match.Filled, Order: 2, Other: 1, Owner: 2, Side: match.Buy, Price: 100, Qty: 3, Cum: 3},
		{Kind: match.Filled, Order: 1, Other: 2, Owner: 1, Side: match.Sell, Price: 100, Qty: 3, Cum: 3, Flags: match.Passive},
	} {
		records = history.AppendExecution(records, 7, uint32(n)+1, &r)
	}
	wrong := func(records []byte) (n int) {
		c := copied{rest: records, fills: replay.NewFills()}
		did := c.did(7)
		for i := range did {
			c.fills.Add(name(0, 7, i+1), &did[i])
		}
		n, _ = c.fills.Finish(nil)
		return n
	}
	if n := wrong(records); n != 0 {
		t.Fatalf("%d sums of a trade are wrong", n)
	}
	twice := slices.Insert(slices.Clone(records), 2*size, records[2*size:]...)
	if n := wrong(twice); n == 0 {
		t.Error("a trade that is there twice, the last of its entry, adds up")
	}
}

// traded is a partition of a grid that matches, with two copies: three orders rest, and the last entry
// is one that trades with two of them.
func traded(t *testing.T) *history.History {
	t.Helper()
	var m machine.Machine
	m.Begin(64, 0)
	m.Match()
	h := &history.History{Partitions: []wire.PartitionID{0}, Books: []history.Books{{}}, Executions: []history.Copied{{Where: "a", InSync: true}, {Where: "b", InSync: true}}}
	seq := uint64(0)
	add := func(e order.Entry, payload []byte) {
		seq++
		e.Seq, e.Epoch, e.TimeNs, e.Size = seq, 1, int64(seq), uint32(order.HeaderSize+len(payload))
		b := append(make([]byte, order.HeaderSize), payload...)
		e.Put(b)
		if err := m.Check(&e, payload); err != nil {
			t.Fatal(err)
		}
		m.Apply(&e, payload)
		h.Books[0].Entries = append(h.Books[0].Entries, b)
		for i := range h.Executions {
			x := &h.Executions[i]
			x.Through = seq
			for n, r := range m.Books.Records() {
				x.Records = history.AppendExecution(x.Records, seq, uint32(n)+1, &r)
			}
		}
	}
	le := binary.LittleEndian
	add(order.Entry{Kind: order.KindNoop}, le.AppendUint64(le.AppendUint64(nil, 1), 7))
	c := order.Market{Op: order.MarketConfig, Values: [5]uint64{1000, 1000, 4, 50, 99}}
	add(order.Entry{Kind: order.KindMarket}, c.Append(nil))
	in := machine.Instrument{Instrument: match.Instrument{Tick: 5, Lot: 10, High: 100_000, Ref: 500}, Symbol: "IBM", PriceDigits: 2, State: match.Open}
	define := in.Market(0)
	add(order.Entry{Kind: order.KindMarket}, define.Append(nil))
	add(order.Entry{Kind: order.KindSessionOpen, ClientSeq: 1}, le.AppendUint64(le.AppendUint64(nil, 1), 1))
	for n, fields := range []string{"54=2 38=10", "54=2 38=20", "54=2 38=10", "54=1 38=30"} {
		body := fmt.Sprintf("35=D 11=o%d 55=IBM %s 40=2 44=5.00 49=P 56=G 34=1 52=20071115-14:30:00.123 60=20071115-14:30:00.123 ", n, fields)
		body = strings.ReplaceAll(body, " ", "\x01")
		msg := fmt.Appendf(nil, "8=FIX.4.4\x019=%d\x01%s10=000\x01", len(body), body)
		order.Seal(msg)
		var o order.Order
		if err := order.Parse(msg, &o); err != nil {
			t.Fatal(err)
		}
		terms := o.Terms(msg)
		i, err := m.Books.Resolve(msg, &o, &terms, m.Books.OwnerOf(0))
		if err != nil {
			t.Fatal(err)
		}
		add(order.Entry{Kind: order.KindExecute, ClientSeq: uint64(n) + 2, Fields: o.Fields.Instructed()}, append(i.Append(nil), msg...))
	}
	return h
}

// TestSumsOfACopyBehind: a copy in sync whose committed prefix ends before the log that was read is
// summed up as of that entry, and what it does not say there is found.
func TestSumsOfACopyBehind(t *testing.T) {
	a := TakeExecutions(traded(t), 1)
	if a.Unsummed+a.Different+int64(len(a.Unread)) != 0 || a.Trades != 2 || a.Resting != 1 || !a.Control.OK() {
		t.Fatalf("%+v", a)
	}
	behind := func() *history.History {
		h := traded(t)
		for i := range h.Executions {
			x := &h.Executions[i]
			x.Through--
			for n := len(x.Records) - history.ExecutionSize; ; n -= history.ExecutionSize {
				if entry, _, _ := history.ExecutionOf(x.Records[n:]); entry <= x.Through {
					break
				}
				x.Records = x.Records[:n]
			}
		}
		return h
	}
	if a := TakeExecutions(behind(), 1); a.Unsummed+a.Different != 0 || a.Resting != 1 || a.Control.Done != 0 {
		t.Errorf("copies behind the log: %+v", a)
	}
	h := behind()
	b := &h.Executions[1]
	b.Records = b.Records[:len(b.Records)-history.ExecutionSize]
	if a := TakeExecutions(h, 1); a.Unsummed == 0 || a.Different != 1 {
		t.Errorf("a copy behind the log that lacks an order: %+v", a)
	}
}
