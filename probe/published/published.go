// Package published holds the figures of the benchmark reports that OrderGrid
// is compared with, the scenarios that reproduce them, and the known
// contradictions inside the reports.
//
// The data is embedded (see data/README.md for the reports) and validated once, strictly, at its
// first use: a doubtful figure must not be printed next to a measured one.
package published

import (
	"bytes"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"sync"
)

//go:embed data/published.json data/scenarios.json data/discrepancies.json
var files embed.FS

// Data is the content of the reports, validated.
type Data struct {
	// Reports maps a report key ("stac") to its full title.
	Reports map[string]string
	Tables  []Table
	Facts   []Fact
	// Discrepancies are the contradictions inside the reports, in file order.
	Discrepancies []Discrepancy
	Scenarios     []Scenario
	Guards        []Guard
}

// Table is one published table. Units[i] is the unit of Columns[i].
type Table struct {
	Report        string   `json:"report"`
	Name          string   `json:"table"`
	Title         string   `json:"title"`
	Configuration string   `json:"configuration"`
	Columns       []string `json:"columns"`
	Units         []string `json:"units"`
	Rows          []Row    `json:"rows"`
	Notes         string   `json:"notes"`
}

// Row maps a column to its value.
type Row map[string]Value

// Value is a cell as printed: a number, a text, or nothing.
type Value struct {
	Number float64
	Text   string
	kind   valueKind
}

type valueKind uint8

const (
	kindNone valueKind = iota
	kindNumber
	kindText
)

// IsNumber reports whether the cell holds a number.
func (v Value) IsNumber() bool { return v.kind == kindNumber }

// String is the cell for display; an absent value is "".
func (v Value) String() string {
	switch v.kind {
	case kindNumber:
		return strconv.FormatFloat(v.Number, 'f', -1, 64)
	case kindText:
		return v.Text
	}
	return ""
}

// UnmarshalJSON accepts a finite number, a string or null, and nothing else.
func (v *Value) UnmarshalJSON(b []byte) error {
	switch {
	case bytes.Equal(b, []byte("null")):
		*v = Value{}
		return nil
	case len(b) > 0 && b[0] == '"':
		v.kind = kindText
		return json.Unmarshal(b, &v.Text)
	}
	var n float64
	if err := json.Unmarshal(b, &n); err != nil {
		return fmt.Errorf("cell %s: want a number, a text or null", b)
	}
	*v = Value{Number: n, kind: kindNumber}
	return nil
}

// Fact is a published figure from prose, not from a table.
type Fact struct {
	ID     string          `json:"id"`
	Metric string          `json:"metric"`
	Value  json.RawMessage `json:"value"`
	Unit   string          `json:"unit"`
	Report string          `json:"report"`
}

// Discrepancy is a place where a report contradicts itself.
type Discrepancy struct {
	Seed    string `json:"seed"`
	Finding string `json:"finding"`
	Action  string `json:"action"`
}

// Cell is one published number together with where it was printed.
type Cell struct {
	Report, Table, Row, Column string
	Value                      float64
	Unit                       string
	// Notes are the contradictions that affect this cell.
	Notes []Discrepancy
	// DoNotJudge is set when a contradiction makes the cell unfit as a target.
	DoNotJudge bool
}

// Load returns the embedded data. It fails only if the program was built from
// damaged data, so a caller may treat an error as fatal.
var Load = sync.OnceValues(func() (*Data, error) {
	read := func(name string) []byte {
		b, err := files.ReadFile("data/" + name)
		if err != nil { // impossible: go:embed names the file
			panic(err)
		}
		return b
	}
	return parse(read("published.json"), read("scenarios.json"), read("discrepancies.json"))
})

func parse(tables, scenarios, discrepancies []byte) (*Data, error) {
	var t struct {
		Reports map[string]string `json:"reports"`
		Tables  []Table           `json:"tables"`
		Facts   []Fact            `json:"facts"`
	}
	if err := decodeStrict(tables, &t); err != nil {
		return nil, fmt.Errorf("published.json: %w", err)
	}
	d := &Data{Reports: t.Reports, Tables: t.Tables, Facts: t.Facts}
	if err := decodeStrict(discrepancies, &d.Discrepancies); err != nil {
		return nil, fmt.Errorf("discrepancies.json: %w", err)
	}
	s, err := parseScenarios(scenarios)
	if err != nil {
		return nil, fmt.Errorf("scenarios.json: %w", err)
	}
	d.Scenarios, d.Guards = append(s.Scenarios, own...), s.Guards
	return d, errors.Join(d.checkTables(), d.checkFacts(), d.checkScenarios(), d.checkNotes())
}

