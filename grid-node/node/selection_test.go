package node

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"testing"
	"unsafe"

	"github.com/ordergrid/ordergrid/grid-node/feed"
	"github.com/ordergrid/ordergrid/grid-node/match"
	"github.com/ordergrid/ordergrid/grid-node/order"
	"github.com/ordergrid/ordergrid/grid-node/store"
	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// Selectors are found as one would by looking at each of them.
func TestSelectorsAreFound(t *testing.T) {
	rng := rand.New(rand.NewPCG(22, 57))
	value := func(prefix string, n int) []byte {
		if i := rng.IntN(n + 1); i < n {
			return fmt.Appendf(nil, "%s%d", prefix, i)
		}
		return nil
	}
	for round := range 300 {
		m := wire.StreamSelect{ReqID: 1, QuietMs: 1}
		n := 1 + rng.IntN(40)
		for range rng.IntN(60) {
			s := wire.Selector{What: 1 << rng.IntN(9), Account: value("A", n), Symbol: value("S", n)}
			if s.Account == nil && s.Symbol == nil && rng.IntN(2) == 0 {
				s.What |= wire.SelectOther
			}
			m.Selectors = append(m.Selectors, s)
		}
		frame := wire.AppendStreamSelect(nil, 0, &m)
		if err := wire.CheckStreamSelect(frame, &wire.StreamSelect{}); err != nil {
			t.Fatal(err)
		}
		sel := selectionOf(frame)
		for range 200 {
			account, symbol, what := value("A", n+3), value("S", n+3), uint16(1)<<rng.IntN(9)
			want, anyAccount := false, false
			for _, s := range m.Selectors {
				if s.What&what == 0 || s.Symbol != nil && string(s.Symbol) != string(symbol) {
					continue
				}
				anyAccount = true
				want = want || s.Account == nil || string(s.Account) == string(account)
			}
			if got := sel.of(what, account, symbol); got != want {
				t.Fatalf("round %d: %#x of %q and %q is selected: %v, want %v of %+v", round, what, account, symbol, got, want, m.Selectors)
			}
			if kind := match.Kind(1 + rng.IntN(8)); what == 1<<kind && anyAccount && !sel.mayTake(kind, string(symbol)) {
				t.Fatalf("round %d: %#x of %q is not looked at, for any account", round, what, symbol)
			}
		}
	}
}

// TestSelectionsAreMadeOfFewPieces: a Stream of 512 values was two maps with a string for each value, made on the loop.
func TestSelectionsAreMadeOfFewPieces(t *testing.T) {
	m := wire.Stream{ReqID: 1, Window: 1, What: wire.StreamOrders | wire.StreamExecutions}
	for i := range wire.MaxSelected {
		m.Accounts, m.Symbols = append(m.Accounts, fmt.Appendf(nil, "A%063d", i)), append(m.Symbols, fmt.Appendf(nil, "S%063d", i))
	}
	frame := wire.AppendStream(nil, 0, &m)
	var checked wire.Stream
	if n := testing.AllocsPerRun(20, func() {
		if err := wire.CheckStream(frame, &checked); err != nil {
			t.Fatal(err)
		}
	}); n != 0 {
		t.Errorf("it is checked with %v allocations, want none: that is on the loop", n)
	}
	var s selection
	if n := testing.AllocsPerRun(20, func() { s = selectionOf(frame) }); n > 16 {
		t.Errorf("it is made of %v pieces, want 16 at most", n)
	}
	if !s.of(wire.SelectOrders, m.Accounts[3], m.Symbols[255]) || s.of(wire.SelectOrders, m.Symbols[3], m.Symbols[255]) || s.of(wire.SelectOrders, m.Accounts[3], nil) || s.all() || s.what&wire.SelectOther != 0 {
		t.Error("it selects something else")
	}
}

// passer is a follower of a log of orders of a thousand accounts and a hundred symbols, none of which it wants.
func passer(tb testing.TB, entries int) *follower {
	tb.Helper()
	st, err := store.New(store.Options{})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(st.Close)
	for i := range entries {
		id, account, symbol := fmt.Sprintf("ORDER-%d", i), fmt.Sprintf("ACCT-%03d", i*7%1000), fmt.Sprintf("S%02d", i%100)
		msg := []byte("8=FIX.4.2\x0135=D\x0111=" + id + "\x011=" + account + "\x0155=" + symbol + "\x0154=1\x0138=500\x0140=2\x0144=21.35\x0110=000\x01")
		at := len("8=FIX.4.2\x0135=D\x0111=")
		f := order.Fields{ClOrdIDOff: uint16(at), ClOrdIDLen: uint8(len(id))}
		at += len(id) + 3
		f.AccountOff, f.AccountLen = uint16(at), uint8(len(account))
		at += len(account) + 4
		f.SymbolOff, f.SymbolLen = uint16(at), uint8(len(symbol))
		if err := st.Append(&order.Entry{Kind: order.KindOrder, Epoch: 1, Fields: f}, msg); err != nil {
			tb.Fatal(err)
		}
	}
	st.SetCommitted(uint64(entries))
	log, err := feed.New(st).Reader("passer")
	if err != nil {
		tb.Fatal(err)
	}
	return &follower{log: log, next: 1}
}

