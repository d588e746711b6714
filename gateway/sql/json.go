package sql

import (
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// maxNested is how deep objects and arrays may be in one another.
const maxNested = 5000

// step of a path into a JSON text: the name of a member of an object, the place of an element of an array, or either.
type step struct {
	name           string
	index          int // from the end if negative
	named, counted bool
}

// jsonScan reads a JSON text to its end, as PostgreSQL's functions of type json do, and finds the value at a path in it.
type jsonScan struct {
	s       string
	at      int
	deep    int
	escapes bool // what escapes stand for is judged too: the operators do so, the type does not
	from    int  // of what was found, in s
	to      int
	found   bool
}

// validJSON is the error of a text that is no JSON.
func validJSON(s string) *Error {
	j := jsonScan{s: s}
	return j.document(nil, false)
}

// getJSON returns the text of the value at a path; false: there is none. Of several members of a name the last one
// counts. The path is the call's own.
func getJSON(s string, path []step) (string, bool, *Error) {
	j := jsonScan{s: s, escapes: true}
	if err := j.document(path, true); err != nil || !j.found {
		return "", false, err
	}
	if c := s[j.from]; len(path) == 0 && c != '{' && c != '[' {
		j.from = 0 // the whole text: PostgreSQL leaves space before a scalar
	}
	return s[j.from:j.to], true, nil
}

// textOfJSON is a JSON value as text; false: it is null.
func textOfJSON(s string) (string, bool) {
	switch bare := strings.TrimLeft(s, " \n\t\r"); {
	case bare == "null":
		return "", false
	case bare[0] == '"':
		return unquoteJSON(bare[1 : len(bare)-1]), true
	}
	return s, true
}

func (j *jsonScan) document(path []step, on bool) *Error {
	if err := j.value(path, on); err != nil {
		return err
	}
	if j.space(); j.at < len(j.s) {
		return j.wrong("Expected end of input, but found \"%s\".")
	}
	return nil
}

func (j *jsonScan) space() {
	for j.at < len(j.s) && (j.s[j.at] == ' ' || j.s[j.at] == '\n' || j.s[j.at] == '\t' || j.s[j.at] == '\r') {
		j.at++
	}
}

func (j *jsonScan) peek() byte {
	if j.at < len(j.s) {
		return j.s[j.at]
	}
	return 0
}

// wrong is the error of what stands at the place that was come to.
func (j *jsonScan) wrong(detail string) *Error {
	err := Refuse(StateText, "invalid input syntax for type json")
	if j.at >= len(j.s) {
		err.Detail = "The input string ended unexpectedly."
		return err
	}
	to := j.at + 1
	for to < len(j.s) && to < j.at+20 && !strings.ContainsRune(" ,:{}[]\"\n\r\t", rune(j.s[to])) {
		to++
	}
	err.Detail = strings.Replace(detail, "%s", strings.ToValidUTF8(j.s[j.at:to], ""), 1)
	return err
}

// value reads one. on: it is at the part of the path that was gone, and path is what is left of that.
func (j *jsonScan) value(path []step, on bool) *Error {
	j.space()
	from := j.at
	var err *Error
	switch c := j.peek(); {
	case c == '{' || c == '[':
		if j.deep++; j.deep > maxNested {
			return Refuse(StateTooComplex, "JSON has objects and arrays in one another more than %d deep", maxNested)
		}
		if c == '{' {
			err = j.object(path, on)
		} else {
			err = j.array(path, on)
		}
		j.deep--
	case c == '"':
		_, err = j.text()
	case c == '-' || isDigit(c):
		err = j.number()
	default:
		err = j.wordOf("true", "false", "null")
	}
	if err == nil && on && len(path) == 0 {
		j.from, j.to, j.found = from, j.at, true
	}
	return err
}

func (j *jsonScan) wordOf(list ...string) *Error {
	for _, w := range list {
		if strings.HasPrefix(j.s[min(j.at, len(j.s)):], w) {
			j.at += len(w)
			return nil
		}
	}
	return j.wrong("Expected JSON value, but found \"%s\".")
}

func (j *jsonScan) object(path []step, on bool) *Error {
	on = on && len(path) > 0 && path[0].named
	j.at++
	if j.space(); j.peek() == '}' {
		j.at++
		return nil
	}
	for {
		if j.space(); j.peek() != '"' {
			return j.wrong("Expected string, but found \"%s\".")
		}
		raw, err := j.text()
		if err != nil {
			return err
		}
		is := on && (raw == path[0].name && strings.IndexByte(raw, '\\') < 0 || strings.IndexByte(raw, '\\') >= 0 && unquoteJSON(raw) == path[0].name)
		if j.space(); j.peek() != ':' {
			return j.wrong("Expected \":\", but found \"%s\".")
		}
		j.at++
		rest := path
		if is {
			rest = path[1:]
		}
		if err := j.value(rest, is); err != nil {
			return err
		}
		switch j.space(); j.peek() {
		case ',':
			j.at++
		case '}':
			j.at++
			return nil
		default:
			return j.wrong("Expected \",\" or \"}\", but found \"%s\".")
		}
	}
}

func (j *jsonScan) array(path []step, on bool) *Error {
	on = on && len(path) > 0 && path[0].counted
	if on && path[0].index < 0 {
		count := jsonScan{s: j.s, at: j.at, deep: j.deep, escapes: j.escapes}
		n, err := count.elements(nil, false)
		if err != nil {
			return err
		}
		if -path[0].index <= n {
			path[0].index += n // for the arrays that follow in its place too, as PostgreSQL has it
		}
	}
	_, err := j.elements(path, on)
	return err
}

// elements reads those of an array and counts them.
func (j *jsonScan) elements(path []step, on bool) (int, *Error) {
	j.at++
	if j.space(); j.peek() == ']' {
		j.at++
		return 0, nil
	}
	for n := 0; ; n++ {
		is, rest := on && n == path[0].index, path
		if is {
			rest = path[1:]
		}
		if err := j.value(rest, is); err != nil {
			return 0, err
		}
		switch j.space(); j.peek() {
		case ',':
			j.at++
		case ']':
			j.at++
			return n + 1, nil
		default:
			return 0, j.wrong("Expected \",\" or \"]\", but found \"%s\".")
		}
	}
}

func (j *jsonScan) number() *Error {
	const none = "Token \"%s\" is invalid."
	if j.peek() == '-' {
		j.at++
	}
	digits := func() bool {
		from := j.at
		for isDigit(j.peek()) && j.at < len(j.s) {
			j.at++
		}
		return j.at > from
	}
	if j.peek() == '0' {
		j.at++
	} else if !digits() {
		return j.wrong(none)
	}
	if j.peek() == '.' {
		if j.at++; !digits() {
			return j.wrong(none)
		}
	}
	if j.peek()|32 == 'e' {
		j.at++
		if c := j.peek(); c == '+' || c == '-' {
			j.at++
		}
		if !digits() {
			return j.wrong(none)
		}
	}
	return nil
}

// text reads a string, and returns what is between its quotes.
func (j *jsonScan) text() (string, *Error) {
	j.at++
	from, high := j.at, false
	for j.at < len(j.s) {
		c := j.s[j.at]
		if c == '\\' {
			if err := j.escape(&high); err != nil {
				return "", err
			}
			continue
		}
		switch {
		case high && j.escapes:
			return "", j.wrong(lowMissing)
		case c == '"':
			j.at++
			return j.s[from : j.at-1], nil
		case c < ' ':
			return "", j.wrong("Character with a value below 0x20 must be escaped.")
		}
		j.at++
	}
	return "", j.wrong("")
}

const lowMissing = "Unicode low surrogate must follow a high surrogate."

// escape reads one. high: the one before it is the first half of a character.
func (j *jsonScan) escape(high *bool) *Error {
	if j.at+1 >= len(j.s) {
		j.at = len(j.s)
		return j.wrong("")
	}
	if j.s[j.at+1] != 'u' {
		if strings.IndexByte(`"\/bfnrt`, j.s[j.at+1]) < 0 {
			return j.wrong("Escape sequence \"%s\" is invalid.")
		}
		if *high && j.escapes {
			return j.wrong(lowMissing)
		}
		j.at += 2
		return nil
	}
	r, ok := hex4(j.s[j.at+2:])
	if !ok {
		return j.wrong("\"\\u\" must be followed by four hexadecimal digits.")
	}
	if j.escapes {
		low := r >= 0xdc00 && r <= 0xdfff
		switch {
		case *high && !low:
			return j.wrong("Unicode high surrogate must not follow a high surrogate.")
		case !*high && low:
			return j.wrong(lowMissing)
		case r == 0:
			err := Refuse(StateUntranslatable, "unsupported Unicode escape sequence")
			err.Detail = "\\u0000 cannot be converted to text."
			return err
		}
		*high = r >= 0xd800 && r <= 0xdbff
	}
	j.at += 6
	return nil
}

func hex4(s string) (rune, bool) {
	if len(s) < 4 {
		return 0, false
	}
	r := rune(0)
	for i := range 4 {
		d := strings.IndexByte("0123456789abcdef", s[i]|32)
		if d < 0 || s[i] < '0' {
			return 0, false
		}
		r = r<<4 | rune(d)
	}
	return r, true
}

// unquoteJSON is what stands between the quotes of a string, whose escapes were judged.
func unquoteJSON(s string) string {
	i := strings.IndexByte(s, '\\')
	if i < 0 {
		return s
	}
	out := append(make([]byte, 0, len(s)), s[:i]...)
	for i < len(s) {
		switch {
		case s[i] != '\\':
			out = append(out, s[i])
			i++
		case s[i+1] != 'u':
			c := s[i+1]
			if n := strings.IndexByte("bfnrt", c); n >= 0 {
				c = "\b\f\n\r\t"[n]
			}
			out = append(out, c)
			i += 2
		default:
			r, _ := hex4(s[i+2:])
			i += 6
			if utf16.IsSurrogate(r) {
				low, _ := hex4(s[i+2:])
				r = utf16.DecodeRune(r, low)
				i += 6
			}
			out = utf8.AppendRune(out, r)
		}
	}
	return string(out)
}
