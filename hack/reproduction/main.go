// Command reproduction writes docs/reproduction.md: every published table beside what was measured by the suite of
// order-probe. It reads docs/reproduction/suite.json, which the suite wrote; with --take DIR it first takes that of another
// run, from the directory that the suite was given as --out. With --verify it writes nothing and exits 1 when the page
// differs.
//
//	go run ./hack/reproduction [--take DIR | --verify]
package main

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"math"
	"os"
	"path/filepath"

	"github.com/ordergrid/ordergrid/internal/checkout"
	"github.com/ordergrid/ordergrid/internal/derived"
	"github.com/ordergrid/ordergrid/probe/published"
	"github.com/ordergrid/ordergrid/probe/report"
)

const (
	page    = "docs/reproduction.md"
	results = "docs/reproduction/suite.json"
)

func main() {
	take := flag.String("take", "", "directory of a suite whose results the page is to have")
	derived.Main("reproduction", results, func(verify bool) ([]string, error) {
		if verify && *take != "" {
			return nil, errors.New("--take and --verify: choose one")
		}
		return run(*take, verify)
	})
}

// run makes the page, and names it if it differed. It writes it unless verify is set.
func run(take string, verify bool) ([]string, error) {
	root, err := checkout.Root()
	if err != nil {
		return nil, err
	}
	d, err := published.Load()
	if err != nil {
		return nil, err
	}
	from := filepath.Join(root, results)
	if take != "" {
		from = filepath.Join(take, "suite.json")
	}
	b, err := os.ReadFile(from)
	if err != nil {
		return nil, err
	}
	s, err := report.ParseSuite(b)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", from, err)
	}
	if err := check(d, s); err != nil {
		return nil, fmt.Errorf("%s: %w", from, err)
	}
	if take != "" {
		if err := os.WriteFile(filepath.Join(root, results), b, 0o644); err != nil { //nolint:gosec // results are public
			return nil, err
		}
	}
	var after bytes.Buffer
	if err := s.Markdown(&after, d); err != nil {
		return nil, err
	}
	return derived.Files{page: after.Bytes()}.Update(root, verify)
}

// check returns what the page would get wrong: each published table has one row, with figures that are those of the
// report, or with the reason why there are none.
func check(d *published.Data, s *report.Suite) error {
	var errs []error
	rows := map[string]int{}
	for i := range s.Rows {
		r := &s.Rows[i]
		rows[r.Report+" "+r.Table]++
		t, ok := d.Table(r.Report, r.Table)
		if !ok {
			errs = append(errs, fmt.Errorf("table %s %s is not published", r.Report, r.Table))
			continue
		}
		if len(r.Figures) == 0 && r.Reason == "" {
			errs = append(errs, fmt.Errorf("table %s %s has neither figures nor a reason", r.Report, r.Table))
		}
		for _, c := range r.Figures {
			if !c.Derived && !has(&t, c.Published) && !highlighted(d, r.Report, c.Published) {
				errs = append(errs, fmt.Errorf("table %s %s has no figure %v (%s, row %s): measured beside other data, run the suite again", r.Report, r.Table, c.Published, c.Metric, c.Row))
			}
			if c.Invalid != "" && c.Ratio != nil {
				errs = append(errs, fmt.Errorf("table %s %s, %s, row %s: a ratio of a figure that does not count", r.Report, r.Table, c.Metric, c.Row))
			}
		}
	}
	for _, t := range d.Tables {
		if n := rows[t.Report+" "+t.Name]; n != 1 {
			errs = append(errs, fmt.Errorf("table %s %s has %d rows, want 1: run the suite again", t.Report, t.Name, n))
		}
	}
	if len(s.Notes) != len(d.Discrepancies) {
		errs = append(errs, fmt.Errorf("%d contradictions of the reports, want %d: run the suite again", len(s.Notes), len(d.Discrepancies)))
	}
	return errors.Join(errs...)
}

// highlighted reports whether a figure is on the report's page of highlights, which sums up its tables.
func highlighted(d *published.Data, of string, v float64) bool {
	t, ok := d.Table(of, "Summary")
	return ok && has(&t, v)
}

// has reports whether a table has the number, perhaps in another unit of time.
func has(t *published.Table, v float64) bool {
	for _, row := range t.Rows {
		for _, cell := range row {
			for _, unit := range []float64{1, 1e-3, 1e3, 1e6} {
				if cell.IsNumber() && math.Abs(cell.Number*unit-v) <= 1e-9*math.Abs(v) {
					return true
				}
			}
		}
	}
	return false
}
