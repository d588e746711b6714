package load

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/parquet-go/parquet-go"

	"github.com/ordergrid/ordergrid/client"
	"github.com/ordergrid/ordergrid/e2e/downstream"
	"github.com/ordergrid/ordergrid/e2e/testgrid"
	"github.com/ordergrid/ordergrid/grid-node/order"
)

// record is one order of the tests, with the columns of a table.
type record struct {
	ClOrdID      string    `parquet:"cl_ord_id"`
	Symbol       string    `parquet:"symbol"`
	Side         int32     `parquet:"side"`
	OrderQty     int64     `parquet:"order_qty"`
	Price        int64     `parquet:"price,decimal(2:18)"`
	TransactTime time.Time `parquet:"transact_time,timestamp(millisecond)"`
	Account      *string   `parquet:"account,optional"`
}

var (
	dayOne  = time.Date(2026, 1, 2, 8, 0, 0, 250e6, time.UTC)
	mapping = Mapping{Set: map[string]string{"OrdType": "2"}}
)

func records(n int) (all []record) {
	for i := range n {
		r := record{ClOrdID: fmt.Sprintf("L%06d", i), Symbol: []string{"VOD.L", "BARC.L", "BP.L"}[i%3], Side: int32(1 + i%2), OrderQty: int64(100 * (i + 1)), Price: int64(12345 + i), TransactTime: dayOne.Add(time.Duration(i) * time.Second)}
		if i%2 == 1 {
			a := fmt.Sprintf("ACC-%d", i%7)
			r.Account = &a
		}
		all = append(all, r)
	}
	return all
}

const heading = "cl_ord_id,symbol,side,order_qty,price,transact_time,account\n"

func (r *record) csv() string {
	account := ""
	if r.Account != nil {
		account = *r.Account
	}
	return fmt.Sprintf("%s,%s,%d,%d,%d.%02d,%s,%s\n", r.ClOrdID, r.Symbol, r.Side, r.OrderQty, r.Price/100, r.Price%100, r.TransactTime.Format("2006-01-02 15:04:05.000+00"), account)
}

