package sql

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/ordergrid/ordergrid/grid-node/view"
)

// What PostgreSQL 15 answers about these texts; e2e/sql compares many more with it.
func TestJSON(t *testing.T) {
	for _, c := range []struct{ text, name, want string }{
		{`{"a":1}`, "a", "1"}, {`{"a":1}`, "b", "none"}, {`[1]`, "a", "none"}, {`"a"`, "a", "none"}, {`{"a":1,"a":2}`, "a", "2"}, {`{"a":1,"a":null}`, "a", "null"},
		{`{"a": {"b" :1} }`, "a", `{"b" :1}`}, {`{"\u0061":"x"}`, "a", `"x"`}, {`{"a":"\ud83d\ude00\n\/"}`, "a", `"\ud83d\ude00\n\/"`},
		{`{"a":"\ud83d"}`, "a", StateText}, {`{"a":1,"b":"\ude00"}`, "a", StateText}, {`{"a":1,"b":"\u0000"}`, "a", StateUntranslatable}, {`{"a":"\ud83dx"}`, "a", StateText},
		{``, "a", StateText}, {`{`, "a", StateText}, {`{"a"}`, "a", StateText}, {`{"a":1,}`, "a", StateText}, {`[1,]`, "a", StateText}, {`{"a":01}`, "a", StateText}, {`{"a":1.}`, "a", StateText},
		{`{"a":-}`, "a", StateText}, {`{"a":1e}`, "a", StateText}, {`{"a":tru}`, "a", StateText}, {`{"a":truex}`, "a", StateText}, {`{"a":'x'}`, "a", StateText}, {"{\"a\":\"\n\"}", "a", StateText},
		{`{"a":"\x"}`, "a", StateText}, {`{"a":"\u00g0"}`, "a", StateText}, {`{"a":"\`, "a", StateText}, {`{"a":1} x`, "a", StateText}, {`100`, "a", "none"}, {"{\"a\":1}\v", "a", StateText},
	} {
		got, found, err := getJSON(c.text, []step{{name: c.name, named: true}})
		switch {
		case err != nil:
			got = err.Code
		case !found:
			got = "none"
		}
		if got != c.want {
			t.Errorf("%s -> %s: %s (%v), want %s", c.text, c.name, got, err, c.want)
		}
	}
	// The type takes what the operators do not: escapes are not looked into.
	for text, want := range map[string]bool{`{"a":"\u0000\ud83d"}`: true, `"\u00"`: false, `nul`: false, " \t\r\n1 ": true, "\f1": false} {
		if err := validJSON(text); (err == nil) != want {
			t.Errorf("%q: %v, want valid %v", text, err, want)
		}
	}
}

// Texts that are made to be much work are refused, or are work of their length.
func TestHostileJSON(t *testing.T) {
	deep := strings.Repeat("[", 1<<20)
	if _, _, err := getJSON(deep, nil); err == nil || err.Code != StateTooComplex {
		t.Errorf("2^20 arrays in one another: %v", err)
	}
	deep = strings.Repeat(`{"a":`, maxNested) + "1" + strings.Repeat("}", maxNested)
	path := make([]step, maxPath)
	for i := range path {
		path[i] = step{name: "a", named: true}
	}
	if _, found, err := getJSON(deep, path); err != nil || !found {
		t.Errorf("a path into %d objects: %v", maxNested, err)
	}
	var wide strings.Builder
	wide.WriteString(`{"first":0`)
	for i := range 10_000 {
		fmt.Fprintf(&wide, `,"f%d":%d`, i, i)
	}
	wide.WriteString(`,"first":"last"}`)
	if got, _, err := getJSON(wide.String(), []step{{name: "first", named: true}}); err != nil || got != `"last"` {
		t.Errorf("10,000 fields: %s %v", got, err)
	}
	long := `{"a":"` + strings.Repeat(`\u00e9`, 1<<20/6) + `"}`
	got, _, err := getJSON(long, []step{{name: "a", named: true}})
	if text, _ := textOfJSON(got); err != nil || len(text) != 2*(1<<20/6) {
		t.Errorf("a string of 1 MiB: %d bytes, %v", len(text), err)
	}
	// Negative indexes count an array first: as often as the path is long, not 2^length.
	nested := strings.Repeat("[", 200) + "1" + strings.Repeat("]", 200)
	for i := range path {
		path[i] = step{index: -1, counted: true}
	}
	begun := time.Now()
	if _, found, err := getJSON(nested, path); err != nil || !found || time.Since(begun) > 5*time.Second {
		t.Errorf("%d steps from the end: %v after %s", maxPath, err, time.Since(begun))
	}
	if ok, err := like(strings.Repeat("a", 64<<10), strings.Repeat("%a", 127)+"b"); ok || err != nil || time.Since(begun) > 10*time.Second {
		t.Errorf("a pattern that is made to be slow: %v %v", ok, err)
	}
	if _, err := planned(t, "select "+strings.Repeat("value->'a'->'a',", 51)+"key from regions.r"); err == nil || err.Code != StateTooComplex {
		t.Errorf("102 operators on fields: %v", err)
	}
	if _, err := planned(t, "select key from regions.r where value#>>'{"+strings.Repeat("a,", 200)+"a}' = 'x'"); err != nil {
		t.Fatal(err)
	}
}

// A row whose field is wrong ends the statement with PostgreSQL's SQLSTATE; one that the path leaves out does not.
func TestFieldErrors(t *testing.T) {
	row := func(value string) []view.Value {
		return []view.Value{view.TextValue("k"), view.TextValue(value), view.IntValue(7), {}, view.IntValue(1)}
	}
	for _, c := range []struct{ where, value, want string }{
		{"(value->>'q')::bigint > 1", `{"q":2}`, "row"}, {"(value->>'q')::bigint > 1", `{"q":"2"}`, "row"}, {"(value->>'q')::bigint > 1", `{"q":1}`, "none"},
		{"(value->>'q')::bigint > 1", `{}`, "none"}, {"(value->>'q')::bigint > 1", `{"q":1.5}`, StateText}, {"(value->>'q')::bigint > 1", `x`, StateText},
		{"(value->>'q')::bigint > 1", `{"q":9223372036854775808}`, StateRange}, {"(value->>'q')::numeric > 9223372036854775807.99", `{"q":9223372036854775808}`, "row"},
		{"(value->>'t')::timestamptz < now()", `{"t":"then"}`, StateDatetime}, {"(value->>'b')::boolean", `{"b":true}`, "row"}, {"(value->>'b')::boolean", `{"b":2}`, StateText},
		{"not (value->>'b')::boolean", `{}`, "none"}, {"(value->>'b') is null", `{"b":null}`, "row"}, {"value->'b' is null", `{"b":null}`, "none"},
		{"value->>'s' like '%x_%'", `{"s":"axé"}`, "row"}, {"value->>'s' not like 'a%'", `{"s":"a"}`, "none"}, {"value->>'s' in ('a', null)", `{"s":"b"}`, "none"},
		{"value->>'s' = any('{a,b}')", `{"s":"b"}`, "row"}, {"key = 'other' and (value->>'q')::bigint > 1", `x`, "none"}, {"value->>'s' = key", `{"s":"k"}`, "row"},
		{"(value->>'q')::bigint + version = 9", `{"q":2}`, "row"}, {"value->>'q' = '1' or (value->>'q')::bigint = 2", `{"q":"1"}`, "row"},
	} {
		p, err := planned(t, "select key from regions.r where "+c.where)
		if err != nil {
			t.Errorf("%s: %v", c.where, err)
			continue
		}
		got := "none"
		if has, err := p.Region.Has(row(c.value)); err != nil {
			got = err.Code
		} else if has {
			got = "row"
		}
		if got != c.want {
			t.Errorf("%s of %s: %s, want %s", c.where, c.value, got, c.want)
		}
	}
}

// Sorted rows and groups are bounded; with a limit only so many are kept.
func TestGatherIsBounded(t *testing.T) {
	for _, c := range []struct {
		text  string
		value int
		fails bool
	}{
		{"select key from regions.r order by value->>'n'", 10, true}, {"select key from regions.r order by value->>'n' limit 10", 10, false}, {"select value->>'n', count(*) from regions.r group by 1", 10, true},
		{"select count(*), max(value->>'n') from regions.r", 10, false}, {"select key from regions.r order by version", 60_000, true}, {"select key from regions.r order by version limit 10", 60_000, false},
	} {
		p, err := planned(t, c.text)
		if err != nil {
			t.Fatal(err)
		}
		g := p.NewGather()
		for i := 0; i < MaxGathered+10 && err == nil && (c.value < 100 || i < 1000); i++ {
			value := fmt.Sprintf(`{"n":"%d","x":"%*d"}`, i, c.value, i)
			err = g.Add([]view.Value{view.TextValue(fmt.Sprint(i)), view.TextValue(value), view.IntValue(int64(i)), {}, view.IntValue(0)})
			if g.Bytes() > MaxGatheredBytes+100_000 {
				t.Fatalf("%s: %d bytes are kept", c.text, g.Bytes())
			}
		}
		if (err != nil) != c.fails || err != nil && err.Code != StateTooLarge {
			t.Errorf("%s: %v, want a failure: %v", c.text, err, c.fails)
		}
	}
}
