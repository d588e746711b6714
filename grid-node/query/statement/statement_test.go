package statement_test

import (
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ordergrid/ordergrid/grid-node/query"
	"github.com/ordergrid/ordergrid/grid-node/query/querytest"
	"github.com/ordergrid/ordergrid/grid-node/query/statement"
	"github.com/ordergrid/ordergrid/grid-node/view"
)

var columns = statement.Columns(view.Extra{Tag: uint32(querytest.Desk), Name: "Desk", Kind: view.Text}, view.Extra{Tag: uint32(querytest.Limit), Name: "Cap", Kind: view.Decimal})

func someOrders(t *testing.T) *querytest.Case {
	t.Helper()
	c, err := querytest.New(0, 1<<16)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	if err := c.Add(rand.New(rand.NewPCG(3, 3)), 600); err != nil {
		t.Fatal(err)
	}
	return c
}

func parse(t *testing.T, s string) *statement.Statement {
	t.Helper()
	st, err := statement.Parse(s, columns)
	if err != nil {
		t.Fatalf("%s: %v", s, err)
	}
	return st
}

// TestConditions holds conditions against a loop over the rows. What a row does not have is not equal and not unequal.
func TestConditions(t *testing.T) {
	c := someOrders(t)
	one := c.Rows[300]
	price, _ := view.ParseNumber("100.5")
	text := func(f view.Field, is func(string) bool) func(querytest.Row) bool {
		return func(r querytest.Row) bool { v := r.Values[f]; return v.Kind == view.Text && is(v.Text) }
	}
	above := func(r querytest.Row) bool {
		v := r.Values[view.Price]
		return v.Kind == view.Decimal && v.Number.Compare(price) > 0
	}
	at := time.Unix(0, one.Values[view.Received].Int).UTC()
	for s, want := range map[string]func(r querytest.Row) bool{
		"Symbol = 'IBM'":            text(view.Symbol, func(s string) bool { return s == "IBM" }),
		"symbol <> 'IBM'":           text(view.Symbol, func(s string) bool { return s != "IBM" }),
		"not symbol = 'IBM'":        text(view.Symbol, func(s string) bool { return s != "IBM" }),
		"Account <> 'house'":        text(view.Account, func(s string) bool { return s != "house" }),
		"not (Account = 'house')":   text(view.Account, func(s string) bool { return s != "house" }),
		"Account in ('house', 'x')": text(view.Account, func(s string) bool { return s == "house" }),
		"Account not in ('house')":  text(view.Account, func(s string) bool { return s != "house" }),
		"Account is null":           func(r querytest.Row) bool { return r.Values[view.Account].Kind == view.Null },
		"not Account is null":       func(r querytest.Row) bool { return r.Values[view.Account].Kind != view.Null },
		"Account is not null":       func(r querytest.Row) bool { return r.Values[view.Account].Kind != view.Null },
		"Price > 100.5":             above,
		"not (Price <= 100.5)":      above,
		"Desk like 'd%'":            text(querytest.Desk, func(s string) bool { return strings.HasPrefix(s, "d") }),
		"Price > 100.5 and (Side = '1' or TimeInForce = '0')": func(r querytest.Row) bool {
			return above(r) && (r.Values[view.Side].Text == "1" || r.Values[view.TimeInForce].Text == "0")
		},
		"not (Price > 100.5 or Symbol = 'IBM')": func(r querytest.Row) bool {
			v, s := r.Values[view.Price], r.Values[view.Symbol]
			return v.Kind == view.Decimal && v.Number.Compare(price) <= 0 && s.Kind == view.Text && s.Text != "IBM"
		},
		"Seq between 10 and 20": func(r querytest.Row) bool { n := r.Values[view.Seq].Int; return n >= 10 && n <= 20 },
		"Received <= timestamp '" + at.Format(time.RFC3339Nano) + "'": func(r querytest.Row) bool {
			return r.Values[view.Received].Int <= one.Values[view.Received].Int
		},
		`"ClOrdID" = '` + strings.ReplaceAll(one.Values[view.ClOrdID].Text, "'", "''") + "'": func(r querytest.Row) bool {
			return r.Values[view.ClOrdID] == one.Values[view.ClOrdID]
		},
	} {
		st := parse(t, "SELECT Seq FROM orders WHERE "+s)
		got, err := query.Run(t.Context(), c.View, &st.Query, query.Limits{})
		if err != nil {
			t.Errorf("%s: %v", s, err)
			continue
		}
		var have, wanted []int64
		for _, row := range got.Rows {
			have = append(have, st.Row(row)[0].Int)
		}
		for _, r := range c.Rows {
			if r.Values != nil && r.Values[view.Seq].Kind != view.Null && want(r) {
				wanted = append(wanted, r.Values[view.Seq].Int)
			}
		}
		if !slices.Equal(have, wanted) {
			t.Errorf("%s: %d rows, want %d", s, len(have), len(wanted))
		}
		if len(wanted) == 0 || len(wanted) == len(c.Rows) {
			t.Errorf("%s: %d of %d rows: it tells nothing", s, len(wanted), len(c.Rows))
		}
	}
}

