package sql

import (
	"strings"
)

// Bounds of a statement.
type Bounds struct {
	Bytes int // of its text; 0: 65,536
	Depth int // of expressions in one another; 0: 64
	Terms int // words; 0: 50,000
}

func (b Bounds) with() Bounds {
	def := func(v *int, d int) {
		if *v == 0 {
			*v = d
		}
	}
	def(&b.Bytes, 64<<10)
	def(&b.Depth, 64)
	def(&b.Terms, 50_000)
	return b
}

// parser of the statements of one text.
type parser struct {
	s        string
	t        []token
	i        int
	depth    int
	most     int
	readOnly bool // the modes of a transaction have READ ONLY
	// lexical is what is wrong behind the last token.
	lexical *Error
}

// Parsed is a statement and where its text is.
type Parsed struct {
	Statement Statement
	Text      string
	Offset    int // of Text in what was parsed
	tokens    []token
}

// Parse reads the statements of a text, separated by semicolons. A statement that clients
// explore a database with need not be of the dialect: it is found by its words.
func Parse(s string, b Bounds, known *Catalog) ([]Parsed, *Error) {
	b = b.with()
	if len(s) > b.Bytes {
		return nil, Refuse(StateTooLarge, "statement has %d bytes, allowed: %d", len(s), b.Bytes).hint("Ask for fewer values at a time.")
	}
	tokens, wrong := lex(s, b.Terms)
	if wrong != nil && wrong.Code == StateTooComplex {
		return nil, wrong
	}
	var err *Error
	var out []Parsed
	for from := 0; from < len(tokens); {
		to := from
		for tokens[to].kind != end && tokens[to].kind != bad && !tokens[to].is(";") {
			to++
		}
		if to == from && tokens[to].kind == bad {
			return nil, wrong
		}
		if to > from {
			one := Parsed{Text: s[tokens[from].at:tokens[to-1].to], Offset: tokens[from].at}
			one.tokens = tokens[from:to]
			if q := known.find(one.tokens); q != nil && tokens[to].kind != bad {
				one.Statement = q
			} else {
				p := parser{s: s, t: append(tokens[from:to:to], token{at: tokens[to].at, to: tokens[to].at}), most: b.Depth}
				if tokens[to].kind == bad {
					p.lexical = wrong
				}
				if tokens[to].is(";") {
					p.t[len(p.t)-1] = token{kind: end, text: ";", at: tokens[to].at, to: tokens[to].to}
				}
				if one.Statement, err = p.statement(); err == nil {
					err = p.lexical
				}
				if err != nil {
					return nil, err
				}
			}
			out = append(out, one)
		}
		from = to + 1
	}
	return out, nil
}

func (p *parser) now() token { return p.t[p.i] }

func (p *parser) step() token {
	t := p.t[p.i]
	if t.kind != end {
		p.i++
	}
	return t
}

// take passes over a word or symbol if it is the next.
func (p *parser) take(s string) bool {
	if p.now().is(s) {
		p.i++
		return true
	}
	return false
}

func (p *parser) takeAll(words ...string) bool {
	for n, w := range words {
		if p.i+n >= len(p.t) || !p.t[p.i+n].is(w) {
			return false
		}
	}
	p.i += len(words)
	return true
}

func (p *parser) want(s string) *Error {
	if p.take(s) {
		return nil
	}
	return p.wrong()
}

// wrong is a syntax error at the next token.
func (p *parser) wrong() *Error {
	t := p.now()
	if t.kind == end && p.lexical != nil {
		return p.lexical
	}
	if t.kind == end && t.text == "" {
		return failf(t.at, StateSyntax, "syntax error at end of input")
	}
	if t.kind == word {
		if what := further[t.text]; what != "" {
			return unsupported(t.at, what, oneTable)
		}
	}
	if t.is("(") {
		return unsupported(t.at, "a parenthesis here", "See docs/sql.md for what is.")
	}
	if err := p.odd(t); err != nil {
		return err
	}
	return failf(t.at, StateSyntax, "syntax error at or near \"%s\"", clip(p.s[t.at:max(t.to, t.at)]))
}

// odd refuses what may be meant in PostgreSQL's grammar and is not read here: operators behind
// conditions, and words that are operators, types and names there.
func (p *parser) odd(t token) *Error {
	if p.i == 0 {
		return nil
	}
	before := p.t[p.i-1]
	switch {
	case t.kind == word && typeWords[t.text]:
		return unsupported(t.at, strings.ToUpper(t.text)+" here", "Put what is meant in parentheses.")
	case before.kind == word && typeWords[before.text]:
		return unsupported(before.at, strings.ToUpper(before.text)+" here", "Put what is meant in parentheses.")
	case t.kind == symbol && (strings.ContainsAny(t.text, operators) || t.text == "::" || t.text == "[") && (before.kind != symbol || before.is(")")):
		return unsupported(t.at, "operator "+t.text+" here", "Put what is meant in parentheses.")
	}
	return nil
}

// name reads an identifier.
func (p *parser) name() (string, *Error) {
	t := p.now()
	if t.kind != quoted && (t.kind != word || reserved[t.text]) {
		return "", p.wrong()
	}
	if n := p.t[min(p.i+1, len(p.t)-1)]; t.is("nulls") && (n.is("first") || n.is("last")) {
		return "", p.wrong() // one word of PostgreSQL's grammar
	}
	p.i++
	return t.text, nil
}

