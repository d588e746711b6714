package machine

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/ordergrid/ordergrid/grid-node/match"
	"github.com/ordergrid/ordergrid/grid-node/match/replay"
	"github.com/ordergrid/ordergrid/grid-node/order"
)

// exchange is a machine that matches, and the log that made it.
type exchange struct {
	t   testing.TB
	m   Machine
	log []logged
	at  map[uint32]uint64 // last clientSeq by session slot

	again *replay.Log // executes each entry too
}

type logged struct {
	e       order.Entry
	payload []byte
}

var someInstruments = []Instrument{
	{Instrument: match.Instrument{Tick: 5, Lot: 10, Low: 0, High: 100_000, Ref: 500}, Symbol: "IBM", PriceDigits: 2, State: match.Open},
	{Instrument: match.Instrument{Tick: 1, Lot: 1, Low: -1000, High: 1000}, Symbol: "OIL", PriceDigits: 0, QtyDigits: 3, State: match.Open},
}

func newExchange(t testing.TB) *exchange {
	x := &exchange{t: t, at: map[uint32]uint64{}, again: replay.NewLog()}
	x.m.Begin(16, 0)
	x.m.Match()
	x.add(order.KindNoop, 0, le.AppendUint64(le.AppendUint64(nil, 1), 7))
	c := order.Market{Op: order.MarketConfig, Values: [5]uint64{200, 200, 4, 3, 99}}
	x.add(order.KindMarket, 0, c.Append(nil))
	for n := range someInstruments {
		i := someInstruments[n].Market(uint16(n))
		x.add(order.KindMarket, 0, i.Append(nil))
	}
	for slot := range uint32(3) {
		x.open(slot)
	}
	return x
}

func (x *exchange) open(slot uint32) {
	x.at[slot] = 0
	generation := uint64(1)
	if int(slot) < x.m.Sessions.Slots() {
		generation = uint64(x.m.Sessions.At(slot).Generation) + 1
	}
	x.addOf(order.Entry{Kind: order.KindSessionOpen, Session: slot, ClientSeq: generation}, le.AppendUint64(le.AppendUint64(nil, uint64(slot)+1), generation))
}

func (x *exchange) add(kind order.Kind, slot uint32, payload []byte) []match.Record {
	return x.addOf(order.Entry{Kind: kind, Session: slot}, payload)
}

// addOf applies an entry as a primary makes it, through its bytes.
func (x *exchange) addOf(e order.Entry, payload []byte) []match.Record {
	x.t.Helper()
	e.Seq, e.Epoch, e.TimeNs, e.Size = uint64(len(x.log))+1, 1, int64(len(x.log))*1000, uint32(order.HeaderSize+len(payload))
	b := append(make([]byte, order.HeaderSize), payload...)
	e.Put(b)
	if _, err := order.DecodeEntry(b, &e); err != nil {
		x.t.Fatal(err)
	}
	if err := x.m.Check(&e, payload); err != nil {
		x.t.Fatal(err)
	}
	x.m.Apply(&e, payload)
	x.log = append(x.log, logged{e, payload})
	want, err := x.again.Entry(&e, payload)
	if n, text := replay.Difference(x.m.Books.Records(), want); n > 0 || err != nil {
		x.t.Errorf("entry %d executed again: record %d %s, %v", e.Seq, n, text, err)
	}
	return x.m.Books.Records()
}

func termsOf(msg []byte, o *order.Order) *order.Terms {
	t := o.Terms(msg)
	return &t
}

// send is an order message of a session.
func (x *exchange) send(slot uint32, fields string) []match.Record {
	x.t.Helper()
	msg := fixMessage(fields)
	var o order.Order
	if err := order.Parse(msg, &o); err != nil {
		x.t.Fatal(err)
	}
	i, err := x.m.Books.Resolve(msg, &o, termsOf(msg, &o), x.m.Books.OwnerOf(slot))
	if err != nil {
		x.t.Fatal(err)
	}
	x.at[slot]++
	return x.addOf(order.Entry{Kind: order.KindExecute, Session: slot, ClientSeq: x.at[slot], Fields: o.Fields.Instructed()}, append(i.Append(nil), msg...))
}

