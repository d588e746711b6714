package sql

import (
	"os"
	"testing"
	"time"
)

// TestServe keeps a grid with orders and the listener for a while, to try clients by hand:
// ORDERGRID_SERVE=10m.
func TestServe(t *testing.T) {
	d, err := time.ParseDuration(os.Getenv("ORDERGRID_SERVE"))
	if err != nil {
		t.Skip("ORDERGRID_SERVE is no duration: this is for trying clients by hand")
	}
	w := start(t, number("ORDERGRID_ORDERS", 2000))
	t.Logf("psql %q", w.dsn())
	if path := os.Getenv("ORDERGRID_SERVE_FILE"); path != "" {
		if err := os.WriteFile(path, []byte(w.dsn()), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	time.Sleep(d)
}
