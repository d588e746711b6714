package replay_test

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/ordergrid/ordergrid/grid-node/machine"
	"github.com/ordergrid/ordergrid/grid-node/match"
	"github.com/ordergrid/ordergrid/grid-node/match/replay"
	"github.com/ordergrid/ordergrid/grid-node/order"
)

// logged is an entry and what the machine of a grid did with it.
type logged struct {
	e       order.Entry
	payload []byte
	did     []match.Record
}

type grid struct {
	t   *testing.T
	m   machine.Machine
	log []logged
}

func (g *grid) add(e order.Entry, payload []byte) {
	g.t.Helper()
	e.Seq, e.Epoch, e.TimeNs, e.Size = uint64(len(g.log))+1, 1, int64(len(g.log)), uint32(order.HeaderSize+len(payload))
	b := append(make([]byte, order.HeaderSize), payload...)
	e.Put(b)
	if _, err := order.DecodeEntry(b, &e); err != nil {
		g.t.Fatal(err)
	}
	if err := g.m.Check(&e, payload); err != nil {
		g.t.Fatal(err)
	}
	g.m.Apply(&e, payload)
	g.log = append(g.log, logged{e, payload, slices.Clone(g.m.Books.Records())})
}

func (g *grid) send(slot uint32, n int, fields string) {
	g.t.Helper()
	body := strings.ReplaceAll(fields, " ", "\x01") + "\x0149=P\x0156=G\x0134=1\x0152=20071115-14:30:00.123\x0160=20071115-14:30:00.123\x01"
	msg := fmt.Appendf(nil, "8=FIX.4.4\x019=%d\x01%s10=000\x01", len(body), body)
	order.Seal(msg)
	var o order.Order
	if err := order.Parse(msg, &o); err != nil {
		g.t.Fatal(err)
	}
	terms := o.Terms(msg)
	i, err := g.m.Books.Resolve(msg, &o, &terms, g.m.Books.OwnerOf(slot))
	if err != nil {
		g.t.Fatal(err)
	}
	g.add(order.Entry{Kind: order.KindExecute, Session: slot, ClientSeq: uint64(n) + 1, Fields: o.Fields.Instructed()}, append(i.Append(nil), msg...))
}

// traded is a log of three sessions that trade, cancel and replace, with a call and its auction.
func traded(t *testing.T, seed uint64) *grid {
	g := &grid{t: t}
	g.m.Begin(1024, 0)
	g.m.Match()
	le := binary.LittleEndian
	g.add(order.Entry{Kind: order.KindNoop}, le.AppendUint64(le.AppendUint64(nil, 1), 7))
	c := order.Market{Op: order.MarketConfig, Values: [5]uint64{1000, 1000, 4, 50, 99}}
	g.add(order.Entry{Kind: order.KindMarket}, c.Append(nil))
	in := machine.Instrument{Instrument: match.Instrument{Tick: 5, Lot: 10, High: 100_000, Ref: 500}, Symbol: "IBM", PriceDigits: 2, State: match.Open}
	m := in.Market(0)
	g.add(order.Entry{Kind: order.KindMarket}, m.Append(nil))
	for slot := range uint32(3) {
		g.add(order.Entry{Kind: order.KindSessionOpen, Session: slot, ClientSeq: 1}, le.AppendUint64(le.AppendUint64(nil, uint64(slot)+1), 1))
	}
	r := rand.New(rand.NewPCG(seed, 1))
	apply := func(kind match.OpKind, state match.State) {
		m := order.Market{Op: order.MarketApply, Kind: uint8(kind), State: uint8(state)}
		g.add(order.Entry{Kind: order.KindMarket}, m.Append(nil))
	}
	for n := range 400 {
		slot := uint32(r.IntN(3))
		price := []string{"5.00", "5.05", "5.10", "4.95"}[r.IntN(4)]
		switch k := r.IntN(20); {
		case n == 200:
			apply(match.SetState, match.Call)
		case n == 300:
			apply(match.Uncross, match.Open)
		case k < 15:
			g.send(slot, n, fmt.Sprintf("35=D 11=o%d 55=IBM 54=%d 38=%d 40=2 44=%s", n, 1+r.IntN(2), 10*(1+r.IntN(30)), price))
		case k < 17:
			g.send(slot, n, fmt.Sprintf("35=F 11=o%d 41=o%d 55=IBM 54=1 38=1", n, r.IntN(n+1)))
		default:
			g.send(slot, n, fmt.Sprintf("35=G 11=o%d 41=o%d 55=IBM 54=1 38=%d 40=2 44=%s", n, r.IntN(n+1), 10*(1+r.IntN(30)), price))
		}
	}
	for g.m.Books.Pending() {
		g.add(order.Entry{Kind: order.KindContinue}, nil)
	}
	return g
}