// fixMessage makes a message of "35=D 11=a 55=IBM ...".
func fixMessage(fields string) []byte {
	body := strings.ReplaceAll(strings.TrimSpace(fields), " ", "\x01") + "\x0149=P\x0156=G\x0134=1\x0152=20071115-14:30:00.123\x0160=20071115-14:30:00.123\x01"
	b := fmt.Appendf(nil, "8=FIX.4.4\x019=%d\x01%s10=000\x01", len(body), body)
	order.Seal(b)
	return b
}

func text(records []match.Record) string {
	var b strings.Builder
	for i := range records {
		r := &records[i]
		fmt.Fprintf(&b, "%d:%d/%d p%d q%d l%d c%d r%d; ", r.Kind, r.Order, r.Other, r.Price, r.Qty, r.Leaves, r.Cum, r.Reason)
	}
	return b.String()
}

func TestExecute(t *testing.T) {
	x := newExchange(t)
	for _, c := range []struct {
		slot         uint32
		fields, want string
	}{
		{0, "35=D 11=a 55=IBM 54=1 38=100 40=2 44=5.00", "1:8/0 p500 q100 l100 c0 r0; "},
		{1, "35=D 11=b 55=IBM 54=2 38=40 40=2 44=4.95", "1:9/0 p495 q40 l40 c0 r0; 3:9/8 p500 q40 l0 c40 r0; 3:8/9 p500 q40 l60 c40 r0; "},
		{1, "35=F 11=c 41=a 55=IBM 54=1 38=100", "5:0/10 p0 q0 l0 c0 r5; "}, // another's
		{0, "35=F 11=d 41=a 55=IBM 54=1 38=100", "4:8/0 p0 q0 l60 c40 r1; "},
		{0, "35=F 11=e 41=a 55=IBM 54=1 38=100", "5:0/12 p0 q0 l0 c0 r5; "},
		{0, "35=D 11=f 55=IBM 54=1 38=100 40=2 44=5.01", "2:13/0 p501 q100 l0 c0 r11; "}, // off tick
		{2, "35=D 11=g 55=OIL 54=2 38=1.5 40=2 44=-37", "1:14/0 p-37 q1500 l1500 c0 r0; "},
		{0, "35=D 11=h 55=OIL 54=1 38=2 40=1 59=3", "1:15/0 p0 q2000 l2000 c0 r0; 3:15/14 p-37 q1500 l500 c1500 r0; 3:14/15 p-37 q1500 l0 c1500 r0; 4:15/0 p0 q0 l500 c1500 r18; "},
	} {
		if got := text(x.send(c.slot, c.fields)); got != c.want {
			t.Errorf("%s\n got %s\nwant %s", c.fields, got, c.want)
		}
	}
	if got := x.m.Books.Position().ExecSeq; got != 15 {
		t.Errorf("position is %d, want 15", got)
	}
	if n := x.m.Books.Resting(); n != 0 {
		t.Errorf("%d orders rest, want none", n)
	}
}

func TestReplaceMovesClOrdID(t *testing.T) {
	x := newExchange(t)
	x.send(0, "35=D 11=a 55=IBM 54=1 38=100 40=2 44=5.00")
	x.send(0, "35=G 11=b 41=a 55=IBM 54=1 38=200 40=2 44=5.05")
	if _, found := x.m.Books.Find([]byte("a"), 0); found {
		t.Error("the order is found by the ClOrdID of before its replacement")
	}
	if id, found := x.m.Books.Find([]byte("b"), 0); !found || id != 9 {
		t.Errorf("the order under its new ClOrdID is %d, %t, want 9", id, found)
	}
	if got := text(x.send(0, "35=G 11=c 41=a 55=IBM 54=1 38=300 40=2 44=5.05")); got != "5:0/10 p0 q0 l0 c0 r5; " {
		t.Errorf("a replacement by the old ClOrdID: %s", got)
	}
	if got := text(x.send(0, "35=F 11=d 41=b 55=IBM 54=1 38=1")); got != "4:9/0 p0 q0 l200 c0 r1; " {
		t.Errorf("a cancel by the new ClOrdID: %s", got)
	}
}

