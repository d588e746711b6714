package topics

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// Few tokens, values and depths: so that patterns, filters and messages meet.
var (
	drawToken   = rapid.SampledFrom([]string{"orders", "A", "B", "A17", "%", "BRK%2EB"})
	drawPattern = rapid.Custom(func(t *rapid.T) string {
		tokens := rapid.SliceOfN(rapid.OneOf(drawToken, rapid.Just("*")), 1, 5).Draw(t, "tokens")
		if rapid.Bool().Draw(t, "rest") {
			tokens[len(tokens)-1] = ">"
		}
		return strings.Join(tokens, ".")
	})
	drawTopic = rapid.Custom(func(t *rapid.T) string {
		return strings.Join(rapid.SliceOfN(drawToken, 1, 5).Draw(t, "tokens"), ".")
	})
	testFields = []Field{{"account", Text}, {"price", Decimal}, {"quantity", Int}, {"time", Time}}
	drawText   = map[Type]*rapid.Generator[string]{
		Text:    rapid.SampledFrom([]string{"", "A", "AB", "ABC", "B"}),
		Decimal: rapid.SampledFrom([]string{"-10", "-1.5", "-1.25", "0", "1", "1.0", "1.01", "10", "999999999999999999", "0.000000000000000001"}),
		Int:     rapid.SampledFrom([]string{"-9223372036854775808", "-1", "0", "1", "7", "9223372036854775807"}),
		Time:    rapid.SampledFrom([]string{"2026-11-23T14:00:00Z", "2026-11-23T14:00:00.000000001Z", "2026-11-23T15:00:00+01:00", "2027-01-01T00:00:00Z"}),
	}
	drawTerm = rapid.Custom(func(t *rapid.T) Term {
		f := rapid.SampledFrom(testFields).Draw(t, "field")
		term := Term{Field: f.Name}
		value := func() *string { s := drawText[f.Type].Draw(t, "value"); return &s }
		switch form := rapid.IntRange(0, 3).Draw(t, "form"); {
		case form == 0:
			term.Equal = value()
		case form == 1:
			term.In = rapid.SliceOfN(drawText[f.Type], 1, 4).Draw(t, "in")
		case f.Type == Text:
			term.Prefix = value()
		default:
			switch rapid.IntRange(0, 2).Draw(t, "low") {
			case 0:
				term.Min = value()
			case 1:
				term.Above = value()
			}
			switch rapid.IntRange(0, 2).Draw(t, "high") {
			case 0:
				term.Max = value()
			case 1:
				term.Below = value()
			}
		}
		return term
	})
	drawFields = rapid.Custom(func(t *rapid.T) []Value {
		values := make([]Value, len(testFields))
		for i, f := range testFields {
			if rapid.IntRange(0, 5).Draw(t, "absent") > 0 {
				values[i], _ = parseValue(f.Type, drawText[f.Type].Draw(t, f.Name))
			}
		}
		return values
	})
)

// naive matches by splitting the topic, and shares no code with the trie and the sets.
func naive(pattern string, topic string) bool {
	p, s := strings.Split(pattern, "."), strings.Split(topic, ".")
	for i := range p {
		if p[i] == ">" {
			return len(s) > i
		}
		if i >= len(s) || p[i] != "*" && p[i] != s[i] {
			return false
		}
	}
	return len(p) == len(s)
}

// What a pattern covers it matches. Of these few topics the converse holds where the other pattern has no >.
func TestCovers(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b, topic := drawPattern.Draw(t, "a"), drawPattern.Draw(t, "b"), drawTopic.Draw(t, "topic")
		p, _ := ParsePattern(a)
		q, _ := ParsePattern(b)
		if p.Covers(q) && naive(b, topic) && !naive(a, topic) {
			t.Fatalf("%s covers %s, and %s is only of the latter", a, b, topic)
		}
		if !strings.HasSuffix(b, ">") && p.Covers(q) != naive(a, strings.ReplaceAll(b, "*", "neither")) {
			t.Fatalf("%s.Covers(%s) is %v", a, b, p.Covers(q))
		}
		if strings.HasSuffix(b, ">") && p.Covers(q) != strings.HasSuffix(a, ">") && p.Covers(q) {
			t.Fatalf("%s covers %s, which has topics of any length", a, b)
		}
	})
}

