package sql

import (
	"math"
	"math/big"
	"strconv"
	"strings"
	"time"
)

// value is a constant of a statement.
type value struct {
	typ  Type
	at   int
	null bool
	hole bool   // a parameter that has no value yet
	par  int    // its number, if it is a parameter whose type is not known
	text string // of texts, and of what is Unknown
	num  dec
	us   int64 // of times, and of intervals
	b    bool
	list []value
}

func badText(v *value, t Type) *Error {
	code := StateText
	if t.class() == temporal || t == Interval {
		code = StateDatetime
	}
	return failf(v.at, code, "invalid input syntax for type %s: \"%s\"", t, clip(v.text))
}

// Env is what constants depend on beside the statement.
type Env struct {
	Zone     *time.Location
	Now      time.Time // of the transaction
	User     string
	Database string
	Setting  func(name string) (string, bool) // current_setting
	read     bool                             // by the values of a plan: another one may have others
}

// parse makes a value of another type of a text.
func (v value) parse(t Type, env *Env) (value, *Error) {
	v.typ, v.par = t, 0
	if v.null || v.hole {
		return v, nil
	}
	switch t.class() {
	case textual:
		return v, nil
	case numeric:
		return v.parseNumber(t)
	case temporal:
		us, ok := parseTime(v.text, env.zoneFor(t), env.Now)
		if !ok && dotted(v.text) {
			return v, failf(v.at, StateUnsupported, "\"%s\" as a time: not supported", clip(v.text)).hint("Write a time as 2026-11-21 09:30:00+00.")
		}
		if !ok && looksLikeTime(v.text) {
			return v, failf(v.at, "22008", "date/time field value out of range: \"%s\"", clip(v.text))
		}
		if !ok {
			return v, badText(&v, t)
		}
		v.us = us
	case intervals:
		us, ok := parseInterval(v.text)
		if !ok {
			return v, badText(&v, t).hint("Use microseconds to weeks, such as '90 minutes'.")
		}
		v.us = us
	case boolean:
		b, ok := parseBool(v.text)
		if !ok {
			return v, badText(&v, t)
		}
		v.b = b
	case array:
		return v.parseArray(t, env)
	default:
		if t == JSON {
			err := validJSON(v.text)
			if err != nil {
				err.Offset = v.at
			}
			return v, err
		}
		return v, failf(v.at, StateUnsupported, "values of type %s: not supported", t)
	}
	return v, nil
}

func (e *Env) zoneFor(Type) *time.Location {
	e.read = true
	if e.Zone == nil {
		return time.UTC
	}
	return e.Zone
}

func (v value) parseNumber(t Type) (value, *Error) {
	lo, hi, whole := limitsOf(t)
	if whole && beyond(v.text, lo, hi) { // PostgreSQL reads digits before it looks at what is behind them
		return v, failf(v.at, StateRange, "value \"%s\" is out of range for type %s", clip(v.text), t)
	}
	d, ok := parseDec(v.text)
	if !ok {
		if s := fold(strings.TrimSpace(v.text)); s == "nan" || strings.HasSuffix(s, "infinity") || strings.HasSuffix(s, "inf") {
			if t == Numeric || t == Float8 || t == Float4 {
				return v, failf(v.at, StateUnsupported, "%s as a number: not supported", clip(v.text))
			}
		}
		if _, err := strconv.ParseFloat(strings.TrimSpace(v.text), 64); err == nil || len(v.text) > maxDigits {
			return v, failf(v.at, StateRange, "value \"%s\" is out of range for type %s", clip(v.text), t).hint("Numbers have at most %d digits.", maxDigits)
		}
		return v, badText(&v, t)
	}
	v.num = d
	if whole && strings.ContainsAny(v.text, ".eE") {
		return v, badText(&v, t)
	}
	if t == Float8 {
		v.num = v.num.float()
	}
	return v, nil
}

// beyond reports whether the digits that a text begins with are a number that is not from lo to hi.
func beyond(s string, lo, hi *big.Int) bool {
	s = strings.TrimLeft(s, " \t\n\r\v\f")
	end := 0
	if strings.HasPrefix(s, "-") || strings.HasPrefix(s, "+") {
		end = 1
	}
	for end < len(s) && isDigit(s[end]) {
		end++
	}
	if end > maxDigits {
		return false // told as a number of too many digits
	}
	n, ok := new(big.Int).SetString(s[:end], 10)
	return ok && (n.Cmp(lo) < 0 || n.Cmp(hi) > 0)
}