func TestOwnerEndsWithSession(t *testing.T) {
	x := newExchange(t)
	x.send(0, "35=D 11=a 55=IBM 54=1 38=100 40=2 44=5.00")
	owner := x.m.Books.OwnerOf(0)
	x.open(0)
	if _, open := x.m.Books.SlotOf(owner); open || x.m.Books.OwnerOf(0) == owner {
		t.Error("the session that has the slot now has the owner of the one before")
	}
	if got := text(x.send(0, "35=F 11=b 41=a 55=IBM 54=1 38=100")); got != "5:0/10 p0 q0 l0 c0 r5; " {
		t.Errorf("a cancel of another session's order: %s", got)
	}
}

func TestLineageHaltsBooks(t *testing.T) {
	x := newExchange(t)
	got := x.add(order.KindNoop, 0, le.AppendUint64(le.AppendUint64(nil, 2), 7))
	if len(got) != 2 || got[0].Kind != match.StateChanged || match.State(got[0].Flags) != match.Halted {
		t.Errorf("the entry that begins a lineage: %s, want both books halted", text(got))
	}
	if got := text(x.send(0, "35=D 11=a 55=IBM 54=1 38=100 40=2 44=5.00")); got != "2:9/0 p500 q100 l0 c0 r13; " {
		t.Errorf("an order for a halted book: %s", got)
	}
	open := order.Market{Op: order.MarketApply, Kind: uint8(match.SetState), State: uint8(match.Open)}
	x.add(order.KindMarket, 0, open.Append(nil))
	if got := x.send(0, "35=D 11=b 55=IBM 54=1 38=100 40=2 44=5.00"); got[0].Kind != match.Accepted {
		t.Errorf("an order for a book that was opened: %s", text(got))
	}
}

// random does something that a primary may do.
func (x *exchange) random(r *rand.Rand, n int) {
	slot := uint32(r.IntN(3))
	symbol := someInstruments[r.IntN(2)].Symbol
	price := []string{"5.00", "5.05", "5.10", "4.95"}[r.IntN(4)]
	if symbol == "OIL" {
		price = fmt.Sprint(r.IntN(5) - 2)
	}
	switch k := r.IntN(40); {
	case k < 24:
		extra := []string{"", "", "", " 59=3", " 18=6", " 111=10"}[r.IntN(6)]
		x.send(slot, fmt.Sprintf("35=D 11=o%d 55=%s 54=%d 38=%d 40=2 44=%s%s", n, symbol, 1+r.IntN(2), 10*(1+r.IntN(30)), price, extra))
	case k < 31:
		x.send(slot, fmt.Sprintf("35=F 11=o%d 41=o%d 55=%s 54=1 38=1", n, r.IntN(n+1), symbol))
	case k < 37:
		x.send(slot, fmt.Sprintf("35=G 11=o%d 41=o%d 55=%s 54=1 38=%d 40=2 44=%s", n, r.IntN(n+1), symbol, 10*(1+r.IntN(30)), price))
	case k < 38:
		m := order.Market{Op: order.MarketApply, Kind: uint8(match.MassCancel), Book: uint16(r.IntN(2)), Values: [5]uint64{3: uint64(x.m.Books.OwnerOf(slot))}}
		x.add(order.KindMarket, 0, m.Append(nil))
	case k < 39:
		x.open(slot)
	}
	if x.m.Books.Pending() && r.IntN(2) == 0 {
		x.add(order.KindContinue, 0, nil)
	}
}

// restored sends the state through a snapshot, and returns both copies that a learner has.
func (x *exchange) restored() (base, live Machine) {
	base.Begin(16, uint64(len(x.log)))
	base.Match()
	slots := uint32(x.m.SnapshotSlots())
	for from := uint32(0); from < slots; {
		part, next := x.m.AppendSnapshot(nil, from)
		if err := base.Restore(part, uint64(len(x.log)), from, next); err != nil {
			x.t.Fatal(err)
		}
		from = next
	}
	if err := base.Restored(); err != nil {
		x.t.Fatal(err)
	}
	return base, base.Clone()
}

