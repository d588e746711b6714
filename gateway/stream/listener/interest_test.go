package listener

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/ordergrid/ordergrid/client"
	"github.com/ordergrid/ordergrid/gateway/stream/topics"
	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// What a subscription is for, the selectors made of it let through: of any pattern and filter, and any message.
func TestInterestMissesNothing(t *testing.T) {
	rng := rand.New(rand.NewPCG(22, 92))
	one := func(list ...string) string { return list[rng.IntN(len(list))] }
	value := func(prefix string) string { return fmt.Sprint(prefix, rng.IntN(4)) }
	narrow, matched := 0, 0
	for range 20_000 {
		stream := one(Orders, Executions)
		text := one(stream, stream, stream, "*") + "." + one("*", value("A"), value("A"), "%") + "." + one("*", value("S"), value("S"), ">")
		if !strings.HasSuffix(text, ">") {
			text += one(".>", ".*", ".buy")
		}
		if rng.IntN(10) == 0 {
			text = one(stream+".>", ">", stream+"."+value("A")+".>")
		}
		p, err := topics.ParsePattern(text)
		if err != nil {
			t.Fatal(err)
		}
		var terms []topics.Term
		if _, literal := p.First(); literal {
			for _, field := range []string{"account", "symbol", "kind"} {
				prefix := map[string]string{"account": "A", "symbol": "S"}[field]
				in := func() string {
					if field == "kind" {
						return one("filled", "accepted", "cancel rejected", "new")
					}
					return value(prefix)
				}
				switch rng.IntN(5) {
				case 0:
					v := in()
					terms = append(terms, topics.Term{Field: field, Equal: &v})
				case 1:
					terms = append(terms, topics.Term{Field: field, In: []string{in(), in()}})
				case 2:
					v := in()[:1]
					terms = append(terms, topics.Term{Field: field, Prefix: &v})
				}
			}
		}
		f, err := topics.ParseFilter(OrderFields, terms)
		if err != nil {
			t.Fatal(err)
		}
		s := newSelected()
		for _, k := range interestOf(p, f, true, false) {
			s.add(&k)
		}
		s.seal()
		for range 20 {
			account, symbol, kind := one("", value("A")), value("S"), client.ExecutionKind(1+rng.IntN(8))
			kinds, word := client.KindExecution(kind), kind.String()
			if stream == Orders {
				kinds, word = client.KindOrders, one("new", "cancel")
			}
			topic := []byte(stream)
			for _, v := range []string{account, symbol, "buy"} {
				topic = topics.AppendToken(append(topic, '.'), []byte(v))
			}
			fields := []topics.Value{topics.TextValue([]byte(account)), topics.TextValue([]byte(symbol)), topics.TextValue([]byte("buy")), topics.TextValue([]byte(word))}
			fields[0].Set = account != ""
			let := s.covers([]client.Selector{{Kinds: kinds, Account: account, Symbol: symbol}})
			if p.Matches(topic) && f.Matches(fields) {
				if matched++; !let {
					t.Fatalf("%s with %+v: %s of kind %s is not asked for: %+v", text, terms, topic, word, s.list)
				}
			} else if !let {
				narrow++
			}
		}
	}
	if narrow < 50_000 || matched < 20_000 {
		t.Errorf("%d messages matched, %d that did not are not asked for: the test shows nothing", matched, narrow)
	}
}

// What subscriptions to regions are for is let through with other entries that are no orders, where regions are streamed.
func TestInterestInRegions(t *testing.T) {
	other := client.Selector{Kinds: client.KindOther}
	for text, want := range map[string][]client.Selector{
		"region.positions.>": {other}, "region.>": {other}, "*.positions.*": {other, {Kinds: client.KindOrders, Account: "positions"}},
		">": {other, {Kinds: client.KindOrders}}, "orders.A.>": {{Kinds: client.KindOrders, Account: "A"}}, "user.>": nil,
	} {
		p, err := topics.ParsePattern(text)
		if err != nil {
			t.Fatal(err)
		}
		if got := interestOf(p, topics.Filter{}, false, true); !slices.Equal(got, want) {
			t.Errorf("%s: %+v, want %+v", text, got, want)
		}
		_, literal := p.First()
		if got := interestOf(p, topics.Filter{}, false, false); slices.Contains(got, other) == literal { // positions of sinks are others too
			t.Errorf("%s where regions are not streamed: %+v", text, got)
		}
	}
}

// Positions of sinks are let through for those who want them only.
func TestInterestInSinks(t *testing.T) {
	other := client.Selector{Kinds: client.KindOther}
	for text, want := range map[string]bool{"downstream.>": true, "downstream.p0.kafka": true, "*.p0.kafka": true, ">": true, "orders.>": false, "region.>": false, "user.>": false} {
		p, err := topics.ParsePattern(text)
		if err != nil {
			t.Fatal(err)
		}
		if got := interestOf(p, topics.Filter{}, false, false); slices.Contains(got, other) != want {
			t.Errorf("%s: %+v", text, got)
		}
	}
}

// A filter of many values is one selector for each, or for all of the other field.
func TestInterestIsBounded(t *testing.T) {
	var accounts, symbols []string
	for i := range topics.MaxValues {
		accounts, symbols = append(accounts, fmt.Sprint("A", i)), append(symbols, fmt.Sprint("S", i))
	}
	p, err := topics.ParsePattern("orders.>")
	if err != nil {
		t.Fatal(err)
	}
	f, err := topics.ParseFilter(OrderFields, []topics.Term{{Field: "account", In: accounts}, {Field: "symbol", In: symbols}})
	if err != nil {
		t.Fatal(err)
	}
	if list := interestOf(p, f, true, false); len(list) != topics.MaxValues || list[0].Symbol != "" || list[0].Account == "" {
		t.Errorf("%d selectors, the first is %+v", len(list), list[0])
	}
	s := newSelected()
	for i := range wire.MaxSelectors {
		s.add(&client.Selector{Kinds: client.KindOrders, Account: fmt.Sprint(i)})
	}
	if !s.fits(1, 1) || s.fits(3, 4) {
		t.Errorf("%d selectors of %d bytes do not fit, or leave room", len(s.kinds), s.bytes)
	}
	if s.add(&client.Selector{Kinds: client.KindOrders, Account: "one more"}); s.fits(1, 1) {
		t.Error("more selectors than a node takes fit")
	}
}
