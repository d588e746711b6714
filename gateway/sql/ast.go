package sql

// Statement is one of Select, Explain, Set, Show, Simple or Refused.
type Statement interface{ statement() }

// Select of one table, or of none.
type Select struct {
	At       int
	Distinct bool
	Targets  []target
	Table    *tableRef // nil: without FROM
	Where    expr
	GroupBy  []expr
	OrderBy  []sortKey
	Limit    expr // nil: none
	Offset   expr
}

type target struct {
	e  expr
	as string // "" for none
}

type tableRef struct {
	schema, name, as string
	at               int
}

type sortKey struct {
	e     expr
	desc  bool
	nulls int8 // -1 first, 1 last, 0 not given
}

// Explain of a Select.
type Explain struct{ Of *Select }

// Set of a parameter of the session; RESET if Default.
type Set struct {
	Name    string
	Values  []string
	Default bool
	Local   bool
	Session bool // of SET SESSION CHARACTERISTICS: one that cannot be had changes nothing
}

// Show of a parameter, or ALL.
type Show struct{ Name string }

// Simple is a statement that needs no planning: its tag, and a name where it has one.
type Simple struct {
	Verb Verb
	Name string // of DEALLOCATE, SAVEPOINT …; "" for ALL
}

// Verb of a Simple statement.
type Verb uint8

// Verbs.
const (
	Empty Verb = iota
	Begin
	Commit
	Rollback
	Savepoint
	Release
	RollbackTo
	Deallocate
	DiscardAll
	Quiet // is answered with its tag alone: SET TRANSACTION, LISTEN …
)

// Refused is a statement that is known and not possible.
type Refused struct{ Err *Error }

func (*Select) statement()  {}
func (*Explain) statement() {}
func (*Set) statement()     {}
func (*Show) statement()    {}
func (*Simple) statement()  {}
func (*Refused) statement() {}

// expr is an expression.
type expr interface{ place() int }

type at int

func (a at) place() int { return int(a) }

type (
	column struct {
		at
		table, name string
		allOf       bool // *
	}
	literal struct {
		at
		kind literalKind
		text string
	}
	parameter struct {
		at
		n int // from 1
	}
	notExpr struct {
		at
		x expr
	}
	// several is a chain of AND or OR.
	several struct {
		at
		or   bool
		args []expr
	}
	binaryExpr struct {
		at   // of the operator
		op   string
		l, r expr
	}
	unary struct {
		at
		op string
		x  expr
	}
	isExpr struct {
		at
		x    expr
		what string // null, true, false, unknown
		not  bool
	}
	inExpr struct {
		at
		x    expr
		list []expr
		not  bool
	}
	betweenExpr struct {
		at
		x, lo, hi expr
		not       bool
	}
	likeExpr struct {
		at
		x, pattern expr
		not, fold  bool
	}
	// anyExpr is x op ANY (array), or ALL.
	anyExpr struct {
		at
		x     expr
		op    string
		array expr
		all   bool
	}
	arrayExpr struct {
		at
		items []expr
	}
	call struct {
		at
		name     string
		args     []expr
		star     bool
		distinct bool
	}
	castExpr struct {
		at
		x    expr
		to   Type
		name string
	}
)

// settled is a constant that was computed, and slot a value of a group: what planning puts in the place of expressions.
type (
	settled struct {
		at
		v value
	}
	slot struct {
		at
		n   int
		typ Type
	}
)

type literalKind uint8

const (
	nullLiteral literalKind = iota
	boolLiteral
	textLiteral
	numberLiteral
)
