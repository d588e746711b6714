package load

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/parquet-go/parquet-go"

	"github.com/ordergrid/ordergrid/e2e/downstream"
)

// A query of a real PostgreSQL yields the messages that the same table yields as CSV: names, quoting, times, numerics and
// nulls. What is wrong with it is in the error, without the password.
func TestQuery(t *testing.T) {
	bin, err := downstream.FindPostgres()
	if err != nil {
		if os.Getenv("ORDERGRID_REQUIRE_POSTGRES") != "" {
			t.Fatal(err)
		}
		t.Skipf("%v; queries are not tested", err)
	}
	p, err := downstream.NewPostgres(bin, downstream.PostgresOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Remove)
	all := records(300)
	var sql strings.Builder
	sql.WriteString(`CREATE TABLE "desk orders" (id serial, cl_ord_id text, symbol text, side int, order_qty bigint, price numeric(18,2), transact_time timestamptz, account text);`)
	for i := range all {
		account := "NULL"
		if all[i].Account != nil {
			account = "'" + *all[i].Account + "'"
		}
		fmt.Fprintf(&sql, `INSERT INTO "desk orders" VALUES (%d, '%s', '%s', %d, %d, %d.%02d, '%s', %s);`, i, all[i].ClOrdID, all[i].Symbol, all[i].Side, all[i].OrderQty,
			all[i].Price/100, all[i].Price%100, all[i].TransactTime.Format("2006-01-02 15:04:05.000+00"), account)
	}
	if out, err := p.PSQL(t.Context(), sql.String()); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	const columns = "SELECT cl_ord_id, symbol, side, order_qty, price, transact_time, account "
	want := rows(t, write(t, "a.csv", csvOf(all)), mapping)
	src, err := Open(t.Context(), p.Admin(), "", columns+`FROM "desk orders" ORDER BY id;`, mapping)
	if err != nil {
		t.Fatal(err)
	}
	for i := range want {
		r, err := src.Next()
		if err != nil || r.Err != nil || !bytes.Equal(r.Message, want[i].Message) {
			t.Fatalf("row %d: %v, %v\n%s, want\n%s", i+1, err, r.Err, readable(r.Message), readable(want[i].Message))
		}
	}
	if _, err := src.Next(); !errors.Is(err, io.EOF) {
		t.Errorf("behind the last row: %v", err)
	}
	if err := src.Close(); err != nil {
		t.Error(err)
	}
	values := rows(t, write(t, "v.csv", csvOf(all)), Entries{Key: []string{"symbol", "cl_ord_id"}, Columns: map[string]string{"transact_time": "-"}})
	query := "SELECT cl_ord_id, symbol, side, order_qty, price, account " + `FROM "desk orders" ORDER BY id`
	if src, err = Open(t.Context(), p.Admin(), "", query, Entries{Key: []string{"symbol", "cl_ord_id"}}); err != nil {
		t.Fatal(err)
	}
	for i := range values {
		r, err := src.Next()
		if err != nil || r.Err != nil || !bytes.Equal(r.Key, values[i].Key) || !bytes.Equal(r.Message, values[i].Message) {
			t.Fatalf("entry %d: %v, %v\n%s = %s, want\n%s = %s", i+1, err, r.Err, r.Key, r.Message, values[i].Key, values[i].Message)
		}
	}
	if err := src.Close(); err != nil {
		t.Error(err)
	}
	typedQuery(t, p)
	for query, want := range map[string]string{
		"SELECT nosuch FROM pg_class ORDER BY 1":                                               `column "nosuch" does not exist`,
		"SELECT 1 AS nosuchfield ORDER BY 1":                                                   `"nosuchfield" is no FIX tag`,
		`DELETE FROM "desk orders" RETURNING id ORDER BY id`:                                   "syntax error",
		`WITH x AS (DELETE FROM "desk orders" RETURNING cl_ord_id) SELECT * FROM x ORDER BY 1`: "read-only",
	} {
		src, err := Open(t.Context(), p.Admin(), "", query, mapping)
		if err == nil {
			_, err = src.Next()
			_ = src.Close()
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", query, err, want)
		}
	}
	if _, err := Open(t.Context(), p.URL("postgres", "sesame", "nosuch"), "", "SELECT 1 AS side ORDER BY 1", mapping); err == nil || strings.Contains(err.Error(), "sesame") {
		t.Errorf("a database that is not there: %v", err)
	}
}

