package load

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"

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
