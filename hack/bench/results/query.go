package results

import (
	"fmt"
	"io"
	"strings"

	"github.com/ordergrid/ordergrid/hack/bench/cases"
	"github.com/ordergrid/ordergrid/internal/numtext"
	"github.com/ordergrid/ordergrid/probe/report"
)

// What is measured beside questions.
const (
	Load  = "load"
	Patch = "patch"
	Drop  = "drop"
)

// Query is what one system took for one question.
type Query struct {
	Question string  `json:"question"`
	System   string  `json:"system"`
	Ms       float64 `json:"ms,omitempty"` // p50
	Times    int     `json:"times,omitempty"`
	// Wrong is the first answer that was not the one that must be, Failed why there is none, Invalid why the figure does not
	// count; "": none.
	Wrong   string `json:"wrong,omitempty"`
	Failed  string `json:"failed,omitempty"`
	Invalid string `json:"invalid,omitempty"`
}

// Queries is a run of questions.
type Queries struct {
	Run
	Orders  int      `json:"orders"`
	Rows    []Query  `json:"rows"`
	Goals   []Goal   `json:"goals"`
	Notes   []string `json:"notes"`
	Skipped []string `json:"skipped,omitempty"` // systems, and why
}

// Add adds a row.
func (q *Queries) Add(row Query) { q.Rows = append(q.Rows, row) }

// Note adds what a reader has to know.
func (q *Queries) Note(text string) { q.Notes = append(q.Notes, text) }

// Fail marks what a system has not answered.
func (q *Queries) Fail(system string, err error) {
	for _, line := range queryLines {
		if q.row(line.name, system) == nil {
			q.Add(Query{Question: line.name, System: system, Failed: err.Error()})
		}
	}
}

// queryLines are the lines of the table.
var queryLines = []struct{ name, title string }{
	{Load, "load"},
	{"get", "point get"},
	{"equal", "equality, indexed, about 100 rows"},
	{"range", "range of price and time, about 100 rows"},
	{"count", "scan, not indexed: count of 100"},
	{"group", "count and sum by symbol"},
	{Patch, "patch of 40 %"},
	{Drop, "drop"},
}

func (q *Queries) row(question, system string) *Query {
	for i := range q.Rows {
		if r := &q.Rows[i]; r.Question == question && r.System == system {
			return r
		}
	}
	return nil
}

// Systems are those of the rows, in their order.
func (q *Queries) systems() (names []string) {
	seen := map[string]bool{}
	for i := range q.Rows {
		if s := q.Rows[i].System; !seen[s] {
			seen[s] = true
			names = append(names, s)
		}
	}
	return names
}

// cell is a figure as the table shows it. One of a wrong answer is none.
func (r *Query) cell() string {
	switch {
	case r == nil:
		return "-"
	case r.Failed != "":
		return "FAILED"
	case r.Wrong != "":
		return "WRONG"
	case r.Ms == 0:
		return "INVALID"
	case r.Invalid != "":
		return millis(r.Ms) + " (INVALID)"
	}
	return millis(r.Ms)
}

// millis has three digits or more.
func millis(v float64) string {
	if v < 1 {
		return fmt.Sprintf("%.3g", v)
	}
	return numtext.Short(v)
}

// figure is one that counts: of a right answer.
func (q *Queries) figure(question, system string) (float64, bool) {
	r := q.row(question, system)
	if r == nil || r.Wrong != "" || r.Failed != "" || r.Invalid != "" || r.Ms == 0 {
		return 0, false
	}
	return r.Ms, true
}

// Goal is one of the grid's, and what was measured.
type Goal struct {
	Goal    string   `json:"goal"`
	Allowed float64  `json:"allowed"`
	AtLeast bool     `json:"at_least,omitempty"` // else at most
	Figure  *float64 `json:"figure"`             // nil: there is none
	Reached *bool    `json:"reached"`            // nil: it is not judged
}

// goalOrders is the number of orders that goals are about.
const goalOrders = 1_000_000

