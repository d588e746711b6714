package statement

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/ordergrid/ordergrid/grid-node/query"
	"github.com/ordergrid/ordergrid/grid-node/view"
)

// Column that a statement may name.
type Column struct {
	Name  string
	Field view.Field
	Kind  view.Kind
}

// Columns are those of every view, then those of further tags. Any other tag may be named Tag5001 as a text.
func Columns(extra ...view.Extra) (all []Column) {
	for _, d := range view.Standard() {
		all = append(all, Column{d.Name, d.Field, d.Kind})
	}
	for _, x := range extra {
		name := x.Name
		if name == "" {
			name = "Tag" + strconv.Itoa(int(x.Tag))
		}
		all = append(all, Column{name, view.Field(x.Tag), x.Kind})
	}
	return all
}

// Statement is a question, and which columns of its answer are asked for.
type Statement struct {
	Query query.Query
	Names []string // of the columns of a row
	Place []int    // of each in a row of the answer
}

// Row is a row of the answer as the statement asks for it.
func (s *Statement) Row(answer []view.Value) []view.Value {
	row := make([]view.Value, len(s.Place))
	for i, at := range s.Place {
		row[i] = answer[at]
	}
	return row
}

// item of the select list.
type item struct {
	name   string
	at     int
	column *Column          // nil: an aggregate
	agg    *query.Aggregate //
}

type parser struct {
	scanner
	t       token // the next one
	err     error
	columns []Column
	items   []item
	star    bool
	q       query.Query
	terms   int
}

// Parse reads a statement. The error is an *Error.
func Parse(s string, columns []Column) (*Statement, error) {
	if len(s) > MaxBytes {
		return nil, &Error{At: 1, Found: fmt.Sprintf("a statement of %d bytes", len(s)), Allowed: fmt.Sprintf("at most %d bytes", MaxBytes)}
	}
	p := &parser{scanner: scanner{s: s}, columns: columns}
	p.step()
	p.keyword("select")
	p.selectList()
	p.keyword("from")
	if p.err == nil && !p.take("orders") {
		p.refuse("orders, the only table there is")
	}
	if p.take("where") {
		e := p.or(1, false)
		p.q.Where = &e
	}
	if p.take("group") {
		p.keyword("by")
		p.groupBy()
	}
	if p.err == nil {
		p.settle()
	}
	if p.take("order") {
		p.keyword("by")
		p.orderBy()
	}
	if p.take("limit") {
		p.q.Limit = uint32(p.integer(1, 1<<20))
	}
	p.take(";")
	if p.err == nil && p.t.kind != end {
		p.refuse("where, group by, order by, limit, each once and in this order, or the end")
	}
	if p.err != nil {
		return nil, p.err
	}
	return p.statement(), nil
}

// step goes on to the next token.
func (p *parser) step() {
	if p.err == nil {
		p.t, p.err = p.next()
	}
	if p.err != nil {
		p.t = token{at: len(p.s)}
	}
}

func (p *parser) refuse(allowed string) {
	if p.err == nil {
		p.err = p.fail(p.t.at, p.t.String(), allowed)
		p.t = token{at: len(p.s)}
	}
}

// is reports whether the next token is this word or symbol.
func (p *parser) is(s string) bool {
	return p.err == nil && (p.t.kind == word && strings.EqualFold(p.t.text, s) || p.t.kind == symbol && p.t.text == s)
}

// take goes on if it is.
func (p *parser) take(s string) bool {
	if !p.is(s) {
		return false
	}
	p.step()
	return true
}

func (p *parser) keyword(s string) {
	if !p.take(s) {
		p.refuse(s)
	}
}

func (p *parser) integer(least, most uint64) uint64 {
	n, err := strconv.ParseUint(p.t.text, 10, 64)
	if p.t.kind != number || err != nil || n < least || n > most {
		p.refuse(fmt.Sprintf("a whole number from %d to %d", least, most))
		return 0
	}
	p.step()
	return n
}

// column reads a column's name.
func (p *parser) column() *Column {
	if p.t.kind != word && p.t.kind != quoted {
		p.refuse("the name of a column: " + p.names())
		return nil
	}
	for i := range p.columns {
		if strings.EqualFold(p.columns[i].Name, p.t.text) {
			p.step()
			return &p.columns[i]
		}
	}
	if rest, tag := strings.CutPrefix(strings.ToLower(p.t.text), "tag"); tag {
		if n, err := strconv.ParseUint(rest, 10, 30); err == nil && n > 0 {
			name := p.t.text
			p.step()
			return &Column{Name: name, Field: view.Field(n), Kind: view.Text}
		}
	}
	p.refuse(p.names())
	return nil
}