// selectNone selects n accounts, symbols, or pairs of them that are in no order.
func selectNone(n int, by string) selection {
	m := wire.StreamSelect{ReqID: 1, QuietMs: 1}
	for i := range n {
		s := wire.Selector{What: wire.SelectOrders | wire.SelectExecutions, Account: fmt.Appendf(nil, "none-%03d", i), Symbol: fmt.Appendf(nil, "N%02d", i)}
		switch by {
		case "account":
			s.Symbol = nil
		case "symbol":
			s.Account = nil
		case "all":
			switch i % 3 {
			case 0:
				s.Symbol = nil
			case 1:
				s.Account = nil
			}
		}
		m.Selectors = append(m.Selectors, s)
	}
	return selectionOf(wire.AppendStreamSelect(nil, 0, &m))
}

func TestPassingOverAnEntryAllocatesNothing(t *testing.T) {
	w := passer(t, 2000)
	w.sel = selectNone(300, "all")
	if n := testing.AllocsPerRun(1000, func() {
		if w.matches(w.log.Read(w.next)) {
			t.Fatalf("entry %d is selected", w.next)
		}
		w.pass()
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// BenchmarkPassOver is what an order costs that a stream looks at and does not send.
func BenchmarkPassOver(b *testing.B) {
	const entries = 100_000
	for _, c := range []struct {
		n  int
		by string
	}{{0, "account"}, {1000, "account"}, {1000, "symbol"}, {1000, "both"}, {1000, "all"}, {3000, "all"}} {
		b.Run(fmt.Sprintf("%s/selectors=%d", c.by, c.n), func(b *testing.B) {
			w := passer(b, entries)
			w.sel = selectNone(c.n, c.by)
			b.ReportAllocs()
			for b.Loop() {
				if w.matches(w.log.Read(w.next)) {
					b.Fatal("selected")
				}
				if w.pass(); w.next > entries {
					w.next = 1
				}
			}
		})
	}
}

// What is set aside for a stream is what its request takes, and what is made of it.
func TestWhatIsAskedForIsCountedAsItIs(t *testing.T) {
	var text [wire.MaxSelectedValue]byte
	value := func(i, size int) []byte { return append([]byte(nil), fmt.Appendf(text[:0], "%0*d", size, i)[:size]...) }
	check := func(what uint8, frame []byte) {
		t.Helper()
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		s := selectionOf(frame)
		runtime.ReadMemStats(&after)
		made := len(frame)
		for _, x := range []*rows{s.accounts, s.symbols, s.chosen} {
			if x != nil {
				made += cap(x.text) + len(x.table)*int(unsafe.Sizeof(row{}))
			}
		}
		if what == wire.StreamBySelect {
			made += wire.MaxSelectSize // another one may have come
		}
		kept, took := keptOf(frame, what), int64(after.TotalAlloc-before.TotalAlloc)+int64(len(frame))
		if t.Logf("a request of %d bytes: %d with what is made of it, %d allocated, %d kept", len(frame), made, took, kept); int64(made) > kept || took > kept+16<<10 { // sizes are rounded
			t.Errorf("%d bytes are set aside for %d", kept, made)
		}
	}
	for _, n := range []int{1, 500, 1025, wire.MaxSelectors/2 + 1, wire.MaxSelectors} {
		m := wire.StreamSelect{ReqID: 1, QuietMs: 1}
		size := min((wire.MaxSelectSize-wire.SelectSize)/n-4, 2*wire.MaxSelectedValue)
		for i := range n {
			m.Selectors = append(m.Selectors, wire.Selector{What: wire.SelectOrders, Account: value(i, size/2), Symbol: value(i, size-size/2)})
		}
		frame := wire.AppendStreamSelect(nil, 0, &m)
		if err := wire.CheckStreamSelect(frame, &wire.StreamSelect{}); err != nil {
			t.Fatal(err)
		}
		check(wire.StreamBySelect, frame)
	}
	for _, size := range []int{3, wire.MaxSelectedValue} {
		m := wire.Stream{ReqID: 1, Window: 1, What: wire.StreamOrders}
		for i := range wire.MaxSelected {
			m.Accounts, m.Symbols = append(m.Accounts, value(i, size)), append(m.Symbols, value(i, size))
		}
		frame := wire.AppendStream(nil, 0, &m)
		if n := testing.AllocsPerRun(20, func() { keptOf(frame, m.What) }); n != 0 {
			t.Errorf("it is counted with %v allocations: that is on the loop", n)
		}
		check(m.What, frame)
	}
	check(0, wire.AppendFollow(nil, 0, &wire.Follow{ReqID: 1, Window: 1, Filter: wire.FilterAccount, Value: value(1, 60)}))
}
