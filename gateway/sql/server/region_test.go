package server

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"
)

const regionsFile = "memory: 128Mi\nregions:\n- name: positions\n- name: empty\n- name: fields\n- name: mixed\n- name: work\n- {name: tiny, maxBytes: 8Ki}\n"

// entriesOf puts entries into a region: more than a page of each partition.
func (g *grid) entriesOf(t *testing.T) {
	t.Helper()
	r := g.loader.Region("positions")
	for i := range 900 {
		if _, err := r.Put(t.Context(), fmt.Appendf(nil, "ACC-%d/%03d", i%3, i), []byte(fmt.Sprint(i)+strings.Repeat(" ", 999))); err != nil {
			t.Fatal(err)
		}
	}
}

func (g *grid) regions(t *testing.T) {
	g.entriesOf(t)
	if _, err := g.loader.Region("mixed").Put(t.Context(), []byte("k"), []byte("no JSON")); err != nil {
		t.Fatal(err)
	}
	c := mustConnect(t, g.open(t, Limits{}))
	if _, err := rowsOf(t, c, "set ordergrid.linearizable to on"); err != nil {
		t.Fatal(err)
	}
	for statement, want := range map[string]int{
		"select * from regions.positions":                                                         900,
		"select key from regions.positions where key = 'ACC-1/001'":                               1,
		"select key from regions.positions where key in ('ACC-1/001', 'ACC-2/002', 'none', '')":   2,
		"select key from regions.positions where key like 'ACC-2/%'":                              300,
		"select key from regions.positions where key like 'ACC-2/%' limit 7 offset 295":           5,
		"select key from regions.positions limit 700 offset 100":                                  700,
		"select key from regions.positions where key like 'ACC-2/%' and value like '8%'":          39,
		"select key from regions.positions where partition = 0 or partition = 1":                  900,
		"select key from regions.positions where expires is not null":                             0,
		"select key from regions.positions where key = 'ACC-1/001' and value = 'x'":               0,
		"select 1 from regions.empty":                                                             0,
		"select key from regions.positions where key like '" + strings.Repeat("k", 60_000) + "%'": 0,
	} {
		rows, err := rowsOf(t, c, statement)
		if err != nil || len(rows) != want {
			t.Errorf("%.120s: %d rows, %v, want %d", statement, len(rows), err, want)
		}
	}
	for statement, want := range map[string]string{
		"select key from regions.nowhere": "42P01", "select key from regions.nowhere where key = 'a'": "42P01",
		"select value->>'a' from regions.positions where key = 'ACC-1/001'": "", "select (value->>'a')::bigint from regions.mixed": "22P02", "select count(value->>'a') from regions.mixed": "22P02",
		"delete from regions.positions": "25006",
	} {
		if _, err := rowsOf(t, c, statement); code(err) != want {
			t.Errorf("%s: %v, want %s", statement, err, want)
		}
	}
	for i := range 200 {
		value := fmt.Sprintf(`{"qty": %d, "sym": "S%d", "note": "%s"}`, i, i%7, strings.Repeat("n", 40_000*(i%2)))
		if _, err := g.loader.Region("fields").Put(t.Context(), fmt.Appendf(nil, "%03d", i), []byte(value)); err != nil {
			t.Fatal(err)
		}
	}
	for statement, want := range map[string]string{
		"select count(*), sum((value->>'qty')::bigint), max(key) from regions.fields":                                             "200|19900|199",
		"select value->>'sym', count(*) from regions.fields group by 1 order by 2 desc, 1 desc limit 2 offset 3":                  "S0|29 S6|28",
		"select key from regions.fields where (value->>'qty')::bigint between 10 and 19 order by value->>'sym', key desc limit 3": "014 015 016",
		"select value->'qty', (value->>'qty')::numeric + 0.5 from regions.fields order by (value->>'qty')::int desc limit 2":      "199|199.5 198|198.5",
		"select distinct value->>'sym' from regions.fields where key like '00%' order by 1 desc":                                  "S6 S5 S4 S3 S2 S1 S0",
		"select count(*), min(version) from regions.empty":                                                                        "0|NULL",
	} {
		rows, err := rowsOf(t, c, statement)
		var lines []string
		for _, row := range rows {
			var cells []string
			for _, v := range row {
				if v == nil {
					v = []byte("NULL")
				}
				cells = append(cells, string(v))
			}
			lines = append(lines, strings.Join(cells, "|"))
		}
		if got := strings.Join(lines, " "); err != nil || got != want {
			t.Errorf("%s: %s %v, want %s", statement, got, err, want)
		}
	}
	for statement, want := range map[string]string{
		"explain select key from regions.positions where key = 'a' and version > 1": "region positions: 1 keys are read, confirmed by the copies",
		"explain select key from regions.positions where key like 'ACC-1/%'":        `scan of keys that begin with "ACC-1/" in pages`,
		"explain select key from regions.positions where false":                     "nothing is read",
	} {
		if rows, err := rowsOf(t, c, statement); err != nil || len(rows) == 0 || !strings.Contains(string(rows[0][0]), want) {
			t.Errorf("%s: %s, %v, want %s", statement, rows, err, want)
		}
	}
}

