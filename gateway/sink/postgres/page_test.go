package postgres_test

import (
	"os"
	"strings"
	"testing"
)

// pageSQL is a query of docs/postgres.md: the block behind the line <!-- sql: name -->.
func pageSQL(t testing.TB, name string) string {
	t.Helper()
	page, err := os.ReadFile("../../../docs/postgres.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, found := strings.Cut(string(page), "<!-- sql: "+name+" -->\n```sql\n")
	sql, _, closed := strings.Cut(rest, "\n```")
	if !found || !closed {
		t.Fatalf("docs/postgres.md has no block of SQL behind <!-- sql: %s -->", name)
	}
	return sql
}
