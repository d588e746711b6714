package sql

import (
	"testing"
	"time"

	pgquery "github.com/wasilibs/go-pgquery"

	"github.com/ordergrid/ordergrid/gateway/sql"
)

// BenchmarkParsers reads a statement with both parsers by turns, and reports how many times as long
// PostgreSQL's takes.
func BenchmarkParsers(b *testing.B) {
	const text = "select clordid, symbol, price, orderqty from orders where account = 'ACC1' and price > 1.5 order by received desc limit 10"
	if _, err := pgquery.Parse(text); err != nil { // the first one compiles it
		b.Fatal(err)
	}
	var ours, theirs time.Duration
	for b.Loop() {
		begin := time.Now()
		for range 10 {
			if _, err := sql.Parse(text, sql.Bounds{}, nil); err != nil {
				b.Fatal(err)
			}
		}
		middle := time.Now()
		for range 10 {
			if _, err := pgquery.Parse(text); err != nil {
				b.Fatal(err)
			}
		}
		ours, theirs = ours+middle.Sub(begin), theirs+time.Since(middle)
	}
	b.ReportMetric(float64(theirs)/float64(ours), "times")
}