// label reads an identifier where every word is one.
func (p *parser) label() (string, *Error) {
	t := p.now()
	if t.kind != quoted && t.kind != word {
		return "", p.wrong()
	}
	p.i++
	return t.text, nil
}

func (p *parser) statement() (Statement, *Error) {
	t := p.now()
	if t.kind != word && !t.is("(") {
		return nil, p.wrong()
	}
	if t.is("select") {
		s, err := p.selects()
		if err != nil {
			return nil, err
		}
		return s, p.finish()
	}
	switch t.text {
	case "explain":
		return p.explain()
	case "set", "reset":
		return p.set()
	case "show":
		return p.show()
	case "(", "values", "table", "with":
		return &Refused{unsupported(t.at, strings.ToUpper(t.text)+" as a statement", "Begin it with SELECT.")}, nil
	case "insert", "update", "delete":
		return p.write()
	case "declare", "fetch", "move", "close":
		return &Refused{unsupported(t.at, strings.ToUpper(t.text), "Limit the rows of a portal (a client's fetch size), or use LIMIT.")}, nil
	}
	if writes[t.text] {
		return &Refused{readOnly(t.text)}, nil
	}
	return p.simple()
}

// finish checks that the statement has ended.
func (p *parser) finish() *Error {
	if p.now().kind != end {
		return p.wrong()
	}
	return nil
}

func (p *parser) explain() (Statement, *Error) {
	p.step()
	if p.now().is("analyze") || p.now().is("verbose") || p.now().is("(") {
		return nil, unsupported(p.now().at, "options of EXPLAIN", "Use EXPLAIN SELECT ...")
	}
	if !p.now().is("select") {
		return nil, p.wrong()
	}
	s, err := p.selects()
	if err != nil {
		return nil, err
	}
	return &Explain{s}, p.finish()
}

// transaction reads the modes of a transaction, which change nothing here.
func (p *parser) modes() *Error {
	for {
		if p.now().is("read") && p.t[min(p.i+1, len(p.t)-1)].is("only") {
			p.readOnly = true
		}
		switch {
		case p.takeAll("isolation", "level"):
			if !p.take("serializable") && !p.takeAll("repeatable", "read") && !p.takeAll("read", "committed") && !p.takeAll("read", "uncommitted") {
				return p.wrong()
			}
		case p.takeAll("read", "only"), p.takeAll("not", "deferrable"), p.take("deferrable"):
		case p.takeAll("read", "write"): // writes are refused when they come
		default:
			return p.finish()
		}
		p.take(",")
	}
}

func (p *parser) simple() (Statement, *Error) {
	t := p.step()
	work := func() { _ = p.take("work") || p.take("transaction") }
	switch t.text {
	case "begin":
		work()
		return &Simple{Verb: Begin, Name: "BEGIN"}, p.modes()
	case "start":
		if err := p.want("transaction"); err != nil {
			return nil, err
		}
		return &Simple{Verb: Begin, Name: "START TRANSACTION"}, p.modes()
	case "commit", "end":
		work()
		return &Simple{Verb: Commit}, p.finish()
	case "rollback", "abort":
		work()
		if p.take("to") {
			p.take("savepoint")
			return p.named(RollbackTo)
		}
		return &Simple{Verb: Rollback}, p.finish()
	case "savepoint":
		return p.named(Savepoint)
	case "release":
		p.take("savepoint")
		return p.named(Release)
	case "deallocate":
		p.take("prepare")
		if p.take("all") {
			return &Simple{Verb: Deallocate}, p.finish()
		}
		return p.named(Deallocate)
	case "discard":
		if !p.take("all") && !p.take("plans") && !p.take("sequences") && !p.take("temp") {
			return nil, p.wrong()
		}
		return &Simple{Verb: DiscardAll}, p.finish()
	case "listen", "unlisten":
		return &Refused{unsupported(t.at, strings.ToUpper(t.text), "Follow the grid's log, see docs/follow.md.")}, nil
	}
	p.i--
	return nil, failf(t.at, StateSyntax, "syntax error at or near \"%s\"", clip(p.s[t.at:t.to]))
}

func (p *parser) named(v Verb) (Statement, *Error) {
	n, err := p.name()
	if err != nil {
		return nil, err
	}
	return &Simple{Verb: v, Name: n}, p.finish()
}

func (p *parser) show() (Statement, *Error) {
	p.step()
	switch {
	case p.takeAll("time", "zone"):
		return &Show{"timezone"}, p.finish()
	case p.takeAll("transaction", "isolation", "level"):
		return &Show{"transaction_isolation"}, p.finish()
	case p.takeAll("session", "authorization"):
		return &Show{"session_authorization"}, p.finish()
	case p.take("all"):
		return &Show{"all"}, p.finish()
	}
	n, err := p.name()
	if err != nil {
		return nil, err
	}
	for p.take(".") {
		more, err := p.name()
		if err != nil {
			return nil, err
		}
		n += "." + more
	}
	return &Show{n}, p.finish()
}
