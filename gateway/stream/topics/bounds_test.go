package topics

import (
	"fmt"
	"strings"
	"testing"
)

func TestErrorsNameValueAndAllowed(t *testing.T) {
	long := strings.Repeat("a", MaxToken+1)
	for _, c := range []struct{ pattern, want string }{
		{"", `token 1 of pattern "" is ""`},
		{"a..b", `token 2 of pattern "a..b" is ""`},
		{"a.>.b", "> as the last token only"},
		{"a.b*", `is "b*"`},
		{"a b", `is "a b"`},
		{"a%2", `is "a%2"`},
		{"a%41", `is "a%41"`}, // A is written as A
		{"a%2e", `is "a%2e"`}, // capital digits
		{"é", `is "é"`},
		{long, "1 to 192 printable"},
		{"1.2.3.4.5.6.7.8.9", "at most 8 tokens"},
		{strings.Repeat("a", MaxPattern+1), "at most 512 bytes"},
	} {
		if _, err := ParsePattern(c.pattern); err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), "allowed: ") {
			t.Errorf("pattern %.40q: %v, want %s", c.pattern, err, c.want)
		}
	}
	s := func(text string) *string { return &text }
	for _, c := range []struct {
		term Term
		want string
	}{
		{Term{Field: "colour", Equal: s("x")}, `"colour", allowed: account, price, quantity, time`},
		{Term{Field: "account"}, `"0 conditions"`},
		{Term{Field: "account", Equal: s("x"), Prefix: s("y")}, `"2 conditions"`},
		{Term{Field: "account", Min: s("x")}, "the field is text"},
		{Term{Field: "price", Prefix: s("1")}, "the field is not text"},
		{Term{Field: "price", Equal: s("1e5")}, `is "1e5", allowed: a decimal`},
		{Term{Field: "price", Equal: s("1234567890123456789")}, "at most 18 digits"},
		{Term{Field: "quantity", Min: s("1.5")}, "a whole number"},
		{Term{Field: "quantity", Min: s("2"), Max: s("1")}, "an empty range"},
		{Term{Field: "quantity", Above: s("2"), Max: s("2")}, "an empty range"},
		{Term{Field: "quantity", Above: s("2"), Min: s("2")}, "one of equal"},
		{Term{Field: "time", Max: s("yesterday")}, "a time between"},
		{Term{Field: "account", In: []string{}}, `"0 values"`},
		{Term{Field: "account", In: make([]string, MaxValues+1)}, `"65 values"`},
		{Term{Field: "account", Equal: s(strings.Repeat("a", MaxValue+1))}, "at most 256 bytes"},
	} {
		if _, err := ParseFilter(testFields, []Term{c.term}); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("filter %+v: %v, want %s", c.term, err, c.want)
		}
	}
	if _, err := ParseFilter(testFields, make([]Term, MaxTerms+1)); err == nil || !strings.Contains(err.Error(), "at most 8") {
		t.Error(err)
	}
}

// All 255 patterns of * and a below one topic, and those with >: the most nodes that a message can visit.
func TestPatternsMadeToBeSlow(t *testing.T) {
	x := NewIndex(0)
	id := uint32(0)
	add := func(text string) {
		p, err := ParsePattern(text)
		if err != nil {
			t.Fatal(err)
		}
		if err := x.Add(id, p, Filter{}); err != nil {
			t.Fatal(err)
		}
		id++
	}
	for length := 1; length <= MaxTokens; length++ {
		for mask := range 1 << length {
			tokens := make([]string, length)
			for i := range tokens {
				if tokens[i] = "a"; mask>>i&1 == 1 {
					tokens[i] = "*"
				}
			}
			add(strings.Join(tokens, "."))
			tokens[length-1] = ">"
			if mask < 1<<(length-1) {
				add(strings.Join(tokens, "."))
			}
		}
	}
	topic := []byte(strings.TrimSuffix(strings.Repeat("a.", MaxTokens), "."))
	if hits := x.Match(topic, nil, nil); len(hits) != 1<<MaxTokens+(1<<MaxTokens-1) {
		t.Errorf("%d hits, want %d of patterns without > and %d with", len(hits), 1<<MaxTokens, 1<<MaxTokens-1)
	}
	if hits := x.Match(append(topic, ".a"...), nil, nil); len(hits) != 0 {
		t.Errorf("a topic of %d tokens has %d hits", MaxTokens+1, len(hits))
	}
}

func TestFiltersThatAreTriedAreBounded(t *testing.T) {
	x := NewIndex(16)
	p, _ := ParsePattern("orders.>")
	account := "A"
	add := func(id int, terms ...Term) error {
		f, err := ParseFilter(testFields, terms)
		if err != nil {
			t.Fatal(err)
		}
		return x.Add(uint32(id), p, f)
	}
	from := func(n int) Term { low := fmt.Sprint(n); return Term{Field: "quantity", Min: &low} }
	for i := range 16 {
		if err := add(i, from(i)); err != nil {
			t.Fatal(err)
		}
	}
	if err := add(100, from(100)); err == nil || !strings.Contains(err.Error(), `is "17", allowed: at most 16`) {
		t.Errorf("17 ranges: %v", err)
	}
	if err := add(101, from(3)); err != nil {
		t.Errorf("a range that is tried anyway: %v", err)
	}
	for i := range 2 {
		if err := add(200+i, Term{Field: "account", Equal: &account}, from(i)); err != nil {
			t.Fatal(err)
		}
	}
	if err := add(202, Term{Field: "account", Equal: &account}, from(2)); err == nil || !strings.Contains(err.Error(), "at most 2 with different further terms") {
		t.Errorf("three ranges of one account: %v", err)
	}
	x.Remove(5)
	if err := add(100, from(100)); err != nil {
		t.Errorf("after one was removed: %v", err)
	}
}

func TestMatchAllocsNothing(t *testing.T) {
	x := NewIndex(0)
	account, low := "A17", "1.5"
	for i := range 1000 {
		p, _ := ParsePattern([]string{"orders.>", "orders.*.ACME.*", fmt.Sprintf("orders.A%d.>", i)}[i%3])
		f, err := ParseFilter(testFields, [][]Term{nil, {{Field: "account", Equal: &account}, {Field: "price", Min: &low}}}[i%2])
		if err != nil {
			t.Fatal(err)
		}
		if err := x.Add(uint32(i), p, f); err != nil {
			t.Fatal(err)
		}
	}
	price, _ := DecimalValue([]byte("101.25"))
	topic, fields, hits := []byte("orders.A17.ACME.buy"), []Value{TextValue([]byte(account)), price}, make([]uint32, 0, 1000)
	if n := testing.AllocsPerRun(100, func() { hits = x.Match(topic, fields, hits[:0]) }); n != 0 || len(hits) < 600 {
		t.Errorf("%v allocations, %d hits", n, len(hits))
	}
}

// TestReadToken: it returns what AppendToken was given, and refuses what that does not write.
func TestReadToken(t *testing.T) {
	for _, raw := range []string{"", "ACME", "BRK.B", "a b*>%", "\x00\xff", "%"} {
		if got, ok := ReadToken(string(AppendToken(nil, []byte(raw)))); !ok || string(got) != raw {
			t.Errorf("%q is read as %q, %t", raw, got, ok)
		}
	}
	for _, bad := range []string{"*", ">", "a.b", "%41", "%2e", "%2", "a ", ""} {
		if raw, ok := ReadToken(bad); ok {
			t.Errorf("%q is read as %q", bad, raw)
		}
	}
}
