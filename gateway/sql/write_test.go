package sql

import (
	"fmt"
	"strings"
	"testing"

	"github.com/ordergrid/ordergrid/grid-node/order"
)

// rowsOf are so many rows of VALUES.
func rowsOf(n int) string {
	rows := make([]string, n)
	for i := range rows {
		rows[i] = fmt.Sprintf("('%d','1')", i)
	}
	return strings.Join(rows, ",")
}

// What no region takes is refused before anything is sent, and says which column, what it was given and what is allowed.
func TestWriteRefusals(t *testing.T) {
	keys := "'a'"
	for i := range MaxChanges {
		keys += fmt.Sprintf(",'%d'", i)
	}
	for _, c := range []struct {
		statement, code string
		position        int
		text            string
	}{
		{"insert into regions.r values " + rowsOf(MaxChanges+1) + " on conflict do nothing", StateTooLarge, 1, "statement has 1001 rows, allowed: 1000"},
		{"update regions.r set value = '' where key in (" + keys + ")", StateTooLarge, 0, "statement has 1001 keys, allowed: 1000"},
		{"delete from regions.r where key in (" + keys + ")", StateTooLarge, 0, "statement has 1001 keys, allowed: 1000"},
		{"insert into regions.r values ('" + strings.Repeat("k", order.MaxRegionPair) + "', 'v')", "23514", 0, fmt.Sprintf("key has %d bytes and value 1, allowed: a key of 1 or more, together at most %[1]d", order.MaxRegionPair)},
		{"insert into regions.r values ('', 'v')", "23514", 0, "key has 0 bytes and value 1, allowed: a key of 1 or more"},
		{"insert into regions.r values ('k', null)", "23502", 0, `null value in column "value"`},
		{"insert into regions.r values (default, 'v')", "23502", 0, `null value in column "key"`},
		{"insert into regions.r (key, value, expires) values ('k', 'v', 5)", StateMismatch, 63, `column "expires" is of type timestamp with time zone but expression is of type integer; Column expires takes a time`},
		{"insert into regions.r (key, value, expires) values ('k', 'v', 'noon')", StateDatetime, 63, `timestamp with time zone: "noon"; Column expires takes a time`},
		{"update regions.r set expires = true where key = 'k'", StateMismatch, 32, `column "expires" is of type timestamp with time zone but expression is of type boolean`},
		{"update regions.r set value = value::bigint + 'x' where key = 'k'", StateText, 46, `invalid input syntax for type bigint: "x"`},
		{"insert into regions.r (key, value, version) values ('k', 'v', 5)", "428C9", 36, `non-DEFAULT value into column "version"; The grid gives it.`},
		{"insert into regions.r (key, value, more) values ('k', 'v', 5)", StateColumn, 36, `column "more" of relation "r" does not exist`},
		{"insert into regions.r (key, value) values ('k', 'v', 'w')", StateSyntax, 54, "INSERT has more expressions than target columns"},
		{"insert into regions.r (key, value) values ('k')", StateSyntax, 29, "INSERT has more target columns than expressions"},
		{"insert into regions.r values ('a', '1'), ('b', '1')", StateUnsupported, 1, "Insert row by row, or add ON CONFLICT"},
		{"insert into regions.r values ('a', '1'), ('a', '1') on conflict (key) do update set value = excluded.value", "21000", 0, "cannot affect row a second time"},
		{"insert into regions.r values ('a', '1'), ('a', '1'), (null, '1') on conflict (key) do update set value = excluded.value", "21000", 0, "cannot affect row a second time"},
		{"insert into regions.r values (null, '1'), ('a', key) on conflict do nothing", StateColumn, 49, `column "key" does not exist`},
		{"update regions.r set value = '' where key = 'k' and version = '99999999999999999999.99'", StateRange, 0, `value "99999999999999999999.99" is out of range`},
		{"insert into regions.r values ('a', key)", StateColumn, 36, `column "key" does not exist`},
		{"insert into regions.r select key, value from regions.s", StateUnsupported, 23, "VALUES"},
		{"insert into only regions.r values ('a', '1')", StateSyntax, 13, `at or near "only"`},
		{"insert into regions.r values ('a', '1') limit 1", StateUnsupported, 41, "LIMIT behind VALUES"},
		{"delete from regions . r . s where key = 'a'", StateUnsupported, 25, "a database before a table"},
		{"delete from regions.r where key = 'a' returning key, nulls last", StateSyntax, 54, `at or near "nulls"`},
		{"update regions.r set value = ''", StateUnsupported, 1, "UPDATE without WHERE key = ..."},
		{"delete from regions.r where value = ''", StateUnsupported, 35, "DELETE of entries that WHERE does not name"},
		{"delete from regions.r where key = 'a' or value = 'b'", StateUnsupported, 39, "further conditions with AND"},
		{"update regions.r set key = 'b' where key = 'a'", StateUnsupported, 22, "SET key"},
		{"update orders set price = 1", StateReadOnly, 0, "are of regions, with the permission Write"},
	} {
		_, err := planned(t, c.statement)
		if err == nil {
			t.Errorf("%.100s: it is planned", c.statement)
			continue
		}
		if said := err.Message + "; " + err.Hint; err.Code != c.code || c.position != 0 && err.Position(c.statement) != c.position || !strings.Contains(said, c.text) {
			t.Errorf("%.100s: %s %q at %d, expected %s at %d with %q", c.statement, err.Code, said, err.Position(c.statement), c.code, c.position, c.text)
		}
	}
	for _, statement := range []string{
		"insert into regions.r values " + rowsOf(MaxChanges) + " on conflict do nothing",
		"insert into regions.r values ('" + strings.Repeat("k", 60) + "', '" + strings.Repeat("v", order.MaxRegionPair-60) + "')",
	} {
		if _, err := planned(t, statement); err != nil {
			t.Errorf("%.100s, which is allowed: %v", statement, err)
		}
	}
}