// limitsOf whole numbers of a type.
func limitsOf(t Type) (lo, hi *big.Int, whole bool) {
	switch t {
	case Int2:
		return big.NewInt(math.MinInt16), big.NewInt(math.MaxInt16), true
	case Int4:
		return big.NewInt(math.MinInt32), big.NewInt(math.MaxInt32), true
	case Int8:
		return big.NewInt(math.MinInt64), big.NewInt(math.MaxInt64), true
	case Oid:
		return new(big.Int), big.NewInt(math.MaxUint32), true
	}
	return nil, nil, false
}

func parseBool(s string) (b, ok bool) {
	s = fold(strings.TrimSpace(s))
	if s == "" {
		return false, false
	}
	for _, w := range []string{"true", "yes", "on", "1"} {
		if strings.HasPrefix(w, s) && s != "o" {
			return true, true
		}
	}
	for _, w := range []string{"false", "no", "off", "0"} {
		if strings.HasPrefix(w, s) && s != "o" {
			return false, true
		}
	}
	return false, false
}

// parseArray reads {a,"b c",NULL} of one dimension.
func (v value) parseArray(t Type, env *Env) (value, *Error) {
	s := strings.TrimSpace(v.text)
	bad := failf(v.at, StateText, "malformed array literal: \"%s\"", clip(v.text))
	if len(s) < 2 || s[0] != '{' || s[len(s)-1] != '}' {
		return v, bad
	}
	s = s[1 : len(s)-1]
	elem := types[t].elem
	for i := 0; strings.TrimSpace(s) != ""; {
		var b strings.Builder
		inQuotes, wasQuoted := false, false
		for ; i < len(s) && (inQuotes || s[i] != ','); i++ {
			switch c := s[i]; {
			case c == '\\' && i+1 < len(s):
				i++
				b.WriteByte(s[i])
			case c == '"':
				inQuotes, wasQuoted = !inQuotes, true
			case !inQuotes && (c == '{' || c == '}'):
				return v, bad
			default:
				b.WriteByte(c)
			}
		}
		item := value{at: v.at, text: b.String()}
		if !wasQuoted {
			item.text = strings.TrimSpace(item.text)
			item.null = fold(item.text) == "null"
		}
		if inQuotes || item.text == "" && !wasQuoted {
			return v, bad
		}
		item, err := item.parse(elem, env)
		if err != nil {
			return v, err
		}
		if v.list = append(v.list, item); i == len(s) {
			break
		}
		i++
		if i == len(s) {
			return v, bad
		}
	}
	return v, nil
}

// cast is an explicit or implicit conversion.
func (v value) cast(t Type, env *Env) (value, *Error) {
	from := v.typ
	switch {
	case from == t:
		return v, nil
	case from == Unknown || from.class() == textual && t.class() != textual:
		return v.parse(t, env)
	case v.null || v.hole:
	case from.class() == textual && t.class() == textual:
	case t.class() == textual:
		v.text = v.format(env)
	case from.class() == numeric && t.class() == numeric:
		if lo, hi, whole := limitsOf(t); whole {
			n := v.num.rounded()
			if from == Float8 || from == Float4 {
				n = v.num.even()
			}
			if n.Cmp(lo) < 0 || n.Cmp(hi) > 0 {
				return v, failf(v.at, StateRange, "%s out of range", t)
			}
			v.num = dec{m: n}
		}
		if t == Float8 {
			v.num = v.num.float()
		}
	case from.class() == temporal && t.class() == temporal:
		if t == Date {
			l := time.UnixMicro(v.us).In(env.zoneFor(t))
			v.us = time.Date(l.Year(), l.Month(), l.Day(), 0, 0, 0, 0, l.Location()).UnixMicro()
		}
	case from.class() == array && t.class() == array:
		for i := range v.list {
			item, err := v.list[i].cast(types[t].elem, env)
			if err != nil {
				return v, err
			}
			v.list[i] = item
		}
	default:
		return v, failf(v.at, "42846", "cannot cast type %s to %s", from, t)
	}
	v.typ = t
	return v, nil
}

// format is the value as text.
func (v *value) format(env *Env) string {
	switch v.typ.class() {
	case numeric:
		if v.typ == Float8 || v.typ == Float4 {
			return string(appendFloat(nil, v.num.String()))
		}
		return v.num.String()
	case temporal:
		s := string(appendTime(nil, v.us, env.zoneFor(v.typ)))
		switch v.typ {
		case Date:
			return s[:10]
		case Timestamp:
			return s[:max(19, strings.LastIndexAny(s, "+-"))]
		}
		return s
	case boolean:
		return strconv.FormatBool(v.b)
	case intervals:
		return strconv.FormatFloat(float64(v.us)/1e6, 'f', -1, 64) + " seconds"
	}
	return v.text
}