// decodeStrict refuses unknown fields and anything after the first value.
func decodeStrict(b []byte, into any) error {
	dec := json.NewDecoder(bytes.NewReader(b))
	dec.DisallowUnknownFields()
	if err := dec.Decode(into); err != nil {
		return err
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return errors.New("text after the end of the document")
	}
	return nil
}

func (d *Data) checkTables() error {
	if len(d.Tables) == 0 {
		return errors.New("published.json: no tables")
	}
	seen := map[string]bool{}
	for _, t := range d.Tables {
		id := t.Report + " " + t.Name
		if err := d.checkTable(t); err != nil {
			return fmt.Errorf("published.json: table %q: %w", id, err)
		}
		if seen[id] {
			return fmt.Errorf("published.json: table %q is a duplicate", id)
		}
		seen[id] = true
	}
	return nil
}

func (d *Data) checkTable(t Table) error {
	switch {
	case d.Reports[t.Report] == "":
		return fmt.Errorf("report %q is not named under \"reports\"", t.Report)
	case t.Name == "" || t.Title == "":
		return errors.New("needs a name and a title")
	case len(t.Columns) == 0 || len(t.Columns) != len(t.Units):
		return fmt.Errorf("%d columns but %d units", len(t.Columns), len(t.Units))
	case len(t.Rows) == 0:
		return errors.New("has no rows")
	}
	keys := map[string]bool{}
	for i, r := range t.Rows {
		if len(r) != len(t.Columns) {
			return fmt.Errorf("row %d has %d cells, want %d", i, len(r), len(t.Columns))
		}
		for _, c := range t.Columns {
			v, ok := r[c]
			if !ok {
				return fmt.Errorf("row %d lacks column %q", i, c)
			}
			if v.IsNumber() && (math.IsInf(v.Number, 0) || math.IsNaN(v.Number)) {
				return fmt.Errorf("row %d column %q is not finite", i, c)
			}
		}
		key := r[t.Columns[0]].String()
		// Only the tables a scenario is judged by need unique first cells.
		if t.Report == "stac" {
			if key == "" || keys[key] {
				return fmt.Errorf("row %d: first cell %q is empty or repeated", i, key)
			}
		}
		keys[key] = true
	}
	return nil
}

func (d *Data) checkFacts() error {
	seen := map[string]bool{}
	for _, f := range d.Facts {
		if f.ID == "" || seen[f.ID] {
			return fmt.Errorf("published.json: fact %q is unnamed or repeated", f.ID)
		}
		if d.Reports[f.Report] == "" {
			return fmt.Errorf("published.json: fact %q: unknown report %q", f.ID, f.Report)
		}
		seen[f.ID] = true
	}
	return nil
}

// Table returns a table by report key and name, for example "stac", "3-1".
func (d *Data) Table(report, name string) (Table, bool) {
	for _, t := range d.Tables {
		if t.Report == report && t.Name == name {
			return t, true
		}
	}
	return Table{}, false
}

// Cell looks up a number by table, row key (the value of the first column) and column. It returns
// false when the report has no such number.
func (d *Data) Cell(report, table string, row float64, column string) (Cell, bool) {
	t, ok := d.Table(report, table)
	if !ok {
		return Cell{}, false
	}
	for _, r := range t.Rows {
		if k := r[t.Columns[0]]; !k.IsNumber() || k.Number != row {
			continue
		}
		v, ok := r[column]
		if !ok || !v.IsNumber() {
			return Cell{}, false
		}
		c := Cell{Report: report, Table: table, Row: r[t.Columns[0]].String(), Column: column, Value: v.Number, Unit: t.unit(column)}
		c.Notes, c.DoNotJudge = d.notesFor(c)
		return c, true
	}
	return Cell{}, false
}

func (t Table) unit(column string) string {
	for i, c := range t.Columns {
		if c == column {
			return t.Units[i]
		}
	}
	return ""
}

// FactNumber returns a published figure from prose, if it is one number.
func (d *Data) FactNumber(id string) (float64, bool) {
	for _, f := range d.Facts {
		var v float64
		if f.ID == id && json.Unmarshal(f.Value, &v) == nil {
			return v, true
		}
	}
	return 0, false
}

// FactNumbers returns a fact that is a list of numbers; nil: it is not.
func (d *Data) FactNumbers(id string) (v []float64) {
	for _, f := range d.Facts {
		if f.ID == id && json.Unmarshal(f.Value, &v) == nil {
			return v
		}
	}
	return nil
}