func write(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func csvOf(all []record) string {
	var b strings.Builder
	b.WriteString(heading)
	for i := range all {
		b.WriteString(all[i].csv())
	}
	return b.String()
}

func rows(t *testing.T, name string, shape Shape) (all []Row) {
	t.Helper()
	src, err := Open(t.Context(), name, "", "", shape)
	if err != nil {
		t.Fatal(err)
	}
	defer src.Close()
	for {
		r, err := src.Next()
		if errors.Is(err, io.EOF) {
			if read, total := src.Progress(); read != total {
				t.Errorf("%s: %d of %d read at the end", name, read, total)
			}
			return all
		}
		if err != nil {
			t.Fatal(err)
		}
		r.Key, r.Message = bytes.Clone(r.Key), bytes.Clone(r.Message)
		all = append(all, r)
	}
}

// A table may become orders of each version.
func TestVersions(t *testing.T) {
	for version, want := range map[string]order.Version{"": order.FIX44, "FIX.4.4": order.FIX44, "FIX.4.2": order.FIX42, "FIXT.1.1": order.FIX50} {
		m := Mapping{Set: map[string]string{"OrdType": "2", "HandlInst": "1"}, Version: version}
		for _, r := range rows(t, write(t, "a.csv", csvOf(records(3))), m) {
			var o order.Order
			if err := order.Parse(r.Message, &o); r.Err != nil || err != nil || o.Version != want {
				t.Errorf("version %q: %v, %v, FIX version %d, want %d: %s", version, r.Err, err, o.Version, want, readable(r.Message))
			}
		}
	}
}

// The same orders as a table in CSV, in Parquet, and as a FIX log with each separator are the same messages, and orders.
func TestSourcesAgree(t *testing.T) {
	all := records(600)
	want := rows(t, write(t, "a.csv", csvOf(all)), mapping)
	if len(want) != len(all) {
		t.Fatalf("%d rows, want %d", len(want), len(all))
	}
	var log bytes.Buffer
	for i, r := range want {
		var o order.Order
		if r.Err != nil {
			t.Fatalf("%s: %v", r.Where, r.Err)
		}
		if err := order.Parse(r.Message, &o); err != nil {
			t.Fatalf("%s: %v: %s", r.Where, err, readable(r.Message))
		}
		if got := string(r.Message[o.ClOrdIDOff:][:o.ClOrdIDLen]); got != all[i].ClOrdID {
			t.Fatalf("%s: ClOrdID %s, want %s", r.Where, got, all[i].ClOrdID)
		}
		separator := []string{"\x01", "|", "^A"}[i%3]
		fmt.Fprintf(&log, "20260102-08:00:00 OUT %s", strings.ReplaceAll(string(r.Message), "\x01", separator))
		if i%5 == 0 { // a heartbeat behind it, which is no order
			fmt.Fprintf(&log, "8=FIX.4.4%s9=5%s35=0%s10=163%s", separator, separator, separator, separator)
		}
		log.WriteByte('\n')
	}
	table := filepath.Join(t.TempDir(), "a.parquet")
	if err := parquet.WriteFile(table, all); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{table, write(t, "a.fix", log.String())} {
		got := rows(t, name, map[bool]Mapping{true: mapping}[strings.HasSuffix(name, "parquet")])
		if len(got) != len(want) {
			t.Fatalf("%s: %d rows, want %d", name, len(got), len(want))
		}
		for i := range got {
			if got[i].Err != nil || !bytes.Equal(got[i].Message, want[i].Message) {
				t.Fatalf("%s: %s: error %v\n%s, want\n%s", name, got[i].Where, got[i].Err, readable(got[i].Message), readable(want[i].Message))
			}
		}
	}
}

func TestBadSources(t *testing.T) {
	for _, c := range []struct {
		name, file, text, query string
		m                       Mapping
		want                    string
	}{
		{"an ending", "a.xls", "", "", Mapping{}, `the ending ".xls" names no format`},
		{"empty", "a.csv", "", "", Mapping{}, "a first line with the names"},
		{"a column", "a.csv", "ClOrdID,notes\n", "", Mapping{}, `column "notes": "notes" is no FIX tag, allowed: a number, or a name`},
		{"a computed tag", "a.csv", "ClOrdID,10\n", "", Mapping{}, "tag 10 is computed"},
		{"twice", "a.csv", "ClOrdID,11\n", "", Mapping{}, `column "11" is tag 11, as another`},
		{"no such column", "a.csv", "ClOrdID\n", "", Mapping{Columns: map[string]string{"id": "11"}}, `mapping of column "id": there is no such column, allowed: ClOrdID`},
		{"a set field", "a.csv", "ClOrdID\n", "", Mapping{Set: map[string]string{"nosuch": "1"}}, `set nosuch=1: "nosuch" is no FIX tag`},
		{"a version", "a.csv", "ClOrdID\n", "", Mapping{Version: "FIX.5.0"}, `FIX version: value "FIX.5.0", allowed: FIX.4.4, FIX.4.2, FIXT.1.1 (FIX 5.0 SP2)`},
		{"a mapped log", "a.fix", "", "", mapping, "allowed: for tables only"},
		{"no Parquet", "a.parquet", "PAR?", "", Mapping{}, "a.parquet"},
		{"a query of a file", "a.csv", "ClOrdID\n", "SELECT 1", Mapping{}, "query: set for"},
	} {
		t.Run(c.name, func(t *testing.T) {
			src, err := Open(t.Context(), write(t, c.file, c.text), "", c.query, c.m)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("source %v, error %v, want %q", src, err, c.want)
			}
		})
	}
	for query, want := range map[string]string{"": "query: none", "SELECT 1": "it has no ORDER BY"} {
		if _, err := Open(t.Context(), "postgres://127.0.0.1:1/x", "", query, Mapping{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", query, err, want)
		}
	}
}

// A row that is no order does not end the load: it is refused, with where it is and why.
func TestBadRows(t *testing.T) {
	good := records(1)[0].csv()
	for _, c := range []struct{ file, text, where, want string }{
		{"a.csv", heading + "A,VOD.L,1\n" + good, "line 2", "it has 3 columns, allowed: 7"},
		{"a.csv", heading + "A,VOD.L,1,100,1.00,yesterday,\n" + good, "line 2", `column "transact_time": "yesterday" is no time, allowed: 2026`},
		{"a.csv", heading + "A,V\x01D,1,100,1.00,,\n" + good, "line 2", `column "symbol" has a byte 0x01`},
		{"a.csv", heading + "\"A,VOD.L\"x,1\n" + good, "line 2", `extraneous`},
		{"a.fix", "8=FIX.4.4|9=5|35=D|\n", "line 1", "CheckSum (10) is missing"},
		{"a.fix", "8=FIX.4.4|9=5|35=D|10=1\n", "line 1", "CheckSum (10) is cut off"},
		{"a.fix", "8=FIX.4.4^9=5\n", "line 1", "^ is no separator"},
		{"a.fix", "8=FIX.4.4\n", "line 1", "no field ends"},
	} {
		m := map[bool]Mapping{true: mapping}[c.file == "a.csv"]
		all := rows(t, write(t, c.file, c.text), m)
		if len(all) == 0 || all[0].Where != c.where || all[0].Err == nil || !strings.Contains(all[0].Err.Error(), c.want) {
			t.Errorf("%q: %+v, want %s: %s", c.text, all, c.where, c.want)
		}
		if c.file == "a.csv" && (len(all) != 2 || all[1].Err != nil) {
			t.Errorf("%q: the row behind it: %+v", c.text, all)
		}
	}
}

// loaded runs a load.
func loaded(t *testing.T, ctx context.Context, c *client.Client, name string, o Options) (Counts, error) {
	t.Helper()
	src, err := Open(t.Context(), name, "", "", mapping)
	if err != nil {
		t.Fatal(err)
	}
	defer src.Close()
	l, err := New(Orders(c), "dev", src, o)
	if err != nil {
		t.Fatal(err)
	}
	return l.Run(ctx)
}

// inLog counts the orders of the log by ClOrdID.
func inLog(t *testing.T, c *client.Client) map[string]int {
	t.Helper()
	n := map[string]int{}
	for _, p := range c.Table() {
		if _, err := c.ReadLog(t.Context(), p.ID, "", 1, func(e client.LogEntry) error {
			if o, ok := e.Order(p.ID); ok {
				n[o.ClOrdID]++
			}
			return nil
		}); err != nil {
			t.Fatal(err)
		}
	}
	return n
}

func TestLoad(t *testing.T) {
	c := downstream.Dial(t, testgrid.Run(t))
	all := records(3000)
	text := csvOf(all) + all[5].csv() + // the same message again but for MsgSeqNum, so it is another one
		strings.Replace(all[6].csv(), "L000006,VOD.L,1", "X000006,VOD.L,%", 1) + "short\n"
	name, dir := write(t, "a.csv", text), t.TempDir()
	o := Options{State: filepath.Join(dir, "state"), Refusals: filepath.Join(dir, "refused")}
	want := Counts{Rows: 3003, Accepted: 3000, Refused: 3}
	for range 2 { // the second time nothing is left to do
		if n, err := loaded(t, t.Context(), c, name, o); err != nil || n != want {
			t.Fatalf("%+v, %v, want %+v", n, err, want)
		}
	}
	refused := refusals(t, o.Refusals)
	if len(refused) != 3 || refused[0].Code != "DuplicateClOrdID" || refused[0].Where != "line 3002" || refused[0].By != "grid" || refused[0].ClOrdID != "L000005" ||
		refused[1].Tag != 54 || refused[1].By != "source" || !strings.Contains(refused[2].Reason, "it has 1 columns") {
		t.Errorf("refused: %+v", refused)
	}
	if n, err := loaded(t, t.Context(), c, name, Options{}); err != nil || n.Present != 3000 || n.Refused != 3 {
		t.Errorf("without a state: %+v, %v", n, err)
	}
	if n := inLog(t, c); len(n) != 3000 {
		t.Errorf("%d orders in the log, want 3000", len(n))
	}
	if _, err := New(Orders(c), "other", open(t, name), o); !errors.Is(err, ErrOtherSource) {
		t.Errorf("state of another grid: %v", err)
	}
	if _, err := New(Orders(c), "dev", open(t, write(t, "b.csv", text+"\n")), o); !errors.Is(err, ErrOtherSource) {
		t.Errorf("state of another source: %v", err)
	}
}

func open(t *testing.T, name string) Source {
	t.Helper()
	src, err := Open(t.Context(), name, "", "", mapping)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = src.Close() })
	return src
}