// kept is what the test knows of a subscription.
type kept struct {
	pattern string
	p       Pattern
	f       Filter
	terms   []Term
}

func TestIndexFindsWhatANaiveMatcherFinds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x, held := NewIndex(0), map[uint32]kept{}
		next := uint32(1)
		t.Repeat(map[string]func(*rapid.T){
			"add": func(t *rapid.T) {
				k := kept{pattern: drawPattern.Draw(t, "pattern"), terms: rapid.SliceOfN(drawTerm, 0, 3).Draw(t, "terms")}
				var err error
				if k.p, err = ParsePattern(k.pattern); err != nil {
					t.Fatal(err)
				}
				if k.f, err = ParseFilter(testFields, k.terms); err != nil {
					t.Skip("an empty or unbounded range")
				}
				if err := x.Add(next, k.p, k.f); err != nil {
					t.Fatal(err)
				}
				held[next] = k
				next++
			},
			"remove": func(t *rapid.T) {
				id := rapid.Uint32Range(1, next).Draw(t, "id")
				_, want := held[id]
				if got := x.Remove(id); got != want {
					t.Fatalf("Remove(%d) is %v, want %v", id, got, want)
				}
				delete(held, id)
			},
			"match": func(t *rapid.T) {
				topic, fields := drawTopic.Draw(t, "topic"), drawFields.Draw(t, "fields")
				got := x.Match([]byte(topic), fields, nil)
				slices.Sort(got)
				var want []uint32
				for id, k := range held {
					if k.p.Matches([]byte(topic)) != naive(k.pattern, topic) {
						t.Fatalf("%s.Matches(%s) is %v", k.pattern, topic, !naive(k.pattern, topic))
					}
					if naive(k.pattern, topic) && naiveFilter(k.terms, fields) {
						want = append(want, id)
					}
				}
				slices.Sort(want)
				if !slices.Equal(got, want) {
					t.Fatalf("%s with %v: matched %v, want %v", topic, fields, got, want)
				}
			},
			"": func(t *rapid.T) {
				if x.Len() != len(held) {
					t.Fatalf("%d subscriptions, want %d", x.Len(), len(held))
				}
			},
		})
		for id := range held {
			x.Remove(id)
		}
		if !x.root.empty() || x.tried != 0 {
			t.Fatalf("an index without subscriptions holds %+v, tried %d", x.root, x.tried)
		}
	})
}

func BenchmarkMatch(b *testing.B) {
	for _, subs := range []int{0, 1000, 10_000, 100_000} {
		for _, kind := range []string{"none", "topics", "filters"} {
			x := NewIndex(0)
			for i := range subs {
				text, terms := fmt.Sprintf("orders.A%d.S%d.*", i%1000, i/3%300), []Term(nil)
				switch {
				case i%1000 == 0:
					text = fmt.Sprintf("orders.*.S%d.>", i/1000)
				case kind == "filters":
					account := fmt.Sprintf("A%d", i%1000)
					low := fmt.Sprint(i / 1000)
					text, terms = "orders.>", []Term{{Field: "account", Equal: &account}, {Field: "quantity", Min: &low}}
				}
				p, err := ParsePattern(text)
				if err != nil {
					b.Fatal(err)
				}
				f, err := ParseFilter(testFields, terms)
				if err != nil {
					b.Fatal(err)
				}
				if err := x.Add(uint32(i), p, f); err != nil {
					b.Fatal(err)
				}
			}
			account, symbol := "A17", "S5"
			if kind == "none" {
				account, symbol = "X17", "X5"
			}
			topic := []byte("orders." + account + "." + symbol + ".buy")
			price, _ := DecimalValue([]byte("101.25"))
			fields := []Value{TextValue([]byte(account)), price, IntValue(500), IntValue(1 << 60)}
			hits := make([]uint32, 0, 1<<16)
			b.Run(fmt.Sprintf("%s/subs=%d", kind, subs), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					hits = x.Match(topic, fields, hits[:0])
				}
				b.ReportMetric(float64(len(hits)), "hits")
			})
		}
	}
}
