package query_test

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"github.com/ordergrid/ordergrid/grid-node/query"
	"github.com/ordergrid/ordergrid/grid-node/view"
)

func TestQuestionsKeepTheirBytes(t *testing.T) {
	c, r := newCase(t, 1, 50, false), rand.New(rand.NewPCG(1, 1))
	for range 2000 {
		q := c.Question(r)
		if r.IntN(2) == 0 {
			q.From = r.Uint64()
			q.After = &query.Cursor{At: r.Uint64(), Base: 3, Asked: r.Uint64(), Seq: 4, Keys: []view.Value{view.TextValue("x"), {}, view.IntValue(-5)}}
		}
		b := q.Append(nil)
		got, err := query.Decode(b, query.Limits{})
		if err != nil || !reflect.DeepEqual(got, q) {
			t.Fatalf("%v: %+v, want %+v", err, got, q)
		}
		if n := r.IntN(len(b)); n > 0 {
			if _, err := query.Decode(b[:n], query.Limits{}); err == nil {
				t.Fatalf("%d of %d bytes were taken", n, len(b))
			}
		}
		if _, err := query.Decode(append(b, 0), query.Limits{}); err == nil {
			t.Fatal("a byte too many was taken")
		}
	}
}

func deep(n int) *query.Expr {
	e := query.Expr{Op: query.Present, Field: view.Price}
	for range n {
		e = query.Expr{Op: query.Not, Args: []query.Expr{e}}
	}
	return &e
}

// TestHostileQuestionsAreRefused has what is too large in each way, sent and asked.
func TestHostileQuestionsAreRefused(t *testing.T) {
	c := newCase(t, 1, 50, false)
	many := query.Expr{Op: query.Or}
	for range 100_000 {
		many.Args = append(many.Args, query.Expr{Op: query.Eq, Field: view.Symbol, Values: []view.Value{view.TextValue("x")}})
	}
	key := strings.Repeat("k", 64<<10+1)
	number := func(s string) view.Value {
		n, err := view.ParseNumber(s)
		if err != nil {
			t.Fatal(err)
		}
		return view.NumberValue(n)
	}
	eq := func(f view.Field, v view.Value) *query.Expr {
		return &query.Expr{Op: query.Eq, Field: f, Values: []view.Value{v}}
	}
	rows := []view.Field{view.Seq}
	zeros := number("1")
	zeros.Number.Lo, zeros.Number.Scale = 10, 1
	for want, q := range map[string]*query.Query{
		"more than 10000 operators":           {Select: rows, Where: &many},
		"more than 32 deep":                   {Select: rows, Where: deep(32)},
		"field is 77, allowed: Seq":           {Select: rows, Where: eq(77, view.TextValue("x"))},
		"Price is \"1\" (text), allowed":      {Select: rows, Where: eq(view.Price, view.TextValue("1"))},
		"Symbol is 1 (decimal), allowed":      {Select: rows, Where: eq(view.Symbol, number("1"))},
		"Session is -1 (integer), allowed: 0": {Select: rows, Where: eq(view.Session, view.IntValue(-1))},
		"State is \"open\" (text), allowed":   {Select: rows, Where: eq(view.State, view.TextValue("open"))},
		"Side is \"12\" (text), allowed: one": {Select: rows, Where: eq(view.Side, view.TextValue("12"))},
		"decimals without zeros":              {Select: rows, Where: eq(view.Price, zeros)},
		"prefix of text fields":               {Select: rows, Where: &query.Expr{Op: query.Prefix, Field: view.Price, Values: []view.Value{number("1")}}},
		"range of 1 values":                   {Select: rows, Where: &query.Expr{Op: query.Range, Field: view.Price, Values: []view.Value{number("1")}}},
		"operator 9":                          {Select: rows, Where: &query.Expr{Op: 9}},
		"filters only, one of not":            {Select: rows, Where: &query.Expr{Op: query.Not}},
		"select: no field":                    {},
		"fields of rows in a question":        {Select: rows, GroupBy: []view.Field{view.Symbol}},
		"ClOrdID is unique":                   {GroupBy: []view.Field{view.ClOrdID}},
		"sum of Symbol is text":               {Aggregates: []query.Aggregate{{Func: query.Sum, Field: view.Symbol}}},
		"min of Symbol is text":               {Aggregates: []query.Aggregate{{Func: query.Min, Field: view.Symbol}}},
		"0: it counts rows":                   {Aggregates: []query.Aggregate{{Func: query.Count, Field: view.Symbol}}},
		"at most 4":                           {GroupBy: make([]view.Field, 5)},
		"limit: 10001":                        {Select: rows, Limit: 10001},
		"65 fields":                           {Select: make([]view.Field, 65)},
		"aggregates sort groups":              {Select: rows, OrderBy: []query.Order{{Aggregate: 1}}},
		"fields that groups are made by":      {GroupBy: []view.Field{view.Symbol}, OrderBy: []query.Order{{Field: view.Price}}},
		"of another question":                 {Select: rows, After: &query.Cursor{At: 1}},
	} {
		err := q.Check(c.View, query.Limits{})
		if refused := (*query.Error)(nil); !errors.As(err, &refused) || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "allowed: ") {
			t.Errorf("%v, want an error with %q", err, want)
		}
	}
	for what, b := range map[string][]byte{
		"100,000 terms": (&query.Query{Where: &many}).Append(nil),
		"40 deep":       (&query.Query{Where: deep(40)}).Append(nil),
		"a long text":   (&query.Query{Where: eq(view.Symbol, view.TextValue(key))}).Append(nil),
		"2 MiB":         make([]byte, 2<<20),
		"nothing":       {},
		"a huge count":  {1, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 0x0f},
		"a long number": {1, 0, 0x80, 0},
		"version 2":     {2, 0, 0, 0, 0, 0, 0, 0},
	} {
		if _, err := query.Decode(b, query.Limits{}); err == nil {
			t.Errorf("%s was taken", what)
		}
	}
}