func (p *parser) names() string {
	var names []string
	for _, c := range p.columns {
		names = append(names, c.Name)
	}
	return strings.Join(names, ", ")
}

var functions = map[string]query.Func{"count": query.Count, "sum": query.Sum, "min": query.Min, "max": query.Max}

// item reads a column or an aggregate.
func (p *parser) item() (x item) {
	x.at = p.t.at
	f, isFunc := functions[strings.ToLower(p.t.text)]
	if !isFunc || p.t.kind != word {
		if x.column = p.column(); x.column != nil {
			x.name = x.column.Name
		}
		return x
	}
	x.name, x.agg = strings.ToLower(p.t.text), &query.Aggregate{Func: f}
	p.step()
	p.keyword("(")
	if f == query.Count {
		p.keyword("*")
	} else if c := p.column(); c != nil {
		x.agg.Field, x.name = c.Field, x.name+"_"+c.Name
	}
	p.keyword(")")
	return x
}

func (p *parser) selectList() {
	if p.take("*") {
		p.star = true
		for i := range p.columns {
			p.items = append(p.items, item{name: p.columns[i].Name, column: &p.columns[i]})
		}
		return
	}
	for {
		x := p.item()
		if p.take("as") {
			if x.name = p.t.text; p.t.kind != word && p.t.kind != quoted {
				p.refuse("a name")
			}
			p.step()
		}
		if p.err != nil {
			return
		}
		if p.items = append(p.items, x); !p.take(",") {
			return
		}
	}
}

func (p *parser) groupBy() {
	for {
		if c := p.column(); c != nil {
			p.q.GroupBy = append(p.q.GroupBy, c.Field)
		}
		if !p.take(",") {
			return
		}
	}
}

// settle tells rows from groups.
func (p *parser) settle() {
	for i := range p.items {
		if x := &p.items[i]; x.agg != nil && p.aggregate(x.agg) == 0 {
			p.q.Aggregates = append(p.q.Aggregates, *x.agg)
		}
	}
	if len(p.q.GroupBy)+len(p.q.Aggregates) == 0 {
		for _, x := range p.items {
			p.q.Select = append(p.q.Select, x.column.Field)
		}
		return
	}
	for _, x := range p.items {
		if x.column != nil && p.group(x.column.Field) < 0 {
			p.err = p.fail(x.at, "column "+x.name+" beside groups", "columns of group by, and aggregates")
			return
		}
	}
}

// aggregate is the number of an aggregate that is asked for, from 1 on; 0 if it is not.
func (p *parser) aggregate(a *query.Aggregate) int {
	for i := range p.q.Aggregates {
		if p.q.Aggregates[i] == *a {
			return i + 1
		}
	}
	return 0
}

func (p *parser) group(f view.Field) int {
	for i, g := range p.q.GroupBy {
		if g == f {
			return i
		}
	}
	return -1
}

func (p *parser) orderBy() {
	for {
		p.orderKey()
		if !p.take(",") {
			return
		}
	}
}

func (p *parser) orderKey() {
	var x item
	switch {
	case p.t.kind == number:
		n := p.integer(1, uint64(len(p.items)))
		if n == 0 {
			return
		}
		x = p.items[n-1]
	default:
		if x = p.named(); x.name == "" {
			x = p.item()
		}
	}
	if p.err != nil {
		return
	}
	var o query.Order
	grouped := len(p.q.Select) == 0
	switch {
	case x.agg != nil:
		if o.Aggregate = p.aggregate(x.agg); o.Aggregate == 0 {
			p.err = p.fail(x.at, "an aggregate that is not selected", "those of the select list")
		}
	case grouped && p.group(x.column.Field) < 0:
		p.err = p.fail(x.at, "column "+x.name, "columns of group by, and aggregates of the select list")
	default:
		o.Field = x.column.Field
	}
	if o.Desc = p.take("desc"); !o.Desc {
		p.take("asc")
	}
	p.q.OrderBy = append(p.q.OrderBy, o)
}

// named is the item of the select list with the next token for a name, if there is one.
func (p *parser) named() item {
	for _, x := range p.items {
		if (p.t.kind == word || p.t.kind == quoted) && x.name == p.t.text && (x.agg == nil || functions[x.name] == 0) {
			p.step()
			return x
		}
	}
	return item{}
}

// statement puts the columns of the answer where they were asked for.
func (p *parser) statement() *Statement {
	s := &Statement{Query: p.q}
	for i, x := range p.items {
		at := i
		switch {
		case x.agg != nil:
			at = len(p.q.GroupBy) + p.aggregate(x.agg) - 1
		case len(p.q.Select) == 0:
			at = p.group(x.column.Field)
		}
		s.Names, s.Place = append(s.Names, x.name), append(s.Place, at)
	}
	return s
}