// Judge sets the goals. They are judged of a million orders or more.
func (q *Queries) Judge() {
	all := func(question string, systems ...string) (list []float64) {
		for _, s := range systems {
			v, ok := q.figure(question, s)
			if !ok {
				return nil
			}
			list = append(list, v)
		}
		return list
	}
	const sql, postgres, redis = "grid-sql", "postgresql", "redis"
	// Each has the figures of others, of which the least counts, and that of the grid: nil and one figure is that one.
	q.Goals = nil
	goal := func(name string, allowed float64, atLeast bool, of []float64, by []float64) {
		g := Goal{Goal: name, Allowed: allowed, AtLeast: atLeast}
		if len(of) > 0 && len(by) > 0 {
			v := of[0]
			for _, o := range of {
				v = min(v, o)
			}
			v /= by[0]
			g.Figure = &v
			if q.Orders >= goalOrders {
				reached := atLeast && v >= allowed || !atLeast && v <= allowed
				g.Reached = &reached
			}
		}
		q.Goals = append(q.Goals, g)
	}
	one := []float64{1}
	goal("point get: through SQL, by the native one", 2, false, all("get", sql), all("get", cases.Grid))
	goal("point get: through SQL, by PostgreSQL's", 1, false, all("get", sql), all("get", postgres))
	goal("equality, indexed: the best of Coherence, Hazelcast and Redis, by the grid", 10, true, all("equal", cases.Coherence, cases.Hazelcast, redis), all("equal", cases.Grid))
	goal("scan, ms", 2, false, all("count", cases.Grid), one)
	goal("scan: Coherence by the grid", 400, true, all("count", cases.Coherence), all("count", cases.Grid))
	goal("count and sum by symbol, ms", 3, false, all("group", cases.Grid), one)
	goal("patch: Coherence by the grid", 50, true, all(Patch, cases.Coherence), all(Patch, cases.Grid))
	goal("load: the faster of Coherence and Hazelcast, by the grid", 10, true, all(Load, cases.Coherence, cases.Hazelcast), all(Load, cases.Grid))
	goal("drop, ms", 10, false, all(Drop, cases.Grid), one)
}

func (g *Goal) cells() []any {
	allowed := "at most "
	if g.AtLeast {
		allowed = "at least "
	}
	figure, reached := "-", "not judged"
	if g.Figure != nil {
		figure = millis(*g.Figure)
	}
	if g.Reached != nil {
		reached = map[bool]string{true: "reached", false: "missed"}[*g.Reached]
	}
	return []any{g.Goal, allowed + fmt.Sprintf("%g", g.Allowed), figure, reached}
}

// tables are the two of a run.
func (q *Queries) tables() []*report.Table {
	systems := q.systems()
	figures := report.NewTable(append([]string{"ms at p50"}, systems...)...)
	for _, line := range queryLines {
		cells := []any{line.title}
		for _, s := range systems {
			cells = append(cells, q.row(line.name, s).cell())
		}
		figures.Add(cells...)
	}
	goals := report.NewTable("goal of the grid", "allowed", "measured", "of a million orders")
	for i := range q.Goals {
		goals.Add(q.Goals[i].cells()...)
	}
	return []*report.Table{figures, goals}
}

// remarks are what stands below the tables: what is wrong first.
func (q *Queries) remarks() (all []string) {
	invalid := map[string]bool{}
	for i := range q.Rows {
		switch r := &q.Rows[i]; {
		case r.Failed != "" && !invalid[r.System+r.Failed]:
			invalid[r.System+r.Failed] = true
			all = append(all, fmt.Sprintf("%s FAILED: %s", r.System, r.Failed))
		case r.Wrong != "":
			all = append(all, fmt.Sprintf("%s is WRONG about %s: %s", r.System, r.Question, r.Wrong))
		case r.Invalid != "" && !invalid[r.System+r.Invalid]:
			invalid[r.System+r.Invalid] = true
			all = append(all, fmt.Sprintf("%s is INVALID: %s", r.System, r.Invalid))
		}
	}
	for _, s := range q.Skipped {
		all = append(all, "not measured: "+s)
	}
	return append(all, q.Notes...)
}

// Text writes the run for a terminal.
func (q *Queries) Text(w io.Writer) error {
	p := report.NewPage(w)
	for _, table := range q.tables() {
		p.Table(table)
	}
	p.List("", q.remarks(), 0)
	return p.Err()
}

// Markdown writes the run as docs quote it.
func (q *Queries) Markdown(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "Machine: %s. Date: %s. %s orders of 300 bytes. Command: `%s`\n", q.Machine, q.Date, numtext.Thousands(float64(q.Orders)), q.Command)
	for _, table := range q.tables() {
		table.Columns[0].Left = true
		b.WriteByte('\n')
		_ = table.Markdown(&b) // a builder takes everything
	}
	b.WriteByte('\n')
	for _, r := range q.remarks() {
		fmt.Fprintf(&b, "- %s\n", r)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// Failed is what a run fails with: a wrong answer, or none.
func (q *Queries) Failed() error {
	for i := range q.Rows {
		switch r := &q.Rows[i]; {
		case r.Failed != "":
			return fmt.Errorf("%s: %s", r.System, r.Failed)
		case r.Wrong != "":
			return fmt.Errorf("%s: %s: %s", r.System, r.Question, r.Wrong)
		}
	}
	return nil
}

// Invalid reports whether a figure does not count.
func (q *Queries) Invalid() bool {
	for i := range q.Rows {
		if q.Rows[i].Invalid != "" {
			return true
		}
	}
	return false
}
