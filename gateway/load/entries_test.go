package load

import (
	"bytes"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/parquet-go/parquet-go"
)

// position is a row of the tests of entries.
type position struct {
	Account string    `parquet:"account"`
	Symbol  string    `parquet:"symbol"`
	Qty     int64     `parquet:"qty"`
	Note    *string   `parquet:"note,optional"`
	At      time.Time `parquet:"at,timestamp(microsecond)"`
	Day     int32     `parquet:"day,date"`
	Open    bool      `parquet:"open"`
}

var positionEntries = Entries{Key: []string{"account", "symbol"}, Columns: map[string]string{"qty": "quantity", "symbol": "symbol"}}

func positions(n int) (all []position) {
	for i := range n {
		p := position{Account: fmt.Sprintf("ACC-%d", i/3), Symbol: []string{"VOD.L", "BP.L", "<A&B>"}[i%3], Qty: int64(i * 100),
			At: dayOne.Add(time.Duration(i) * 50 * time.Millisecond), Day: int32(20000 + i), Open: i%2 == 0}
		if i%2 == 0 {
			note := fmt.Sprintf("n \"%d\"", i)
			p.Note = &note
		}
		all = append(all, p)
	}
	return all
}

// object is the value of the position by positionEntries.
func (p *position) object() string {
	note := ""
	if p.Note != nil {
		note = fmt.Sprintf(`,"note":%q`, *p.Note)
	}
	return fmt.Sprintf(`{"symbol":%q,"quantity":"%d"%s,"at":%q,"day":%q,"open":"%v"}`, p.Symbol, p.Qty, note, p.at(), p.day(), p.Open)
}

func (p *position) at() string { return p.At.Format(time.RFC3339Nano) }

func (p *position) day() string {
	return time.Unix(int64(p.Day)*24*3600, 0).UTC().Format(time.DateOnly)
}

func (p *position) csv() string {
	note := ""
	if p.Note != nil {
		note = `"` + strings.ReplaceAll(*p.Note, `"`, `""`) + `"`
	}
	return fmt.Sprintf("%s,%s,%d,%s,%s,%s,%v\n", p.Account, p.Symbol, p.Qty, note, p.at(), p.day(), p.Open)
}

func positionsCSV(all []position) string {
	var b strings.Builder
	b.WriteString("account,symbol,qty,note,at,day,open\n")
	for i := range all {
		b.WriteString(all[i].csv())
	}
	return b.String()
}

// The same table as CSV and as Parquet has the same entries, and lines of JSON those of their own types.
func TestEntriesAgree(t *testing.T) {
	all := positions(600)
	table := filepath.Join(t.TempDir(), "p.parquet")
	if err := parquet.WriteFile(table, all); err != nil {
		t.Fatal(err)
	}
	var lines strings.Builder
	for i := range all {
		p := &all[i]
		fmt.Fprintf(&lines, " { \"account\": %q, \"symbol\": %q, \"qty\": %d , \"deep\": { \"x\": [1, true, null] } }\n\n", p.Account, p.Symbol, p.Qty)
	}
	for _, name := range []string{write(t, "p.csv", positionsCSV(all)), table, write(t, "p.jsonl", lines.String())} {
		got := rows(t, name, positionEntries)
		if len(got) != len(all) {
			t.Fatalf("%s: %d rows, want %d", name, len(got), len(all))
		}
		for i, r := range got {
			want := all[i].object()
			if strings.HasSuffix(name, "jsonl") {
				want = fmt.Sprintf(`{"symbol":%q,"quantity":%d,"deep":{"x":[1,true,null]}}`, all[i].Symbol, all[i].Qty)
			}
			if key := all[i].Account + "/" + all[i].Symbol; r.Err != nil || string(r.Key) != key || string(r.Message) != want {
				t.Fatalf("%s: %s: %q = %s (%v), want %q = %s", name, r.Where, r.Key, r.Message, r.Err, key, want)
			}
		}
	}
}

// Keys and values by name, and values that stand for themselves.
func TestEntriesByName(t *testing.T) {
	for _, c := range []struct {
		file, text string
		e          Entries
		key, value string
	}{
		{"a.csv", "key,value\nk,\"v,\xff\"\n", Entries{}, "k", "v,\xff"},
		{"a.csv", "value,key\n,k\n", Entries{}, "k", ""},
		{"a.csv", "id,body,note\n1,b,n\n", Entries{Key: []string{"id"}, Value: "body", Columns: map[string]string{"note": "-"}}, "1", "b"},
		{"a.csv", "key,value,n\nk,v,1\n", Entries{Columns: map[string]string{"value": "value"}}, "k", `{"value":"v","n":"1"}`},
		{"a.csv", "a,b,c\n1,2,3\n", Entries{Key: []string{"b", "a"}, Joint: "::"}, "2::1", `{"c":"3"}`},
		{"a.jsonl", `{"key":"k","value":"v\n"}`, Entries{}, "k", "v\n"},
		{"a.jsonl", `{"key":17,"value":{"a": 1.50}}`, Entries{}, "17", `{"a":1.50}`},
		{"a.jsonl", `{"key":true,"valueBase64":"/wBx"}`, Entries{}, "true", "\xff\x00q"},
		{"a.jsonl", `{"id":"k","a":null,"b":"<"}`, Entries{Key: []string{"id"}, Columns: map[string]string{"there is none": "x"}}, "k", `{"a":null,"b":"<"}`},
	} {
		all := rows(t, write(t, c.file, c.text), c.e)
		if len(all) != 1 || all[0].Err != nil || string(all[0].Key) != c.key || string(all[0].Message) != c.value {
			t.Errorf("%q as %+v: %+v, want %q = %q", c.text, c.e, all, c.key, c.value)
		}
	}
}

