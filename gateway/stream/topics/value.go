package topics

import (
	"math/bits"
	"strconv"
	"time"
)

// Type is that of a field.
type Type uint8

// Types of fields.
const (
	Text    Type = iota // bytes
	Int                 // a signed number of 64 bits
	Decimal             // up to 18 digits, up to 18 of them behind the point
	Time                // nanoseconds since 1970, UTC; written as RFC 3339
)

// MaxDigits bounds the digits of a Decimal, without leading and trailing zeros.
const MaxDigits = 18

// Field is a field of a message that filters can be about.
type Field struct {
	Name string
	Type Type
}

// Value is what a message has in a field. The zero Value is an absent one: no term holds for it.
type Value struct {
	Bytes []byte // of Text
	Num   int64  // of the other types; of Decimal without the point
	Scale uint8  // of Decimal: digits behind the point; the last digit of Num is not 0 then
	Set   bool
}

// TextValue returns a Text; the bytes are not copied.
func TextValue(b []byte) Value { return Value{Bytes: b, Set: true} }

// IntValue returns an Int, or a Time.
func IntValue(n int64) Value { return Value{Num: n, Set: true} }

// DecimalValue reads a Decimal as FIX writes it: an optional minus, digits, at most one point. It returns false for
// anything else, and for one with too many digits, which is to be treated as absent.
func DecimalValue(text []byte) (Value, bool) {
	negative := len(text) > 0 && text[0] == '-'
	if negative {
		text = text[1:]
	}
	v := Value{Set: true}
	digits, seen, point := 0, false, false
	zeros := 0 // trailing zeros behind the point, not taken in yet
	for _, c := range text {
		switch {
		case c == '.' && !point:
			point = true
		case c < '0' || c > '9':
			return Value{}, false
		case c == '0' && point:
			seen = true
			zeros++
		default:
			seen = true
			for range zeros {
				v.Num *= 10
				v.Scale++
				if v.Num != 0 {
					digits++
				}
				if v.Scale > MaxDigits || digits > MaxDigits {
					return Value{}, false
				}
			}
			zeros = 0
			if v.Num = v.Num*10 + int64(c-'0'); v.Num != 0 {
				digits++
			}
			if point {
				v.Scale++
			}
			if v.Scale > MaxDigits || digits > MaxDigits {
				return Value{}, false
			}
		}
	}
	if negative {
		v.Num = -v.Num
	}
	return v, seen
}

// parseValue reads a value of a filter.
func parseValue(t Type, text string) (v Value, allowed string) {
	switch t {
	case Int:
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return v, "a whole number of at most 64 bits"
		}
		return IntValue(n), ""
	case Decimal:
		v, ok := DecimalValue([]byte(text))
		if !ok {
			return v, "a decimal number of at most 18 digits, like -12.5"
		}
		return v, ""
	case Time:
		at, err := time.Parse(time.RFC3339Nano, text)
		if err != nil || at.Year() < 1700 || at.Year() > 2200 {
			return v, "a time between the years 1700 and 2200 like 2026-11-23T14:30:00.123Z"
		}
		return IntValue(at.UnixNano()), ""
	}
	return TextValue([]byte(text)), ""
}

// compare orders two set values of one type.
func compare(t Type, a, b *Value) int {
	switch {
	case t == Text:
		return compareBytes(a.Bytes, b.Bytes)
	case a.Scale != b.Scale:
		return compareScaled(a, b)
	case a.Num < b.Num:
		return -1
	case a.Num > b.Num:
		return 1
	}
	return 0
}

func compareBytes(a, b []byte) int {
	switch {
	case string(a) < string(b):
		return -1
	case string(a) > string(b):
		return 1
	}
	return 0
}

// tens are powers of ten.
var tens = func() (t [MaxDigits + 1]uint64) {
	t[0] = 1
	for i := 1; i < len(t); i++ {
		t[i] = t[i-1] * 10
	}
	return t
}()

// compareScaled compares decimals of different scales, exactly.
func compareScaled(a, b *Value) int {
	if (a.Num < 0) != (b.Num < 0) {
		if a.Num < 0 {
			return -1
		}
		return 1
	}
	x, y := magnitude(a.Num), magnitude(b.Num)
	var xh, xl, yh, yl uint64
	if a.Scale < b.Scale {
		xh, xl = bits.Mul64(x, tens[b.Scale-a.Scale])
		yl = y
	} else {
		yh, yl = bits.Mul64(y, tens[a.Scale-b.Scale])
		xl = x
	}
	less := xh < yh || xh == yh && xl < yl
	switch {
	case xh == yh && xl == yl:
		return 0
	case less != (a.Num < 0):
		return -1
	}
	return 1
}

func magnitude(n int64) uint64 {
	if n < 0 {
		return -uint64(n)
	}
	return uint64(n)
}
