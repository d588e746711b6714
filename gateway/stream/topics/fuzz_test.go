package topics

import (
	"bytes"
	"encoding/json"
	"math/big"
	"strings"
	"testing"
)

func FuzzPattern(f *testing.F) {
	for _, s := range []string{"orders.*.ACME.>", "*", ">", "a..b", "BRK%2EB", "%", "a.>.b", "%%", "a%2e"} {
		f.Add(s, "orders.A.ACME.buy")
	}
	f.Fuzz(func(t *testing.T, pattern, topic string) {
		p, err := ParsePattern(pattern)
		if err != nil {
			return
		}
		if CheckTopic([]byte(pattern)) == nil && !p.Matches([]byte(pattern)) {
			t.Errorf("%q does not match itself", pattern)
		}
		if CheckTopic([]byte(topic)) != nil {
			return
		}
		x := NewIndex(0)
		if err := x.Add(1, p, Filter{}); err != nil {
			t.Fatal(err)
		}
		if got, want := len(x.Match([]byte(topic), nil, nil)) == 1, naive(pattern, topic); got != want || p.Matches([]byte(topic)) != want {
			t.Errorf("pattern %q, topic %q: index %v, Matches %v, want %v", pattern, topic, got, p.Matches([]byte(topic)), want)
		}
	})
}

// Different bytes are different tokens, and each is valid.
func FuzzToken(f *testing.F) {
	f.Add([]byte("BRK.B"), []byte("BRK%2EB"))
	f.Add([]byte(nil), []byte("%"))
	f.Fuzz(func(t *testing.T, a, b []byte) {
		x, y := AppendToken(nil, a), AppendToken(nil, b)
		if bytes.Equal(x, y) != bytes.Equal(a, b) {
			t.Errorf("%q is %s, %q is %s", a, x, b, y)
		}
		if len(x) <= MaxToken && CheckTopic(x) != nil {
			t.Error(CheckTopic(x))
		}
	})
}

func FuzzDecimal(f *testing.F) {
	for _, s := range []string{"0", "-0.0", "1.50", ".5", "5.", "-", ".", "000000000000000000000001", "0.0000000000000000000"} {
		f.Add(s, "1")
		f.Add("-1.25", "-1.5")
		f.Add("-1.25", "-1")
	}
	f.Fuzz(func(t *testing.T, a, b string) {
		x, okA := DecimalValue([]byte(a))
		y, okB := DecimalValue([]byte(b))
		if !okA || !okB {
			return
		}
		r, _ := new(big.Rat).SetString(a)
		s, _ := new(big.Rat).SetString(b)
		if naiveValue(Decimal, x).Cmp(r) != 0 {
			t.Errorf("%s is read as %d of scale %d", a, x.Num, x.Scale)
		}
		if got, want := compare(Decimal, &x, &y), r.Cmp(s); got != want {
			t.Errorf("compare(%s, %s) is %d, want %d", a, b, got, want)
		}
		if (x.Num == y.Num && x.Scale == y.Scale) != (r.Cmp(s) == 0) {
			t.Errorf("%s and %s are %+v and %+v: equal numbers have one form", a, b, x, y)
		}
	})
}

func FuzzFilter(f *testing.F) {
	f.Add(`[{"field":"price","min":"1","below":"2.5"}]`, "A", "1.5", "7")
	f.Add(`[{"field":"account","in":["A","B"]},{"field":"quantity","equal":"7"}]`, "A", "1.5", "7")
	f.Add(`[{"field":"account","prefix":"A"}]`, "AB", "1.5", "7")
	f.Fuzz(func(t *testing.T, text, account, price, quantity string) {
		var terms []Term
		if json.NewDecoder(strings.NewReader(text)).Decode(&terms) != nil {
			return
		}
		filter, err := ParseFilter(testFields, terms)
		if err != nil {
			return
		}
		fields := []Value{TextValue([]byte(account)), {}, {}, {}}
		fields[1], _ = DecimalValue([]byte(price))
		fields[2], _ = parseValue(Int, quantity)
		x := NewIndex(0)
		p, _ := ParsePattern(">")
		if err := x.Add(1, p, filter); err != nil {
			t.Fatal(err)
		}
		got, want := filter.Matches(fields), naiveFilter(terms, fields)
		if hit := len(x.Match([]byte("a"), fields, nil)) == 1; got != want || hit != want {
			t.Errorf("filter %s, fields %+v: %v, index %v, want %v", text, fields, got, hit, want)
		}
	})
}
