package results

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/ordergrid/ordergrid/hack/bench/cases"
	"github.com/ordergrid/ordergrid/probe/report"
)

// WriteJSON writes bench.json: an array with one object per case and system.
func WriteJSON(w io.Writer, rows []Row) error {
	if rows == nil {
		rows = []Row{}
	}
	return report.WriteJSON(w, rows)
}

// ReadJSON reads what WriteJSON wrote.
func ReadJSON(path string) ([]Row, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var rows []Row
	if err := json.Unmarshal(b, &rows); err != nil {
		return nil, fmt.Errorf("%s is not a bench.json: %w", path, err)
	}
	for i, r := range rows {
		if r.Case == "" || r.System == "" {
			return nil, fmt.Errorf("%s: object %d has no case or no system; allowed: what this command wrote", path, i)
		}
	}
	return rows, nil
}

// WriteBenchstat writes one line per round that counts, in the format of Go
// benchmarks, for golang.org/x/perf/cmd/benchstat.
func WriteBenchstat(w io.Writer, c *cases.Case, system string, rounds []Round) error {
	name := fmt.Sprintf("BenchmarkGrid/%s/system=%s", strings.ReplaceAll(c.Name, " ", "_"), system)
	for i := range rounds {
		r := &rounds[i]
		if r.Bad != "" || r.Orders == 0 {
			continue
		}
		f := figures(&r.Result)
		_, err := fmt.Fprintf(w, "%s %d %.0f ns/op %.1f p50-us %.1f p90-us %.1f p99-us %.1f p999-us %.1f max-us %.0f orders/s %.3f cpu-us/order\n",
			name, r.Orders, float64(r.Elapsed.Nanoseconds())/float64(r.Orders), f.P50, f.P90, f.P99, f.P999, f.Max, f.OrdersPerS, f.CPU)
		if err != nil {
			return err
		}
	}
	return nil
}