// typed is a row with a column of each type that Parquet and PostgreSQL write in their own ways.
type typed struct {
	ID    [16]byte   `parquet:"id,uuid"`
	Open  bool       `parquet:"open"`
	Day   int32      `parquet:"day,date"`
	At    time.Time  `parquet:"at,timestamp(microsecond)"`
	Local time.Time  `parquet:"local,timestamp(millisecond)"`
	Clock int64      `parquet:"clock,time(microsecond)"`
	Rate  float64    `parquet:"rate"`
	Short float32    `parquet:"short"`
	Price int64      `parquet:"price,decimal(4:18)"`
	Bytes []byte     `parquet:"bytes"`
	None  *time.Time `parquet:"none,optional,timestamp(microsecond)"`
	No    *bool      `parquet:"no,optional"`
}

// The rows of a query are those of the same table in Parquet: as orders with the forms of FIX, as entries with those of JSON,
// and a value of bytes.
func typedQuery(t *testing.T, p *downstream.Postgres) {
	t.Helper()
	var all []typed
	var sql strings.Builder
	sql.WriteString("CREATE TABLE typed (id uuid, open bool, day date, at timestamptz, local timestamp, clock time, rate float8, short float4, price numeric(18,4), bytes bytea, none timestamptz, no bool);")
	for i := range 200 {
		r := typed{ID: [16]byte{byte(i), 15: 0xff}, Open: i%2 == 0, Day: int32(i*100 - 1000), At: dayOne.Add(time.Duration(i) * 333 * time.Microsecond), Local: dayOne.Add(time.Duration(i) * time.Hour),
			Clock: int64(i) * 400_000_123, Rate: []float64{0, 1e21, -2.5e-7, 0.1}[i%4], Short: []float32{1e10, 0.1, -3}[i%3], Price: int64(i-100) * 12345, Bytes: fmt.Appendf(nil, "%d\\", i)}
		all = append(all, r)
		fmt.Fprintf(&sql, "INSERT INTO typed VALUES ('%x', %v, '%s', '%s', '%s', '%s', %v, %v, %d / 10000.0, '\\x%x', NULL, NULL);", r.ID, r.Open, time.Unix(int64(r.Day)*86400, 0).UTC().Format(time.DateOnly),
			r.At.In(time.FixedZone("", 5400)).Format("2006-01-02 15:04:05.999999-07:00"), r.Local.Format("2006-01-02 15:04:05.999999"), time.UnixMicro(r.Clock).UTC().Format("15:04:05.999999"), r.Rate, r.Short, r.Price, r.Bytes)
	}
	sql.WriteString("ALTER DATABASE postgres SET extra_float_digits = 0; ALTER DATABASE postgres SET bytea_output = 'escape';")
	if out, err := p.PSQL(t.Context(), sql.String()); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	table := filepath.Join(t.TempDir(), "typed.parquet")
	if err := parquet.WriteFile(table, all); err != nil {
		t.Fatal(err)
	}
	leave := map[string]string{}
	for _, column := range strings.Split("open day at local clock rate short price none no", " ") {
		leave[column] = "-"
	}
	for _, c := range []struct {
		shape Shape
		first string
	}{
		{Entries{Key: []string{"id"}}, `{"open":"true","day":"1967-04-07","at":"2026-01-02T08:00:00.25Z","local":"2026-01-02T08:00:00.25Z","clock":"00:00:00","rate":"0","short":"10000000000","price":"-123.4500","bytes":"0\\"}`},
		{Entries{Key: []string{"open", "day", "id"}, Columns: leave, Value: "bytes"}, "0\\"},
		{Mapping{Columns: map[string]string{"id": "11", "open": "43", "day": "64", "at": "60", "local": "126", "clock": "5001", "rate": "5002", "short": "5003", "price": "44", "bytes": "58", "none": "5004", "no": "5005"}},
			"|43=Y|64=19670407|60=20260102-08:00:00.250|126=20260102-08:00:00.250|5001=00:00:00|5002=0|5003=10000000000|44=-123.4500|58=0\\|"},
	} {
		want := rows(t, table, c.shape)
		if text := readable(want[0].Message); want[0].Err != nil || !strings.Contains(text, c.first) {
			t.Errorf("%+v: %s, %v, want %s", c.shape, text, want[0].Err, c.first)
		}
		src, err := Open(t.Context(), p.Admin(), "", "SELECT * FROM typed ORDER BY id", c.shape)
		if err != nil {
			t.Fatal(err)
		}
		for i := range want {
			r, err := src.Next()
			if err != nil || r.Err != nil || !bytes.Equal(r.Key, want[i].Key) || !bytes.Equal(r.Message, want[i].Message) {
				t.Fatalf("row %d: %v, %v\n%s = %s, want\n%s = %s", i+1, err, r.Err, r.Key, readable(r.Message), want[i].Key, readable(want[i].Message))
			}
		}
		if _, err := src.Next(); !errors.Is(err, io.EOF) {
			t.Errorf("behind the last row: %v", err)
		}
		if err := src.Close(); err != nil {
			t.Error(err)
		}
	}
}
