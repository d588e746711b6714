package results

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/ordergrid/ordergrid/hack/bench/cases"
	"github.com/ordergrid/ordergrid/probe/report"
)

// RunFile stands beside bench.json.
const RunFile = "run.json"

// Run is where, when and how the rows of a bench.json were measured.
type Run struct {
	Machine string  `json:"machine"`
	Date    string  `json:"date"` // RFC 3339, the start
	Command string  `json:"command"`
	Before  float64 `json:"load1_before"` // load average over one minute, at the start
}

// ReadRun reads the file beside bench.json.
func ReadRun(benchJSON string) (r Run, err error) {
	path := filepath.Join(filepath.Dir(benchJSON), RunFile)
	b, err := os.ReadFile(path)
	if err != nil {
		return r, fmt.Errorf("%w; it is written together with bench.json", err)
	}
	if err := json.Unmarshal(b, &r); err != nil {
		return r, fmt.Errorf("%s: %w", path, err)
	}
	return r, nil
}

// Markdown writes a run as docs/performance.md quotes it: one table per case, in
// the order of the rows. Growth cases are curves: see curve.go.
func Markdown(w io.Writer, run *Run, rows []Row) error {
	known := map[string]*cases.Case{}
	for _, c := range cases.All() {
		known[c.Name] = &c
	}
	var load float64
	for i := range rows {
		load = max(load, rows[i].Load1)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "Machine: %s. Date: %s. Load average: %.2f at the start, %.2f at most.\n\nCommand: `%s`\n", run.Machine, run.Date, run.Before, load, run.Command)
	for i := 0; i < len(rows); {
		n := i + 1
		for n < len(rows) && rows[n].Case == rows[i].Case {
			n++
		}
		c := known[rows[i].Case]
		if c == nil {
			return fmt.Errorf("case %q is unknown: the file is of another version of this command", rows[i].Case)
		}
		if c.Group != "growth" {
			fmt.Fprintf(&b, "\n**%s**: %s\n\n", c.Name, c.Title)
			_ = markdownCase(c, rows[i:n]).Markdown(&b) // a builder takes everything
		}
		i = n
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func markdownCase(c *cases.Case, rows []Row) *report.Table {
	base := baseline(c, rows)
	than := "floor"
	if base != nil {
		than = base.System
	}
	t := report.NewTable("system", "p50 us", "p90", "p99", "p99.9", "max", "orders/s", "CPU us/order", "client + primary + backup", judgedOf(c)+" : "+than, "p99 : "+than, judgedOf(c)+" min..max")
	t.Columns[0].Left = true
	for i := range rows {
		r := &rows[i]
		if r.Rounds == 0 {
			t.Add(r.System, "INVALID: "+r.Invalid)
			continue
		}
		main, p99 := ratios(c, r, base)
		t.Add(append(figureCells(r), strings.ReplaceAll(roles(&r.Figures), "+", " + "), times(main), times(p99), span(c, r))...)
	}
	return t
}

// ratios of a row to those of the system it is compared with; without one to the floors.
func ratios(c *cases.Case, r, base *Row) (main, p99 *float64) {
	if base == nil {
		return r.RatioToFloor, r.RatioP99
	}
	return ratio(judgedFigure(c, &r.Figures), judgedFigure(c, &base.Figures)), ratio(r.P99, base.P99)
}

// baseline is what systems of a case without floors are compared with: the first
// of its list. nil: the floors.
func baseline(c *cases.Case, rows []Row) *Row {
	if c.Systems == nil {
		return nil
	}
	for i := range rows {
		if rows[i].System == c.Systems[0] && rows[i].Rounds > 0 {
			return &rows[i]
		}
	}
	return nil
}

func judgedOf(c *cases.Case) string {
	if c.Judged == cases.HighRate {
		return "orders/s"
	}
	return "p50"
}

func judgedFigure(c *cases.Case, f *Figures) float64 {
	if c.Judged == cases.HighRate {
		return f.OrdersPerS
	}
	return f.P50
}