// A parameter that is no value of its type is told by its number.
func TestWrongParameterIsNamed(t *testing.T) {
	s, c, env := world(t)
	all, err := Parse("insert into regions.r (key, value, expires) values ($1, $2, $3)", Bounds{}, c)
	if err != nil {
		t.Fatal(err)
	}
	p, err := Prepare(all[0].Statement, s, env, nil)
	if err != nil {
		t.Fatal(err)
	}
	_, err = p.Bind(env, [][]byte{[]byte("k"), []byte("v"), []byte("noon")}, nil)
	if err == nil || err.Code != StateDatetime || !strings.Contains(err.Message, `"noon"`) || err.Detail != "It is parameter $3, of type timestamp with time zone." {
		t.Errorf("noon as a time: %+v", err)
	}
	if _, err = p.Bind(env, [][]byte{[]byte("k"), []byte("v\xff"), nil}, nil); err == nil || err.Code != StateNoBytes || !strings.Contains(err.Message, "$2") {
		t.Errorf("bytes that are no UTF-8: %+v", err)
	}
	if _, err = p.Bind(env, [][]byte{[]byte(strings.Repeat("k", 64<<10)), []byte("v"), nil}, nil); err == nil || err.Code != "23514" || !strings.Contains(err.Message, "key has 65536 bytes") {
		t.Errorf("a key of 64 KiB: %+v", err)
	}
}

// What is wrong with a row counts when all values are there, in the order of the rows: a parameter may be what is wrong first.
func TestRowsAreJudgedWithTheirValues(t *testing.T) {
	s, c, env := world(t)
	all, err := Parse("insert into regions.r (key, value) values ('a', '17'), ($1, $2), (null, '2') on conflict (key) do update set value = excluded.value", Bounds{}, c)
	if err != nil {
		t.Fatal(err)
	}
	p, err := Prepare(all[0].Statement, s, env, nil)
	if err != nil || len(p.Params) != 2 {
		t.Fatalf("prepared with %v: %v", p, err)
	}
	for key, code := range map[string]string{"a": "21000", "b": "23502"} {
		if _, err = p.Bind(env, [][]byte{[]byte(key), []byte("2")}, nil); err == nil || err.Code != code {
			t.Errorf("key %s: %+v, expected %s", key, err, code)
		}
	}
}
