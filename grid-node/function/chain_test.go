package function

import (
	"bytes"
	"context"
	"fmt"
	"testing"

	"github.com/ordergrid/ordergrid/grid-node/function/examples"
	"github.com/ordergrid/ordergrid/grid-node/order"
)

// loaded loads a module that is closed with the test.
func loaded(tb testing.TB, bin []byte, opts Options) *Module {
	tb.Helper()
	m, err := Load(tb.Context(), bin, Pre, opts)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = m.Close(context.Background()) })
	return m
}

func chain(tb testing.TB, stamp uint32, list ...Callback) *Chain {
	tb.Helper()
	c, err := NewChain(tb.Context(), list, stamp)
	if err != nil {
		tb.Fatal(err)
	}
	return c
}

func parsed(tb testing.TB, raw []byte) *order.Order {
	tb.Helper()
	var o order.Order
	if err := order.Parse(raw, &o); err != nil {
		tb.Fatal(err)
	}
	return &o
}

// sets are the instructions of a function that sets one tag.
func sets(tag uint32, value string) []byte {
	at := int64(areaAt + areaData)
	b := cat(constI32(at), constI32(int64(tag)), "\x36\x02\x00", constI32(at+4), constI32(int64(len(value))), "\x36\x02\x00")
	for i := range len(value) {
		b = cat(b, constI32(at+8+int64(i)), constI32(int64(value[i])), "\x3a\x00\x00")
	}
	return cat(b, constI32(areaAt+areaOut), constI32(areaData), "\x36\x02\x00",
		constI32(areaAt+areaOut+4), constI32(int64(8+(len(value)+3)&^3)), "\x36\x02\x00", constI32(2))
}

// TestChain: each function gets what those before it have made of the order.
func TestChain(t *testing.T) {
	desk := loaded(t, examples.EnrichClient, Options{Config: []byte("ACC-1=DESK-7"), Tags: []uint32{10001}})
	account := loaded(t, entry(Pre, nil, sets(1, "ACC-1")), Options{Tags: []uint32{1}})
	finger := loaded(t, examples.FatFinger, Options{Config: []byte("quantity=1000")})
	trap := loaded(t, entry(Pre, nil, opUnreachable), Options{})
	side := loaded(t, entry(Pre, nil, sets(54, "Z")), Options{Tags: []uint32{54}})
	for _, c := range []struct {
		name  string
		list  []Callback
		stamp uint32
		order []byte
		want  string
	}{
		{"accepted as it is", []Callback{{"finger", finger, Reject}}, 0, with(t).Raw, "same"},
		{"refused", []Callback{{"finger", finger, Reject}, {"account", account, Reject}}, 0, with(t, set(38, "1001")).Raw, "3 fat-finger: quantity above the limit"},
		{"changed twice", []Callback{{"account", account, Reject}, {"desk", desk, Reject}}, 0, with(t, set(1, "X")).Raw, "1=ACC-1 10001=DESK-7"},
		{"in the other order", []Callback{{"desk", desk, Reject}, {"account", account, Reject}}, 0, with(t, set(1, "X")).Raw, "1=ACC-1 10001="},
		{"a trap refuses", []Callback{{"trap", trap, Reject}, {"account", account, Reject}}, 0, with(t).Raw, "99 trap: function: trap"},
		{"a trap passes", []Callback{{"trap", trap, Pass}, {"account", account, Reject}}, 0, with(t).Raw, "1=ACC-1 10001="},
		{"no valid order refuses", []Callback{{"side", side, Reject}}, 0, with(t).Raw, "99 side: function: bad result"},
		{"no valid order passes as it was", []Callback{{"account", account, Reject}, {"side", side, Pass}}, 0, with(t).Raw, "1=ACC-1 10001="},
		{"a client's stamp is replaced", []Callback{{"finger", finger, Reject}}, 10001, with(t, set(10001, "forged")).Raw, "stamp"},
	} {
		t.Run(c.name, func(t *testing.T) {
			ch := chain(t, c.stamp, c.list...)
			for range 2 { // buffers are used again
				out := ch.Decide(7, c.order, parsed(t, c.order))
				got := fmt.Sprint(out.Reason, " ", string(out.Text))
				switch {
				case out.Message == nil:
				case bytes.Equal(out.Message, c.order):
					got = "same"
				default:
					if *parsed(t, out.Message) != *out.Parsed {
						t.Errorf("%+v of %q", out.Parsed, out.Message)
					}
					spans := order.NewLocator(1, 10001).Locate(out.Message, 0)
					got = fmt.Sprintf("1=%s 10001=%s", spans[0].Of(out.Message), spans[1].Of(out.Message))
					if c.want == "stamp" && string(spans[1].Of(out.Message)) == ch.Digest()[:16] {
						got = "stamp"
					}
				}
				if got != c.want {
					t.Errorf("%s, want %s", got, c.want)
				}
			}
		})
	}
}

