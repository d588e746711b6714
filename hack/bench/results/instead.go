package results

import (
	"fmt"
	"io"
	"strings"

	"github.com/ordergrid/ordergrid/internal/numtext"
	"github.com/ordergrid/ordergrid/probe/report"
)

// column is one figure of one case.
type column struct {
	head, load string // load is the last part of the case's name
	figure     func(*Row) string
}

var columns = []column{
	{"6,000/s: p50 us", "rate-6000", func(r *Row) string { return micros(r.P50) }},
	{"p99", "rate-6000", func(r *Row) string { return micros(r.P99) }},
	{"mean from the time due", "rate-6000", func(r *Row) string {
		if r.CreateToEnd == nil {
			return "-"
		}
		return micros(r.CreateToEnd.Mean)
	}},
	{"CPU us/order", "rate-6000", func(r *Row) string { return micros(r.CPU) }},
	{"one client: p50 us", "pingpong", func(r *Row) string { return micros(r.P50) }},
	{"p99", "pingpong", func(r *Row) string { return micros(r.P99) }},
	{"64 clients: orders/s", "sync-64", func(r *Row) string { return numtext.Thousands(r.OrdersPerS) }},
	{"pipelined: orders/s", "pipe-64x4", func(r *Row) string { return numtext.Thousands(r.OrdersPerS) }},
}

// Instead writes what one would use in place of the grid as one Markdown table: a
// line per system, the cases of cases.Instead side by side. What was not measured
// is "-".
func Instead(w io.Writer, run *Run, rows []Row) error {
	var b strings.Builder
	fmt.Fprintf(&b, "Machine: %s. Date: %s. Command: `%s`\n\n", run.Machine, run.Date, run.Command)
	head := []string{"system"}
	for _, c := range columns {
		head = append(head, c.head)
	}
	t := report.NewTable(head...)
	t.Columns[0].Left = true
	for _, system := range systemsOf(rows) {
		cells := []any{system}
		for _, c := range columns {
			cells = append(cells, c.cell(rows, system))
		}
		t.Add(cells...)
	}
	_ = t.Markdown(&b) // a builder takes everything
	_, err := io.WriteString(w, b.String())
	return err
}

// systemsOf are the systems in the order of the rows.
func systemsOf(rows []Row) (names []string) {
	seen := map[string]bool{}
	for i := range rows {
		if s := rows[i].System; !seen[s] {
			seen[s] = true
			names = append(names, s)
		}
	}
	return names
}

func (c *column) cell(rows []Row, system string) string {
	for i := range rows {
		r := &rows[i]
		if r.System != system || r.Case != "lo/repl/"+c.load {
			continue
		}
		if r.Rounds == 0 {
			return "INVALID"
		}
		return c.figure(r) + mark(r)
	}
	return "-"
}
