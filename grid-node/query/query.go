// Package query asks a view: a typed question (filter, projection or groups, order, limit,
// page) is checked against the fields and bounds, planned, and run in steps of a given
// number of rows, so that its caller decides how long it holds a thread. It does no
// I/O and starts no goroutine.
//
// A field that a row does not have is null. Every comparison with it is false, so its Not
// is true: there is no third truth value. Nulls sort first, are a group of their own, and
// are passed over by sum, min and max.
package query

import "github.com/ordergrid/ordergrid/grid-node/view"

// Op is the operator of an Expr.
type Op uint8

// Operators.
const (
	And     Op = iota + 1 // all of Args; true if there are none
	Or                    // any of Args
	Not                   // not Args[0]
	Eq                    // Field is Values[0]
	In                    // Field is one of Values
	Range                 // Field is from Values[0] to Values[1]; a null value is no bound
	Prefix                // Field, a text, begins with Values[0]
	Present               // Field is not null
	ops
)

var opNames = [ops]string{And: "and", Or: "or", Not: "not", Eq: "eq", In: "in", Range: "range", Prefix: "prefix", Present: "present"}

func (o Op) String() string {
	if o > 0 && o < ops {
		return opNames[o]
	}
	return "?"
}

// Expr is a filter: a tree of operators.
type Expr struct {
	Op     Op
	Field  view.Field
	Args   []Expr       // of And, Or, Not
	Values []view.Value // of the others
	Above  bool         // Range: Values[0] itself is out
	Below  bool         // Range: Values[1] itself is out
}

// Func is an aggregate function.
type Func uint8

// Functions.
const (
	Count Func = iota + 1 // of rows; without a field
	Sum                   // exact, of a decimal field; null of no values
	Min                   // of a decimal, time or integer field
	Max
	funcs
)

var funcNames = [funcs]string{Count: "count", Sum: "sum", Min: "min", Max: "max"}

func (f Func) String() string {
	if f > 0 && f < funcs {
		return funcNames[f]
	}
	return "?"
}

// Aggregate is a function of the rows of a group.
type Aggregate struct {
	Func  Func
	Field view.Field
}

// Order is a key to sort by. Rows that are equal in all keys are in the order of the log,
// groups in that of their fields.
type Order struct {
	Field     view.Field // of rows any, of groups one of GroupBy
	Aggregate int        // of groups: 1 for the first aggregate, and so on, in place of Field
	Desc      bool
}

// Query is a question to one view. Without GroupBy and Aggregates it is answered with rows.
type Query struct {
	At         uint64       // the last entry that counts; 0: the last one applied
	From       uint64       // the entry before the first that counts; 0: the earliest that the copy has
	Select     []view.Field // of rows
	Where      *Expr        // nil: all rows
	GroupBy    []view.Field
	Aggregates []Aggregate
	OrderBy    []Order
	Limit      uint32  // rows of an answer; 0: as many as are allowed
	After      *Cursor // the page before ended here
}

// grouped reports whether the question is answered with groups.
func (q *Query) grouped() bool { return len(q.GroupBy) > 0 || len(q.Aggregates) > 0 }

// Limits bound a question. 0 means the default.
type Limits struct {
	Terms  int   // operators and values of the filter
	Depth  int   // of the filter
	Fields int   // selected, grouped, sorted by, aggregates: of each
	Bytes  int   // of an encoded question
	Rows   int   // of an answer
	Groups int   // that are kept while it runs
	Memory int64 // of rows or groups that are kept, in bytes
	Scan   int64 // rows that are looked at
	Page   int64 // bytes of an encoded answer, but one row: what is beyond is on the next page
}

// with fills in the defaults.
func (l Limits) with() Limits {
	def := func(v *int, d int) {
		if *v == 0 {
			*v = d
		}
	}
	def(&l.Terms, 10_000)
	def(&l.Depth, 32)
	def(&l.Fields, 64)
	def(&l.Bytes, 1<<20)
	def(&l.Rows, 10_000)
	def(&l.Groups, 100_000)
	if l.Memory == 0 {
		l.Memory = 64 << 20
	}
	if l.Page == 0 {
		l.Page = l.Memory
	}
	if l.Scan == 0 {
		l.Scan = 1 << 40
	}
	return l
}

// Column of an answer.
type Column struct {
	Name string
	Kind view.Kind
}

// Result is an answer.
type Result struct {
	At      uint64 // the last entry that counted
	Base    uint64 // the entry before the first that counted
	Columns []Column
	Rows    [][]view.Value
	Next    *Cursor // where the next page begins, nil when there is none
	Scanned int64   // rows that were looked at
	Matched int64   // rows that the filter let through, as far as it came
}
