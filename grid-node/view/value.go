package view

import (
	"cmp"
	"strconv"
	"strings"
	"time"
)

// Value of a field in a row, or in a question.
type Value struct {
	Kind   Kind
	Text   string
	Number Number
	Int    int64 // of an Int; of a Time, ns since 1970
}

// TextValue is a value of kind Text.
func TextValue(s string) Value { return Value{Kind: Text, Text: s} }

// NumberValue is a value of kind Decimal.
func NumberValue(n Number) Value { return Value{Kind: Decimal, Number: n} }

// IntValue is a value of kind Int.
func IntValue(n int64) Value { return Value{Kind: Int, Int: n} }

// TimeValue is a value of kind Time.
func TimeValue(ns int64) Value { return Value{Kind: Time, Int: ns} }

// Compare orders values of one kind; an absent one is before all others.
func (v *Value) Compare(w *Value) int {
	if v.Kind != w.Kind {
		return cmp.Compare(v.Kind, w.Kind)
	}
	switch v.Kind {
	case Text:
		return strings.Compare(v.Text, w.Text)
	case Decimal:
		return v.Number.Compare(w.Number)
	}
	return cmp.Compare(v.Int, w.Int)
}

func (v Value) String() string {
	switch v.Kind {
	case Text:
		return strconv.Quote(v.Text)
	case Decimal:
		return v.Number.String()
	case Int:
		return strconv.FormatInt(v.Int, 10)
	case Time:
		return time.Unix(0, v.Int).UTC().Format(time.RFC3339Nano)
	}
	return "null"
}
