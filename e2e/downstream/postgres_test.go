package downstream

import (
	"os"
	"testing"
)

// A server that was killed comes back with what was committed.
func TestPostgresComesBack(t *testing.T) {
	bin, err := FindPostgres()
	if err != nil {
		if os.Getenv("ORDERGRID_REQUIRE_POSTGRES") != "" {
			t.Fatal(err)
		}
		t.Skipf("%v; the server of the tests is not tested", err)
	}
	p, err := NewPostgres(bin, PostgresOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Remove)
	if _, err := p.PSQL(t.Context(), "CREATE TABLE kept AS SELECT 17 AS n"); err != nil {
		t.Fatal(err)
	}
	for _, end := range []func() error{p.Kill, p.Stop} {
		if err := end(); err != nil {
			t.Fatal(err)
		}
		if got, err := p.PSQL(t.Context(), "SELECT 1"); err == nil {
			t.Fatalf("the server has ended and returns %q", got)
		}
		if err := p.Start(); err != nil {
			t.Fatal(err)
		}
		if got, err := p.PSQL(t.Context(), "SELECT n FROM kept"); got != "17" || err != nil {
			t.Fatalf("the table has %q (%v), want 17", got, err)
		}
	}
}