func TestBooksSnapshot(t *testing.T) {
	pending := 0
	for seed := range uint64(12) {
		x, r := newExchange(t), rand.New(rand.NewPCG(seed, 1))
		copies, done := []*Machine{}, 0
		for n := range 400 {
			x.random(r, n)
			if x.m.Digest() != x.m.Recount() {
				t.Fatalf("seed %d, step %d: the digest is not of the state", seed, n)
			}
			if n%97 == 50 {
				if x.m.Books.Pending() {
					pending++
				}
				base, live := x.restored()
				again := base.Clone() // without the second one of the restore
				copies, done = []*Machine{&base, &live, &again}, len(x.log)
			}
			for _, c := range copies {
				for i := done; i < len(x.log); i++ {
					l := &x.log[i]
					if err := c.Check(&l.e, l.payload); err != nil {
						t.Fatalf("seed %d, step %d: %v", seed, n, err)
					}
					c.Apply(&l.e, l.payload)
				}
				if c.Digest() != x.m.Digest() || c.Books.Position() != x.m.Books.Position() {
					t.Fatalf("seed %d, step %d: a restored copy has state %x at %v, want %x at %v", seed, n, c.Digest(), c.Books.Position(), x.m.Digest(), x.m.Books.Position())
				}
				if !slices.Equal(c.Books.Records(), x.m.Books.Records()) && len(x.log) > done {
					t.Fatalf("seed %d, step %d: a restored copy did %s, want %s", seed, n, text(c.Books.Records()), text(x.m.Books.Records()))
				}
			}
			done = len(x.log)
		}
	}
	if pending == 0 {
		t.Error("no snapshot had a mass cancel that is pending")
	}
}

func TestBooksSnapshotDamaged(t *testing.T) {
	x, r := newExchange(t), rand.New(rand.NewPCG(3, 1))
	for n := range 120 {
		x.random(r, n)
	}
	var parts [][]byte
	var nexts []uint32
	slots := uint32(x.m.SnapshotSlots())
	for from := uint32(0); from < slots; {
		part, next := x.m.AppendSnapshot(nil, from)
		parts, nexts, from = append(parts, bytes.Clone(part)), append(nexts, next), next
	}
	took := 0
	for range 400 {
		k := r.IntN(len(parts))
		at, bit := r.IntN(len(parts[k])), byte(1)<<r.IntN(8)
		parts[k][at] ^= bit
		var m Machine
		m.Begin(16, uint64(len(x.log)))
		m.Match()
		var err *SnapshotError
		from := uint32(0)
		for i := range parts {
			if err = m.Restore(parts[i], uint64(len(x.log)), from, nexts[i]); err != nil {
				break
			}
			from = nexts[i]
		}
		if err == nil {
			err = m.Restored()
		}
		if err == nil && m.Digest() == x.m.Digest() {
			took++ // a bit without meaning, as in the padding of a ClOrdID
		}
		parts[k][at] ^= bit
	}
	if took > 200 {
		t.Errorf("%d of 400 changed bits changed nothing", took)
	}
}