// judged is what replay and account say of a log.
func judged(t *testing.T, log []logged) (different, wrong int, words []string) {
	l, f := replay.NewLog(), replay.NewFills()
	for i := range log {
		x := &log[i]
		want, err := l.Entry(&x.e, x.payload)
		if err != nil {
			t.Fatal(err)
		}
		if n, text := replay.Difference(x.did, want); n > 0 {
			different++
			words = append(words, fmt.Sprintf("entry %d, record %d %s", x.e.Seq, n, text))
		}
		for n := range x.did {
			f.Add(fmt.Sprintf("%d.%d", x.e.Seq, n+1), &x.did[n])
		}
	}
	wrong, more := f.Finish(l.Resting())
	return different, wrong, append(words, more...)
}

// TestReplay: what a grid did is what its log says, and it adds up.
func TestReplay(t *testing.T) {
	trades := 0
	for seed := range uint64(20) {
		g := traded(t, seed)
		if different, wrong, words := judged(t, g.log); different+wrong > 0 {
			t.Fatalf("seed %d: %v", seed, words)
		}
		for _, x := range g.log {
			for _, r := range x.did {
				trades += int(r.Flags&match.Auction)/2 + map[match.Kind]int{match.Filled: 1}[r.Kind]
			}
		}
	}
	if trades < 1000 {
		t.Errorf("%d trades in all, want 1000 at least", trades)
	}
}

// TestReplaySees: a fill that is lost, that is there twice, that is another order's than the first
// in price and time, and one of another owner.
func TestReplaySees(t *testing.T) {
	for name, m := range map[string]struct {
		adds bool // the account finds it too, which knows no order of price and time
		do   func(x *logged, at int)
	}{
		"a trade is lost":                 {true, func(x *logged, at int) { x.did = slices.Delete(x.did, at, at+2) }},
		"one side of a trade is lost":     {true, func(x *logged, at int) { x.did = slices.Delete(x.did, at+1, at+2) }},
		"a trade is there twice":          {true, func(x *logged, at int) { x.did = slices.Insert(x.did, at, x.did[at], x.did[at+1]) }},
		"a trade is of the second in row": {false, func(x *logged, at int) { swapMakers(x, at) }},
		"a trade is of another owner":     {true, func(x *logged, at int) { x.did[at].Owner++ }},
		"a side of a trade is larger":     {true, func(x *logged, at int) { x.did[at].Qty += 10 }},
		"a trade is at another price":     {false, func(x *logged, at int) { x.did[at].Price += 5; x.did[at+1].Price += 5 }},
	} {
		g := traded(t, 3)
		i, at := sweep(t, g.log)
		m.do(&g.log[i], at)
		different, wrong, words := judged(t, g.log)
		if different == 0 || m.adds && wrong == 0 {
			t.Errorf("%s: %d entries differ, %d accounts are wrong: %v", name, different, wrong, words)
		}
		t.Logf("%s: %s", name, words[0])
	}
}

// sweep finds an entry that trades with two orders.
func sweep(t *testing.T, log []logged) (entry, at int) {
	for i, x := range log {
		for n := range x.did {
			if n+3 < len(x.did) && x.did[n].Kind == match.Filled && x.did[n+2].Kind == match.Filled && x.did[n].Flags == 0 && x.did[n+2].Flags == 0 {
				return i, n
			}
		}
	}
	t.Fatal("no order trades with two")
	return 0, 0
}

// swapMakers has the second in the queue trade before the first.
func swapMakers(x *logged, at int) {
	x.did[at], x.did[at+1], x.did[at+2], x.did[at+3] = x.did[at+2], x.did[at+3], x.did[at], x.did[at+1]
}

// TestReplaySaysWhatIsWrongWithAnEntry: an instruction that is not what the message says.
func TestReplaySaysWhatIsWrongWithAnEntry(t *testing.T) {
	for name, change := range map[string]func(*order.Instruction){
		"price": func(i *order.Instruction) { i.Price += 5 },
		"side":  func(i *order.Instruction) { i.Side = 3 - i.Side },
		"owner": func(i *order.Instruction) { i.Owner++ },
		"order": func(i *order.Instruction) { i.Orig++ },
	} {
		g := traded(t, 5)
		l := replay.NewLog()
		said := ""
		for k := range g.log {
			x := &g.log[k]
			if x.e.Kind == order.KindExecute && k > 100 {
				i := order.Instructed(x.payload)
				if i.Op != order.InstructReplace || i.Orig == 0 {
					continue
				}
				change(&i)
				x.payload = append(i.Append(nil), x.payload[order.InstructionSize:]...)
			}
			if _, err := l.Entry(&x.e, x.payload); err != nil {
				said = err.Error()
				break
			}
		}
		if t.Logf("%s: %s", name, said); said == "" {
			t.Errorf("%s: nothing is said", name)
		}
	}
	g := traded(t, 5)
	if _, err := replay.NewLog().Entry(&g.log[20].e, g.log[20].payload); err != replay.ErrBeginning {
		t.Errorf("a log without its beginning: %v, want ErrBeginning", err)
	}
}
