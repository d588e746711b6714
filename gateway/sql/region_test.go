package sql

import (
	"fmt"
	"strings"
	"testing"

	"github.com/ordergrid/ordergrid/grid-node/view"
)

// What is read of a region follows from conditions that every row has to meet.
func TestRegionPaths(t *testing.T) {
	for where, want := range map[string]string{
		"":                                                       "scan ''",
		"where key = 'a'":                                        "get [a]",
		"where 'a' = key and value <> 'x'":                       "get [a]",
		"where key in ('c', 'a', 'c')":                           "get [a c]",
		"where key = any('{b,a}')":                               "get [a b]",
		"where key = 'b' or key = 'a'":                           "get [a b]",
		"where key = 'a' and key in ('a','b')":                   "get [a]",
		"where key in ('a','b') and key = 'b'":                   "get [b]",
		"where key = 'a' or value = 'x'":                         "scan ''",
		"where not key = 'a'":                                    "scan ''",
		"where not (key <> 'a')":                                 "get [a]",
		"where key like 'ACC-1/%'":                               "scan 'ACC-1/'",
		"where key like 'a%' and key like 'ab%' and version > 3": "scan 'ab'",
		"where key like 'a%' or key like 'ab%'":                  "scan ''",
		"where key = ''":                                         "nothing",
		"where key = null":                                       "nothing",
		"where false":                                            "nothing",
		"where version = -1":                                     "nothing",
		"where key > 'a' limit 3":                                "scan ''",
	} {
		p, err := planned(t, "select key from regions.positions "+where)
		if err != nil || p.Region == nil || p.Region.Name != "positions" || len(p.Questions) > 0 {
			t.Errorf("%s: %+v, %v", where, p, err)
			continue
		}
		got := fmt.Sprintf("scan '%s'", p.Region.Prefix)
		if p.Region.Get {
			got = fmt.Sprintf("get %v", p.Region.Keys)
		}
		if !p.Region.Reads() {
			got = "nothing"
		}
		if got != want {
			t.Errorf("%s: %s, want %s", where, got, want)
		}
	}
}

// Which entries are rows: one that never expires, and one that does.
func TestRegionRows(t *testing.T) {
	forever := []view.Value{view.TextValue("a"), view.TextValue("x"), view.IntValue(7), {}, view.IntValue(1)}
	expires := []view.Value{view.TextValue("b"), view.TextValue(""), view.IntValue(9), view.TimeValue(1_763_719_200_000_000_123), view.IntValue(0)} // 2025-11-21 10:00:00 UTC
	for where, want := range map[string][2]bool{
		"key >= 'a'":                             {true, true},
		"key > 'a'":                              {false, true},
		"key between 'a' and 'az'":               {true, false},
		"value = ''":                             {false, true},
		"value <> ''":                            {true, false},
		"value like 'x%'":                        {true, false},
		"version in (7, 8)":                      {true, false},
		"version < 8.5":                          {true, false},
		"expires is null":                        {true, false},
		"expires is not null":                    {false, true},
		"expires < now()":                        {false, true},
		"not expires < now()":                    {false, false},
		"(expires < now()) is unknown":           {true, false},
		"(expires < now()) is not true":          {true, false},
		"expires = '2025-11-21 10:00:00+00'":     {false, true},
		"partition = 1 or value = ''":            {true, true},
		"not (partition = 1 and version = 7)":    {false, true},
		"partition = 1 and version = 7 and true": {true, false},
		"key not in ('a', 'c')":                  {false, true},
	} {
		p, err := planned(t, "select * from regions.r where "+where)
		if err != nil {
			t.Errorf("%s: %v", where, err)
			continue
		}
		var got [2]bool
		for i, row := range [][]view.Value{forever, expires} {
			if got[i], err = p.Region.Has(row); err != nil {
				t.Errorf("%s: %v", where, err)
			}
		}
		if got != want {
			t.Errorf("%s: %v, want %v", where, got, want)
		}
	}
	p, err := planned(t, "select partition, 'c' as c, expires, key::varchar k from regions.r")
	if err != nil {
		t.Fatal(err)
	}
	row, _, err := p.Encode(nil, nil, expires, make([]int16, 4))
	if err != nil || fmt.Sprintf("%s", row) != "[0 c 2025-11-21 10:00:00+00 b]" {
		t.Errorf("a row: %s, %v", row, err)
	}
	if p, err = planned(t, "select value from regions.r"); err != nil {
		t.Fatal(err)
	}
	if row, _, _ = p.Encode(nil, nil, expires, make([]int16, 1)); row[0] == nil {
		t.Error("a value of no bytes is null")
	}
	if p, err = planned(t, "select key, value, expires from regions.r"); err != nil {
		t.Fatal(err)
	}
	if row, _, _ = p.Encode(nil, nil, forever, make([]int16, 4)); row[2] != nil {
		t.Errorf("a value that stays: %s", row)
	}
}

func TestRegionRefusals(t *testing.T) {
	for text, want := range map[string]string{
		"select symbol from regions.r":                       `42703 8 column "symbol" does not exist`,
		"select x.key from regions.r x where r.key = ''":     "42P01",
		`select key from regions."Positions"`:                `42P01 17 relation "regions.Positions" does not exist`,
		`select key from regions."a b"`:                      "42P01",
		"select key from regions." + strings.Repeat("r", 49): "42P01",
		"select key from positions":                          `42P01 17 relation "positions" does not exist`,
		"select key from regions.r, orders":                  "0A000",
		"select key from regions.r where key = version":      "42883 37 operator does not exist: text = bigint",
		"select key, count(*) from regions.r":                `42803 8 column "r.key" must appear in the GROUP BY clause`,
		"select value->'a' from regions.r order by 1":        "42883 43 could not identify an ordering operator for type json",
		"select distinct value->'a' from regions.r":          "42883 17 could not identify an equality operator for type json",
		"select key from regions.r where value->'a' = '1'":   "42883 44 operator does not exist: json = unknown",
		"select (value->'a')::bigint from regions.r":         "42846 20 cannot cast type json to bigint",
		"select version->>'a' from regions.r":                "42883 15 operator does not exist: bigint ->> ",
		"select value->>1.5 from regions.r":                  "42883 13 operator does not exist: text ->> numeric",
		"select value#>>1 from regions.r":                    "42883 13",
		"select value::jsonb from regions.r":                 "0A000 15 type jsonb",
		"select (value->>'a')::date from regions.r":          "0A000 21 a cast of text to date",
		"select sum(value->>'a') from regions.r":             "42883 8 function sum(text) does not exist",
		"select avg(version) from regions.r":                 "0A000 8 aggregate avg",
		"select sum(count(*)) from regions.r":                "42803 12 aggregate function calls cannot be nested",
		"select key from regions.r where value->>'a'":        "42804 33 argument of WHERE must be type boolean, not type text",
		"select key from regions.r where key = 1":            "42883",
		"select key from regions.r limit -1":                 "2201W",
		"update orders set seq = 1":                          "25006",
		"insert into orders values ('a', 'b')":               "25006",
	} {
		_, err := planned(t, text)
		got := ""
		if err != nil {
			got = err.Code
			if strings.Contains(want, " ") {
				got = fmt.Sprintf("%s %d %s", err.Code, err.Position(text), err.Message)
			}
		}
		if !strings.HasPrefix(got, want) || want == "" && got != "" {
			t.Errorf("%s: %s (%v), want %q", text, got, err, want)
		}
	}
}