func FuzzDecode(f *testing.F) {
	c, r := newCase(f, 1, 50, false), rand.New(rand.NewPCG(1, 1))
	for range 50 {
		f.Add(c.Question(r).Append(nil))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		q, err := query.Decode(b, query.Limits{})
		if err != nil {
			return
		}
		if got := q.Append(nil); !bytes.Equal(got, b) {
			t.Fatalf("%x is read and written as %x", b, got)
		}
		x, s, err := query.Open(c.View, q, query.Limits{})
		if err != nil {
			return
		}
		defer s.Release()
		for {
			if done, err := x.Step(100); done || err != nil {
				break
			}
		}
		if len(x.Explain()) > 20_000 {
			t.Fatal("an explanation of more than 20,000 bytes")
		}
	})
}

// TestRowsOfOneWidth: rows have as many values each, and no more than there are bytes.
func TestRowsOfOneWidth(t *testing.T) {
	two := []view.Value{view.TextValue("IBM"), view.IntValue(7)}
	b := query.AppendRow(query.AppendRow(nil, two), two)
	if rows, err := query.DecodeRows(b, 2); err != nil || len(rows) != 2 || rows[1][0] != two[0] || rows[1][1] != two[1] {
		t.Fatalf("read %v, %v", rows, err)
	}
	for _, bad := range []struct {
		b []byte
		n int
	}{{query.AppendRow(b, two[:1]), 3}, {b, 1}, {b, 3}, {b, -1}, {b, 1 << 40}, {[]byte{0xff, 0xff, 0x7f}, 1}, {b[:len(b)-1], 2}} {
		if rows, err := query.DecodeRows(bad.b, bad.n); err == nil {
			t.Errorf("%d rows in %x: read %v", bad.n, bad.b, rows)
		}
	}
}
