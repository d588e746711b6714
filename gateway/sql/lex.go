package sql

import (
	"strings"
)

// kind of a token.
type kind uint8

const (
	end    kind = iota
	word        // identifier or keyword, folded to lower case
	quoted      // "identifier"
	text        // 'string'
	number
	param // $1
	symbol
	bad // the text goes on with what is no token
)

// token of a statement.
type token struct {
	kind kind
	text string // of words folded, of strings without quotes
	at   int    // bytes before it
	to   int    // bytes before what is behind it
}

func (t token) is(s string) bool { return (t.kind == word || t.kind == symbol) && t.text == s }

// lexer cuts a statement as PostgreSQL's scan.l does.
type lexer struct {
	s  string
	at int
}

func isSpace(c byte) bool { return c == ' ' || c >= '\t' && c <= '\r' }
func isDigit(c byte) bool { return c-'0' <= 9 }
func starts(c byte) bool  { return c|32 >= 'a' && c|32 <= 'z' || c == '_' || c >= 0x80 }
func goesOn(c byte) bool  { return starts(c) || isDigit(c) || c == '$' }

func (l *lexer) peek(n int) byte {
	if l.at+n < len(l.s) {
		return l.s[l.at+n]
	}
	return 0
}

// space passes over white space and comments.
func (l *lexer) space() *Error {
	for l.at < len(l.s) {
		switch {
		case isSpace(l.s[l.at]):
			l.at++
		case l.peek(0) == '-' && l.peek(1) == '-':
			for l.at < len(l.s) && l.s[l.at] != '\n' && l.s[l.at] != '\r' {
				l.at++
			}
		case l.peek(0) == '/' && l.peek(1) == '*':
			if err := l.comment(); err != nil {
				return err
			}
		default:
			return nil
		}
	}
	return nil
}

// comment passes over one with those inside it.
func (l *lexer) comment() *Error {
	from, depth := l.at, 0
	for l.at < len(l.s) {
		switch {
		case l.peek(0) == '/' && l.peek(1) == '*':
			depth++
			l.at += 2
		case l.peek(0) == '*' && l.peek(1) == '/':
			depth--
			l.at += 2
			if depth == 0 {
				return nil
			}
		default:
			l.at++
		}
	}
	return failf(from, StateSyntax, "unterminated /* comment")
}

func (l *lexer) next() (token, *Error) {
	if err := l.space(); err != nil {
		return token{}, err
	}
	t := token{at: l.at, to: l.at}
	if l.at == len(l.s) {
		return t, nil
	}
	var err *Error
	switch c := l.s[l.at]; {
	case c == 0:
		err = failf(l.at, StateNoBytes, "invalid byte sequence for encoding \"UTF8\": 0x00")
	case c == '\'':
		t.kind = text
		t.text, err = l.quotedBy('\'', "quoted string", false)
	case (c == 'e' || c == 'E') && l.peek(1) == '\'':
		t.kind = text
		l.at++
		t.text, err = l.quotedBy('\'', "quoted string", true)
	case (c|32 == 'b' || c|32 == 'x' || c|32 == 'n') && l.peek(1) == '\'', c|32 == 'u' && l.peek(1) == '&' && (l.peek(2) == '\'' || l.peek(2) == '"'):
		err = unsupported(l.at, "bit strings, national and Unicode-escaped strings", "use '...' or E'...'")
	case c == '"':
		t.kind = quoted
		if t.text, err = l.quotedBy('"', "quoted identifier", false); err == nil && t.text == "" {
			err = failf(t.at, StateSyntax, `zero-length delimited identifier at or near """"`)
		}
	case starts(c):
		t.kind = word
		for l.at < len(l.s) && goesOn(l.s[l.at]) {
			l.at++
		}
		t.text = fold(l.s[t.at:l.at])
	case isDigit(c), c == '.' && isDigit(l.peek(1)):
		t.kind = number
		err = l.number()
		t.text = l.s[t.at:l.at]
	case c == '$':
		t.kind = param
		t.text, err = l.dollar(&t)
	default:
		t.kind = symbol
		l.symbol()
		t.text = l.s[t.at:l.at]
		if t.text == "!=" {
			t.text = "<>"
		}
	}
	t.to = l.at
	return t, err
}

// fold makes ASCII letters small, as PostgreSQL does with UTF-8.
func fold(s string) string {
	for i := range len(s) {
		if s[i]-'A' < 26 {
			b := []byte(s)
			for ; i < len(b); i++ {
				if b[i]-'A' < 26 {
					b[i] |= 32
				}
			}
			return string(b)
		}
	}
	return s
}

func (l *lexer) quotedBy(q byte, what string, escapes bool) (string, *Error) {
	from := l.at
	l.at++
	var b strings.Builder
	for l.at < len(l.s) {
		c := l.s[l.at]
		l.at++
		switch {
		case c == 0:
			return "", failf(from, StateNoBytes, "invalid byte sequence for encoding \"UTF8\": 0x00")
		case c == q && l.peek(0) == q:
			l.at++
			b.WriteByte(c)
		case c == q:
			if q == '\'' && l.continued() {
				continue
			}
			return b.String(), nil
		case escapes && c == '\\' && l.at < len(l.s):
			if err := l.escape(&b); err != nil {
				return "", err
			}
		default:
			b.WriteByte(c)
		}
	}
	return "", failf(from, StateSyntax, "unterminated %s at or near %q", what, clip(l.s[from:]))
}