// A portal of a region goes on where it was, with parameters and in binary form.
func (g *grid) regionPortals(t *testing.T) {
	f, _ := front(t, g.open(t, Limits{}))
	f.Send(&pgproto3.Parse{Query: "select key, version from regions.positions where key like 'ACC-0/%' and version >= $1"})
	f.Send(&pgproto3.Bind{Parameters: [][]byte{[]byte("1")}, ResultFormatCodes: []int16{0, 1}})
	for range 4 {
		f.Send(&pgproto3.Execute{MaxRows: 100})
	}
	f.Send(&pgproto3.Sync{})
	if err := f.Flush(); err != nil {
		t.Fatal(err)
	}
	var keys []string
	suspended := 0
	for {
		m, err := f.Receive()
		if err != nil {
			t.Fatal(err)
		}
		switch m := m.(type) {
		case *pgproto3.DataRow:
			keys = append(keys, string(m.Values[0]))
			if len(m.Values[1]) != 8 {
				t.Errorf("version of %d bytes, want 8", len(m.Values[1]))
			}
		case *pgproto3.PortalSuspended:
			suspended++
		case *pgproto3.ErrorResponse:
			t.Fatal(m.Message)
		case *pgproto3.ReadyForQuery:
			slices.Sort(keys)
			if n := len(slices.Compact(keys)); n != 300 || suspended != 3 {
				t.Errorf("%d keys in %d parts and one more, want 300 in 3 and one more", n, suspended)
			}
			return
		}
	}
}

// Entries are read with the permission Read by every client. A gateway whose own certificate lacks it says that it does.
func (g *grid) whoMayReadRegions(t *testing.T) {
	s := g.closed(t)
	for _, c := range []struct{ dsn, want string }{
		{"user=pat sslmode=require password='secret of pat'", ""},
		{"user=sue sslmode=require password='secret of sue'", "42501"},
		{"user=any sslmode=require password=token-of-reader", ""},
		{"user=any sslmode=require password=token-of-asker", "42501"},
	} {
		conn, err := connect(t, s, c.dsn)
		if err != nil {
			t.Fatalf("%s: %v", c.dsn, err)
		}
		for _, statement := range []string{"select key from regions.positions where key = 'ACC-1/001'", "select key from regions.positions limit 1"} {
			if _, err := rowsOf(t, conn, statement); code(err) != c.want || c.want != "" && !strings.Contains(err.Error(), "table positions") {
				t.Errorf("%s: %s: %v, want SQLSTATE %q", c.dsn, statement, err, c.want)
			}
		}
		if _, err := rowsOf(t, conn, "select clordid from orders limit 1"); err != nil {
			t.Errorf("%s: orders: %v", c.dsn, err)
		}
	}
	s = g.closedOf(t, g.dial(t, "asker"))
	for dsn, want := range map[string]string{
		"user=pat sslmode=require password='secret of pat'": "permission denied for table positions to the gateway, not to the user",
		"user=any sslmode=require password=token-of-asker":  "permission denied for table positions",
		"user=sue sslmode=require password='secret of sue'": "permission denied for table positions",
	} {
		conn, err := connect(t, s, dsn)
		if err != nil {
			t.Fatalf("%s: %v", dsn, err)
		}
		var e *pgconn.PgError
		_, err = rowsOf(t, conn, "select key from regions.positions limit 1")
		if !errors.As(err, &e) || e.Code != "42501" || e.Message != want || !strings.Contains(dsn, "sue") && !strings.Contains(e.Hint, "Read for regions") {
			t.Errorf("%s: %v, hint %q, want %q", dsn, err, e.Hint, want)
		}
	}
}
