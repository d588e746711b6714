// Package topics finds which subscriptions a message is for: topics and patterns of them, filters on fields, and an Index
// of many subscriptions that is asked once per message.
//
// A topic is a list of tokens joined by dots, like orders.A17.ACME.buy. A token is any bytes, escaped (see AppendToken).
// A pattern is a topic in which a token may be *, which stands for one token, and the last may be >, which stands for one
// or more. A filter is a list of terms on the fields of a message, all of which have to hold.
//
// The package does no I/O and has no clock. An Index is for one goroutine.
package topics

import (
	"fmt"
	"strings"
)

const (
	// MaxTokens bounds the tokens of a topic or pattern. A match visits at most 2^MaxTokens nodes of the index, however
	// many patterns there are and whatever they look like.
	MaxTokens = 8
	// MaxToken bounds one token, in bytes as it is written (escaped).
	MaxToken = 192
	// MaxPattern bounds a topic or pattern, in bytes.
	MaxPattern = 512
)

const (
	one  = "*"
	rest = ">"
)

// Pattern is a valid pattern. It is its text: there are many, and they are split seldom.
type Pattern struct{ text string }

// split cuts the first token off; more reports whether there are others behind it.
func split(text string) (token, tail string, more bool) { return strings.Cut(text, ".") }

// String returns the pattern as it was written.
func (p Pattern) String() string { return p.text }

// First returns the first token, and whether it is a literal.
func (p Pattern) First() (string, bool) {
	token, _, _ := split(p.text)
	return token, token != one && token != rest
}

// Error is a pattern, topic or filter that is not valid.
type Error struct {
	What    string // "pattern", "filter term 2 (price)", …
	Value   string
	Allowed string
}

func (e *Error) Error() string {
	return fmt.Sprintf("%s is %.80q, allowed: %s", e.What, e.Value, e.Allowed)
}

const allowedToken = "1 to 8 tokens joined by dots, each 1 to 192 printable ASCII characters; " +
	`space . * > < % " and \ are written %XX, the empty token is %`

// ParsePattern checks a pattern.
func ParsePattern(text string) (Pattern, error) {
	if len(text) > MaxPattern {
		return Pattern{}, &Error{"pattern of " + fmt.Sprint(len(text)) + " bytes", text, fmt.Sprintf("at most %d bytes", MaxPattern)}
	}
	if strings.Count(text, ".") >= MaxTokens {
		return Pattern{}, &Error{"pattern", text, fmt.Sprintf("at most %d tokens", MaxTokens)}
	}
	i := 0
	for t, behind, more := split(text); ; t, behind, more = split(behind) {
		i++
		switch {
		case t == one, t == rest && !more:
		case t == rest:
			return Pattern{}, &Error{"pattern", text, "> as the last token only"}
		case !validToken(t):
			return Pattern{}, &Error{fmt.Sprintf("token %d of pattern %.80q", i, text), t, allowedToken + "; * for one token, > at the end for one or more"}
		}
		if !more {
			return Pattern{text}, nil
		}
	}
}

// CheckTopic returns why bytes are no topic, or nil.
func CheckTopic(topic []byte) error {
	if len(topic) > MaxPattern {
		return &Error{fmt.Sprintf("topic of %d bytes", len(topic)), string(topic), fmt.Sprintf("at most %d bytes", MaxPattern)}
	}
	n := 0
	for token := range strings.SplitSeq(string(topic), ".") {
		if n++; n > MaxTokens || !validToken(token) {
			return &Error{"topic", string(topic), allowedToken}
		}
	}
	return nil
}

// Matches reports whether the pattern is one of a valid topic. It splits the topic anew: the Index is for many patterns.
func (p Pattern) Matches(topic []byte) bool {
	for t, behind, others := split(p.text); ; t, behind, others = split(behind) {
		if t == rest {
			return len(topic) > 0
		}
		token, tail, more := cut(topic)
		if len(token) == 0 || t != one && t != string(token) || others != more {
			return false
		}
		if topic = tail; !others {
			return true
		}
	}
}

// Covers reports whether every topic of q is one of p.
func (p Pattern) Covers(q Pattern) bool {
	a, b := p.text, q.text
	for {
		t, behind, others := split(a)
		u, tail, more := split(b)
		if t == rest {
			return true
		}
		if u == rest || t != one && t != u || others != more {
			return false
		}
		if a, b = behind, tail; !others {
			return true
		}
	}
}

// cut splits a topic behind its first token.
func cut(topic []byte) (token, tail []byte, more bool) {
	for i, c := range topic {
		if c == '.' {
			return topic[:i], topic[i+1:], true
		}
	}
	return topic, nil, false
}

// plain reports whether a byte is written as it is.
func plain(c byte) bool {
	switch c {
	case '.', '*', '>', '<', '%', '"', '\\':
		return false
	}
	return c > ' ' && c < 0x7f
}

const hexDigits = "0123456789ABCDEF"

// AppendToken appends raw bytes as a token: printable ASCII as it is, other bytes and the seven reserved ones as %XX with
// capital digits, and no bytes at all as %. Each value is written in one way only, so tokens are compared as bytes.
func AppendToken(dst, raw []byte) []byte {
	if len(raw) == 0 {
		return append(dst, '%')
	}
	for _, c := range raw {
		if plain(c) {
			dst = append(dst, c)
		} else {
			dst = append(dst, '%', hexDigits[c>>4], hexDigits[c&15])
		}
	}
	return dst
}

// ReadToken returns the bytes that a token stands for, and whether it is one.
func ReadToken(t string) (raw []byte, ok bool) {
	if !validToken(t) {
		return nil, false
	}
	if t == "%" {
		return []byte{}, true
	}
	for i := 0; i < len(t); i++ {
		c := t[i]
		if c == '%' {
			c = byte(strings.IndexByte(hexDigits, t[i+1])<<4 | strings.IndexByte(hexDigits, t[i+2]))
			i += 2
		}
		raw = append(raw, c)
	}
	return raw, true
}

// validToken reports whether AppendToken writes some bytes that way.
func validToken(t string) bool {
	if len(t) == 0 || len(t) > MaxToken {
		return false
	}
	if t == "%" {
		return true
	}
	for i := 0; i < len(t); i++ {
		if t[i] != '%' {
			if !plain(t[i]) {
				return false
			}
			continue
		}
		if i+2 >= len(t) {
			return false
		}
		high, low := strings.IndexByte(hexDigits, t[i+1]), strings.IndexByte(hexDigits, t[i+2])
		if high < 0 || low < 0 || plain(byte(high<<4|low)) {
			return false
		}
		i += 2
	}
	return true
}

// Token returns the token of a place, from 0, raw, and whether the pattern has one value there and no other.
func (p Pattern) Token(place int) (raw []byte, fixed bool) {
	for t, tail, more := split(p.text); ; t, tail, more = split(tail) {
		switch {
		case t == rest:
			return nil, false
		case place == 0:
			return ReadToken(t) // neither * nor > is one
		case !more:
			return nil, false
		}
		place--
	}
}