// What cannot be loaded says so before the first row.
func TestBadEntries(t *testing.T) {
	for _, c := range []struct {
		file, text string
		e          Entries
		want       string
	}{
		{"a.csv", "id,value\n", Entries{}, `column "key" of the key is not there, allowed: id, value`},
		{"a.csv", "key,v\n", Entries{Value: "value"}, `column "value" of the value is not there`},
		{"a.csv", "key,value,note\n", Entries{}, `column "note" is not loaded, because the value is column "value"; leave it out with a mapping note=-`},
		{"a.csv", "key\n", Entries{}, "no column is the value"},
		{"a.csv", "key,a,a\n", Entries{}, `column "a" is there twice`},
		{"a.csv", "key,a,b\n", Entries{Columns: map[string]string{"a": "b"}}, `column "b" is "b" of the value, as another column is`},
		{"a.csv", "key,a\n", Entries{Columns: map[string]string{"x": "-"}}, `mapping of column "x": there is no such column, allowed: key, a`},
		{"a.csv", "", Entries{}, "a first line with the names"},
		{"a.fix", "", Entries{}, `format: value "fix", allowed: csv, parquet, fix for orders, jsonl for values`},
	} {
		src, err := Open(t.Context(), write(t, c.file, c.text), "", "", c.e)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q as %+v: source %v, error %v, want %q", c.text, c.e, src, err, c.want)
		}
	}
	if _, err := Open(t.Context(), write(t, "a.jsonl", ""), "", "", Mapping{}); err == nil || !strings.Contains(err.Error(), `value "jsonl"`) {
		t.Errorf("orders as JSON: %v", err)
	}
}

// A row that is no entry is refused, with where it is and why, and the next one is read.
func TestBadRowsOfEntries(t *testing.T) {
	two := Entries{Key: []string{"a", "b"}}
	for _, c := range []struct {
		file, text, next string
		e                Entries
		want             string
	}{
		{"a.csv", "a,b,c\n1,2\n", "x,y,z\n", two, "it has 2 columns, allowed: 3"},
		{"a.csv", "a,b,c\n,2,3\n", "x,y,z\n", two, `column "a" of the key is empty`},
		{"a.csv", "a,b,c\n1/1,2,3\n", "x,y,z\n", two, `column "a" of the key is "1/1", allowed: text without "/"`},
		{"a.csv", "a,b,c\n1,2,\xff\n", "x,y,z\n", two, `column "c" is not UTF-8`},
		{"a.jsonl", "{\"a\":1\n", `{"a":"x","b":"y","c":1}`, two, "unexpected EOF"},
		{"a.jsonl", "[1]\n", `{"a":"x","b":"y","c":1}`, two, "it is no JSON object"},
		{"a.jsonl", "{\"a\":1,\"b\":2,\"c\":3} {}\n", `{"a":"x","b":"y","c":1}`, two, "something follows the object"},
		{"a.jsonl", "{\"a\":1,\"b\":{},\"c\":3}\n", `{"a":"x","b":"y","c":1}`, two, `member "b" of the key is {}, allowed: a string, number or bool`},
		{"a.jsonl", "{\"a\":1,\"c\":3}\n", `{"a":"x","b":"y","c":1}`, two, `column "b" of the key is not there`},
		{"a.jsonl", "{\"a\":1,\"b\":2,\"a\":3}\n", `{"a":"x","b":"y","c":1}`, two, `column "a" is there twice`},
		{"a.jsonl", "{\"a\":1,\"b\":2,\"c\":\"\xff\"}\n", `{"a":"x","b":"y","c":1}`, two, "it is not UTF-8"},
		{"a.jsonl", "{\"key\":1,\"valueBase64\":\"?\"}\n", `{"key":"x/y","c":1}`, Entries{}, `member "valueBase64": illegal base64`},
		{"a.jsonl", "{\"key\":1,\"valueBase64\":null}\n", `{"key":"x/y","c":1}`, Entries{}, `member "valueBase64" is null, allowed: a string of standard Base64`},
		{"a.jsonl", "{\"key\":1,\"valueBase64\":true}\n", `{"key":"x/y","c":1}`, Entries{}, `member "valueBase64" is true`},
		{"a.jsonl", "{\"key\":1,\"valueBase64\":1234}\n", `{"key":"x/y","c":1}`, Entries{}, `member "valueBase64" is 1234`},
	} {
		all := rows(t, write(t, c.file, c.text+c.next), c.e)
		if len(all) != 2 || all[0].Err == nil || !strings.Contains(all[0].Err.Error(), c.want) || all[0].Key != nil {
			t.Errorf("%q: %+v, want %s", c.text, all, c.want)
		} else if all[1].Err != nil || string(all[1].Key) != "x/y" {
			t.Errorf("%q: the row behind it: %+v", c.text, all[1])
		}
	}
}

// A line that no entry is as long as ends the load, before it is in memory as a whole.
func TestLineTooLong(t *testing.T) {
	src := openAs(t, write(t, "a.jsonl", `{"key":"`+strings.Repeat("k", longestObject)+`"}`), Entries{})
	if _, err := src.Next(); err == nil || !strings.Contains(err.Error(), "line 1 has more than 524288 bytes, allowed: an object a line") {
		t.Errorf("error %v", err)
	}
}

// Another mapping of the same source is another load: its keys are others.
func TestStateNamesTheMapping(t *testing.T) {
	name := write(t, "a.csv", "key,a\nk,1\n")
	one, two := openAs(t, name, Entries{}).ID(), openAs(t, name, Entries{Columns: map[string]string{"a": "b"}}).ID()
	if one == two || !bytes.HasPrefix([]byte(one), []byte("a.csv, ")) {
		t.Errorf("%q and %q", one, two)
	}
}