// TestChainCounts: each call is counted once, and a fault is reported with the order's id.
func TestChainCounts(t *testing.T) {
	finger := loaded(t, examples.FatFinger, Options{Config: []byte("quantity=1000")})
	side := loaded(t, entry(Pre, nil, sets(54, "Z")), Options{Tags: []uint32{54}})
	loop := loaded(t, entry(Pre, nil, loopForever, constI32(0)), Options{Fuel: 500})
	ch := chain(t, 0, Callback{"finger", finger, Reject}, Callback{"side", side, Pass}, Callback{"loop", loop, Reject})
	var told []string
	ch.OnFault = func(k int, f Fault, id []byte) {
		told = append(told, fmt.Sprintf("%d %s %s: %s", k, f, id, ch.Explain(k, f)))
	}
	good, large := with(t, set(38, "10")).Raw, with(t, set(38, "1001")).Raw
	ch.Decide(1, good, parsed(t, good))
	ch.Decide(1, large, parsed(t, large))
	ch.Decide(1, good, parsed(t, good))
	id := string(order.NewLocator(11).Locate(good, 0)[0].Of(good))
	want := []string{"1 bad result " + id + ": what it sets makes no valid order", "2 out of fuel " + id + ": out of fuel, it has 500"}
	if want = append(want, want...); fmt.Sprint(told) != fmt.Sprint(want) {
		t.Errorf("reported %q, want %q", told, want)
	}
	a, b, c := ch.Counts(0), ch.Counts(1), ch.Counts(2)
	if a.Accepted != 2 || a.Refused != 1 || b.Failed[BadResult] != 2 || c.Failed[OutOfFuel] != 2 || c.Fuel != 1000 || a.Fuel == 0 {
		t.Errorf("%+v, %+v, %+v", a, b, c)
	}
}

// TestChainRefuses grants that would let a function make another order of an order.
func TestChainRefuses(t *testing.T) {
	for _, tag := range []uint32{11, 34, 49, 95, 453, 9} {
		m := loaded(t, examples.FatFinger, Options{Tags: []uint32{tag}})
		if _, err := NewChain(t.Context(), []Callback{{"f", m, Reject}}, 0); err == nil {
			t.Errorf("tag %d was granted", tag)
		}
		m = loaded(t, examples.FatFinger, Options{})
		if _, err := NewChain(t.Context(), []Callback{{"f", m, Reject}}, tag); err == nil {
			t.Errorf("tag %d is the stamp", tag)
		}
	}
	if _, err := NewChain(t.Context(), nil, 0); err == nil {
		t.Error("a chain of nothing")
	}
}

// TestDigestOfAChain is that of everything that decides.
func TestDigestOfAChain(t *testing.T) {
	seen := map[string]string{}
	for name, cb := range map[string]Callback{
		"one":           {"f", loaded(t, examples.FatFinger, Options{Config: []byte("quantity=1")}), Reject},
		"configuration": {"f", loaded(t, examples.FatFinger, Options{Config: []byte("quantity=2")}), Reject},
		"onError":       {"f", loaded(t, examples.FatFinger, Options{Config: []byte("quantity=1")}), Pass},
		"fuel":          {"f", loaded(t, examples.FatFinger, Options{Config: []byte("quantity=1"), Fuel: 7000}), Reject},
		"module":        {"f", loaded(t, examples.RestrictedList, Options{Config: []byte("quantity=1")}), Reject},
	} {
		d := chain(t, 0, cb).Digest()
		if other, ok := seen[d]; ok || len(d) != 64 {
			t.Errorf("%s has the digest of %s: %s", name, other, d)
		}
		seen[d] = name
	}
}

// TestChainDoesNotAllocate: accepted, changed and stamped.
func TestChainDoesNotAllocate(t *testing.T) {
	desk := loaded(t, examples.EnrichClient, Options{Config: []byte("ACC-1=DESK-7"), Tags: []uint32{10001}})
	finger := loaded(t, examples.FatFinger, Options{Config: []byte("quantity=1000")})
	ch := chain(t, 10002, Callback{"finger", finger, Reject}, Callback{"desk", desk, Reject})
	raw := with(t, set(38, "10"), set(1, "ACC-1")).Raw
	f := parsed(t, raw)
	ok := true
	if n := testing.AllocsPerRun(200, func() { ok = ok && ch.Decide(1, raw, f).Message != nil }); n != 0 || !ok {
		t.Errorf("%v allocations, accepted %t", n, ok)
	}
}