// TestColumnsOfAnswers: a row has what the select list asks for, in its order.
func TestColumnsOfAnswers(t *testing.T) {
	c := someOrders(t)
	for s, want := range map[string]string{
		"select Side, count(*) as n, Symbol, max(Price), count(*) from orders group by Symbol, Side order by n desc, 3 limit 2": "Side,n,Symbol,max_Price,count",
		"select max(Price) from orders;":                      "max_Price",
		"select ClOrdID id, Seq from orders":                  "",
		"select ClOrdID as id, Seq from orders order by id":   "id,Seq",
		"select Symbol from orders group by Symbol, Side":     "Symbol",
		"select State, Tag5001 from orders order by Price, 1": "State,Tag5001",
	} {
		st, err := statement.Parse(s, columns)
		if want == "" {
			if err == nil {
				t.Errorf("%s is taken", s)
			}
			continue
		}
		if err != nil || strings.Join(st.Names, ",") != want {
			t.Errorf("%s: %v, %v, want %s", s, st, err, want)
			continue
		}
		a, err := query.Run(t.Context(), c.View, &st.Query, query.Limits{})
		if err != nil || len(a.Rows) == 0 {
			t.Errorf("%s: %v", s, err)
			continue
		}
		row := st.Row(a.Rows[0])
		for i, name := range st.Names {
			if name == "Symbol" || name == "Side" {
				if of := a.Columns[st.Place[i]].Name; of != name || row[i].Kind != view.Text {
					t.Errorf("%s: %s is %v of column %s", s, name, row[i], of)
				}
			}
		}
	}
	if st := parse(t, "select * from orders"); len(st.Names) != len(columns) || st.Query.Limit != 0 {
		t.Errorf("%+v", st)
	}
}

// TestRefused: what is not understood is refused where it stands, with what is allowed.
func TestRefused(t *testing.T) {
	many := "select Seq from orders where " + strings.Repeat("Seq=1 or ", 5001) + "Side = '2'"
	deep := "select Seq from orders where " + strings.Repeat("(", 40) + "Side = '1'" + strings.Repeat(")", 40)
	for s, want := range map[string]string{
		"":                                                                "at character 1: the end of the statement, allowed: select",
		"update orders":                                                   `at character 1: "update", allowed: select`,
		"select Seq from trades":                                          `at character 17: "trades", allowed: orders`,
		"select Sec from orders":                                          `at character 8: "Sec", allowed: Seq, ClOrdID`,
		"select Seq, count(*) from orders":                                "at character 8: column Seq beside groups",
		"select Seq from orders where":                                    "at character 29: the end of the statement, allowed: the name of a column",
		"select Seq from orders where Price":                              "allowed: =, <>",
		"select Seq from orders where Price = 'a'":                        "at character 38: 'a', allowed: a number for Price",
		"select Seq from orders where Symbol = IBM":                       `at character 39: "IBM", allowed: a 'text' for Symbol`,
		"select Seq from orders where Symbol like '%M'":                   "allowed: a text, with % at its end",
		"select Seq from orders where Received > 'yesterday'":             "allowed: a time in UTC for Received",
		"select Seq from orders where Symbol = 'é' and Side ~ '1'":        "at character 52: '~'",
		"select Seq from orders where Symbol = 'IBM":                      "a quote that is not closed",
		"select Seq from orders limit 0":                                  "a whole number from 1 to 1048576",
		"select Seq from orders a, orders b":                              `at character 24: "a", allowed: where`,
		"select Seq from orders order by count(*)":                        "an aggregate that is not selected",
		"select count(*) from orders group by Symbol order by Side":       "column Side, allowed: columns of group by",
		"select Seq from orders where Seq = -1":                           "a whole number for Seq",
		"select Seq from orders where Symbol in (select Seq from orders)": `at character 41: "select"`,
		many:                       "at most 10000 conditions",
		deep:                       "at most 32 deep",
		strings.Repeat(" ", 1<<17): "a statement of 131072 bytes, allowed: at most 65536 bytes",
	} {
		_, err := statement.Parse(s, columns)
		var e *statement.Error
		if !errors.As(err, &e) || !strings.Contains(err.Error(), want) {
			t.Errorf("%.80s: %v, want %s", s, err, want)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add("select Seq, count(*) as n from orders where not (Price > 1.5 or Symbol in ('a', 'b''c')) and Account like 'x%' group by Seq order by 2 desc limit 5")
	f.Add(`select * from orders where "Side" is not null and Received between '2026-01-01' and '2026-01-02 10:00:00'`)
	f.Fuzz(func(t *testing.T, s string) {
		st, err := statement.Parse(s, columns)
		if err != nil {
			return
		}
		if len(st.Names) == 0 || len(st.Names) != len(st.Place) {
			t.Errorf("%q: %+v", s, st)
		}
		b := st.Query.Append(nil)
		if _, err := query.Decode(b, query.Limits{}); err != nil && !strings.Contains(err.Error(), "allowed") {
			t.Errorf("%q: %v", s, err)
		}
	})
}