// continued reports whether a string goes on behind white space with a new line, and passes to
// there.
func (l *lexer) continued() bool {
	i, line := l.at, false
	for i < len(l.s) && isSpace(l.s[i]) {
		line = line || l.s[i] == '\n' || l.s[i] == '\r'
		i++
	}
	if !line || i == len(l.s) || l.s[i] != '\'' {
		return false
	}
	l.at = i + 1
	return true
}

func (l *lexer) escape(b *strings.Builder) *Error {
	c := l.s[l.at]
	l.at++
	if i := strings.IndexByte("bfnrt", c); i >= 0 {
		b.WriteByte("\b\f\n\r\t"[i])
		return nil
	}
	if c-'0' < 8 || c == 'x' || c == 'u' || c == 'U' {
		return unsupported(l.at-2, "numeric escapes in strings", "write the character itself")
	}
	b.WriteByte(c)
	return nil
}

func (l *lexer) digits() {
	for l.at < len(l.s) && isDigit(l.s[l.at]) {
		l.at++
	}
}

func (l *lexer) number() *Error {
	from := l.at
	l.digits()
	if l.peek(0) == '.' && l.peek(1) != '.' {
		l.at++
		l.digits()
	}
	if l.peek(0)|32 == 'e' {
		n := 1
		if l.peek(1) == '+' || l.peek(1) == '-' {
			n = 2
		}
		if isDigit(l.peek(n)) {
			l.at += n
			l.digits()
		}
	}
	if starts(l.peek(0)) {
		to := l.at
		for to < len(l.s) && goesOn(l.s[to]) {
			to++
		}
		return failf(from, StateSyntax, "trailing junk after numeric literal at or near %q", clip(l.s[from:l.at+1]))
	}
	return nil
}

// dollar reads $1, or a string in $$ or $tag$; the token becomes one.
func (l *lexer) dollar(t *token) (string, *Error) {
	from := l.at
	l.at++
	if isDigit(l.peek(0)) {
		l.digits()
		if starts(l.peek(0)) {
			return "", failf(from, StateSyntax, "trailing junk after parameter at or near %q", clip(l.s[from:l.at+1]))
		}
		return l.s[from+1 : l.at], nil
	}
	i := l.at
	for i < len(l.s) && (starts(l.s[i]) || i > l.at && isDigit(l.s[i])) {
		i++
	}
	if i == len(l.s) || l.s[i] != '$' {
		return "", failf(from, StateSyntax, "syntax error at or near \"$\"")
	}
	tag := l.s[from : i+1]
	n := strings.Index(l.s[i+1:], tag)
	if n < 0 {
		return "", failf(from, StateSyntax, "unterminated dollar-quoted string at or near %q", clip(l.s[from:]))
	}
	l.at = i + 1 + n + len(tag)
	t.kind = text
	return l.s[i+1 : i+1+n], nil
}

const operators = "~!@#^&|`?+-*/%<>="

// symbol reads an operator, or one character.
func (l *lexer) symbol() {
	from := l.at
	if c := l.peek(0); c == ':' && (l.peek(1) == ':' || l.peek(1) == '=') {
		l.at += 2
		return
	}
	for l.at < len(l.s) && strings.IndexByte(operators, l.s[l.at]) >= 0 {
		if l.at > from && (l.peek(0) == '-' && l.peek(1) == '-' || l.peek(0) == '/' && l.peek(1) == '*') {
			break
		}
		l.at++
	}
	if l.at == from {
		l.at++
		return
	}
	// A + or - at the end belongs to what follows, unless the operator has one of these.
	for l.at > from+1 && strings.IndexByte("+-", l.s[l.at-1]) >= 0 && strings.IndexAny(l.s[from:l.at], "~!@#%^&|`?") < 0 {
		l.at--
	}
}

// clip shortens what an error quotes.
func clip(s string) string {
	if len(s) > 60 {
		return s[:60]
	}
	return s
}

// lex cuts a whole text, of at most so many tokens. What is no token is the last of them: an
// error before it comes first.
func lex(s string, most int) ([]token, *Error) {
	l := lexer{s: s}
	tokens := make([]token, 0, min(most, 16+len(s)/5))
	for {
		t, err := l.next()
		if err != nil {
			return append(tokens, token{kind: bad, at: t.at, to: t.at}), err
		}
		if len(tokens) >= most {
			return append(tokens, token{kind: bad, at: t.at, to: t.at}), failf(t.at, StateTooComplex, "statement has more than %d words", most).hint("Ask for fewer values at a time.")
		}
		tokens = append(tokens, t)
		if t.kind == end {
			return tokens, nil
		}
	}
}