func TestBooksRefuse(t *testing.T) {
	var stores Machine
	stores.Begin(16, 0)
	stores.Sessions.open(0, 1, [2]uint64{1, 1}, 1)
	instruction := order.Instruction{Op: order.InstructEnter, Owner: 1}
	enter := append(instruction.Append(nil), fixMessage("35=D 11=a 55=IBM 54=1 38=100 40=2 44=5.00")...)
	again := order.Market{Op: order.MarketConfig, Values: [5]uint64{200, 200, 4, 12, 99}}
	twice := someInstruments[0].Market(2)
	odd := order.Market{Op: order.MarketApply, Kind: uint8(match.Enter)}
	x := newExchange(t)
	for name, c := range map[string]struct {
		m       *Machine
		e       order.Entry
		payload []byte
		want    string
	}{
		"execute where orders are stored": {&stores, order.Entry{Kind: order.KindExecute, ClientSeq: 1}, enter, "kind is execute"},
		"market where orders are stored":  {&stores, order.Entry{Kind: order.KindMarket}, again.Append(nil), "kind is market"},
		"order where orders are matched":  {&x.m, order.Entry{Kind: order.KindOrder, ClientSeq: 1}, enter, "kind is 2, allowed: 8"},
		"another's owner":                 {&x.m, order.Entry{Kind: order.KindExecute, Session: 1, ClientSeq: 1}, enter, "owner is 1, allowed: 2"},
		"continue without need":           {&x.m, order.Entry{Kind: order.KindContinue}, nil, "while something is pending"},
		"second config":                   {&x.m, order.Entry{Kind: order.KindMarket}, again.Append(nil), "1 first, and once"},
		"symbol twice":                    {&x.m, order.Entry{Kind: order.KindMarket}, twice.Append(nil), `instrument "IBM" is book 2`},
		"a client's operation":            {&x.m, order.Entry{Kind: order.KindMarket}, odd.Append(nil), "market operation is 1"},
	} {
		c.e.Seq = 1000
		if err := c.m.Check(&c.e, c.payload); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}

func TestResolveRefuses(t *testing.T) {
	x := newExchange(t)
	for fields, want := range map[string]string{
		"35=D 11=a 55=XYZ 54=1 38=100 40=2 44=5.00":        "tag 55",
		"35=D 11=a 55=IBM 54=5 38=100 40=2 44=5.00":        "tag 54",
		"35=D 11=a 55=IBM 54=1 38=100 40=6":                "tag 40",
		"35=D 11=a 55=IBM 54=1 38=100 40=2 44=5.00 59=2":   "tag 59",
		"35=D 11=a 55=IBM 54=1 38=100 40=2 44=5.001":       "tag 44",
		"35=D 11=a 55=IBM 54=1 38=0.5 40=2 44=5.00":        "tag 38",
		"35=D 11=a 55=IBM 54=1 152=100 40=2 44=5.00":       "tag 38",
		"35=D 11=a 55=IBM 54=1 38=1 40=2 44=5.00 2964=4":   "tag 2964",
		"35=D 11=a 55=IBM 54=1 38=1 40=2 44=5.00 2362=abc": "tag 2362",
	} {
		msg := fixMessage(fields)
		var o order.Order
		if err := order.Parse(msg, &o); err != nil {
			t.Fatalf("%s: %v", fields, err)
		}
		if _, err := x.m.Books.Resolve(msg, &o, termsOf(msg, &o), 0); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: %v, want %q", fields, err, want)
		}
	}
}

func TestExecuteAllocsNothing(t *testing.T) {
	x := newExchange(t)
	n := 0
	msg := fixMessage("35=D 11=aaaaaa 55=IBM 54=1 38=100 40=2 44=5.00")
	var o order.Order
	if err := order.Parse(msg, &o); err != nil {
		t.Fatal(err)
	}
	terms := o.Terms(msg)
	payload := make([]byte, 0, 1024)
	seq := uint64(1000)
	do := func() {
		n++
		copy(msg[o.ClOrdIDOff:], fmt.Append(payload[:0], 100000+n))
		i, err := x.m.Books.Resolve(msg, &o, &terms, 0)
		if err != nil {
			t.Fatal(err)
		}
		if i.Side = uint8(match.Buy); n%2 == 0 {
			i.Side = uint8(match.Sell)
		}
		seq++
		e := order.Entry{Kind: order.KindExecute, Seq: seq, Epoch: 1, Session: 0, ClientSeq: seq, Fields: o.Fields.Instructed()}
		payload = append(i.Append(payload[:0]), msg...)
		x.m.Apply(&e, payload)
	}
	do()
	if got := testing.AllocsPerRun(500, do); got > 1 { // the number of a ClOrdID
		t.Errorf("an order makes %.0f allocations, want none beside the one of this test", got)
	}
}
