package statement

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// Bounds of a statement.
const (
	MaxBytes = 64 << 10
	maxDepth = 32
	maxTerms = 10_000 // of a filter: operators and values
)

// Error is what is wrong with a statement, and where.
type Error struct {
	At      int // character, from 1 on
	Found   string
	Allowed string
}

func (e *Error) Error() string {
	return fmt.Sprintf("at character %d: %s, allowed: %s", e.At, e.Found, e.Allowed)
}

type kind uint8

const (
	end    kind = iota
	word        // lower case in text
	quoted      // an identifier in double quotes
	text        // in single quotes
	number
	symbol
)

// token of a statement.
type token struct {
	kind kind
	text string
	at   int // byte
}

func (t *token) String() string {
	switch t.kind {
	case end:
		return "the end of the statement"
	case text:
		return "'" + t.text + "'"
	}
	return fmt.Sprintf("%.60q", t.text)
}

// scanner splits a statement.
type scanner struct {
	s  string
	at int
}

func (s *scanner) fail(at int, found, allowed string) error {
	return &Error{At: utf8.RuneCountInString(s.s[:at]) + 1, Found: found, Allowed: allowed}
}

func (s *scanner) next() (token, error) {
	for s.at < len(s.s) && strings.IndexByte(" \t\r\n", s.s[s.at]) >= 0 {
		s.at++
	}
	from := s.at
	if from == len(s.s) {
		return token{at: from}, nil
	}
	switch c := s.s[from]; {
	case isLetter(c):
		for s.at < len(s.s) && (isLetter(s.s[s.at]) || isDigit(s.s[s.at])) {
			s.at++
		}
		return token{word, s.s[from:s.at], from}, nil
	case isDigit(c) || c == '.' || c == '-' && from+1 < len(s.s) && (isDigit(s.s[from+1]) || s.s[from+1] == '.'):
		for s.at++; s.at < len(s.s) && (isDigit(s.s[s.at]) || s.s[s.at] == '.'); {
			s.at++
		}
		return token{number, s.s[from:s.at], from}, nil
	case c == '\'' || c == '"':
		return s.quoted(c)
	}
	for _, op := range []string{"<>", "!=", "<=", ">=", "<", ">", "=", "(", ")", ",", "*", ";"} {
		if strings.HasPrefix(s.s[from:], op) {
			s.at += len(op)
			return token{symbol, op, from}, nil
		}
	}
	r, _ := utf8.DecodeRuneInString(s.s[from:])
	return token{}, s.fail(from, fmt.Sprintf("%q", r), "words, numbers, 'texts', and the operators = <> < <= > >= ( ) , *")
}

// quoted reads up to the closing quote; a doubled one stands for itself.
func (s *scanner) quoted(q byte) (token, error) {
	from := s.at
	var b strings.Builder
	for s.at++; s.at < len(s.s); s.at++ {
		if s.s[s.at] != q {
			b.WriteByte(s.s[s.at])
			continue
		}
		if s.at+1 < len(s.s) && s.s[s.at+1] == q {
			b.WriteByte(q)
			s.at++
			continue
		}
		s.at++
		if q == '"' {
			return token{quoted, b.String(), from}, nil
		}
		return token{text, b.String(), from}, nil
	}
	return token{}, s.fail(from, "a quote that is not closed", "a closing "+string(q))
}

func isLetter(c byte) bool { return c == '_' || c|0x20 >= 'a' && c|0x20 <= 'z' }
func isDigit(c byte) bool  { return c >= '0' && c <= '9' }