func refusals(t *testing.T, name string) (all []Refusal) {
	t.Helper()
	f, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	for lines.Buffer(nil, 1<<20); lines.Scan(); {
		var r Refusal
		if err := json.Unmarshal(lines.Bytes(), &r); err != nil {
			t.Fatal(err)
		}
		all = append(all, r)
	}
	return all
}

// A load that is interrupted again and again, with the state of any moment or none, enters every row once.
func TestResume(t *testing.T) {
	c := downstream.Dial(t, testgrid.Run(t))
	all := records(20000)
	name, dir := write(t, "a.csv", csvOf(all)), t.TempDir()
	o := Options{State: filepath.Join(dir, "state"), Refusals: filepath.Join(dir, "refused"), Every: time.Millisecond, InFlight: 512}
	var n Counts
	for attempt := 0; ; attempt++ {
		ctx, cancel := context.WithCancel(t.Context())
		seen := n.Rows
		o.Notify = func(p Progress) {
			if attempt < 5 && p.Rows > seen+1500 {
				cancel()
			}
		}
		var err error
		n, err = loaded(t, ctx, c, name, o)
		cancel()
		if err == nil {
			break
		}
		if !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
		if attempt == 2 { // as after a crash: rows behind the state were sent
			n.Rows = crashed(t, o.State, 300)
		}
	}
	if n.Rows != 20000 || n.Accepted+n.Present != 20000 || n.Present < 300 {
		t.Errorf("%+v, want 20000 rows, all in the grid, 300 or more compared", n)
	}
	in := inLog(t, c)
	for i := range all {
		if in[all[i].ClOrdID] != 1 {
			t.Fatalf("%s is %d times in the log, want once", all[i].ClOrdID, in[all[i].ClOrdID])
		}
	}
}
