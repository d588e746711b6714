package topics

import (
	"math/big"
	"strings"
	"time"
)

// naiveFilter judges terms by math/big and time, with none of the code under test.
func naiveFilter(terms []Term, fields []Value) bool {
	for _, term := range terms {
		for i, f := range testFields {
			if f.Name == term.Field && !naiveTerm(f.Type, term, fields[i]) {
				return false
			}
		}
	}
	return true
}

func naiveTerm(typ Type, term Term, v Value) bool {
	if !v.Set {
		return false
	}
	cmp := func(text string) int { return naiveValue(typ, v).Cmp(naiveNumber(typ, text)) }
	equal := func(text string) bool {
		if typ == Text {
			return string(v.Bytes) == text
		}
		return cmp(text) == 0
	}
	switch {
	case term.Equal != nil:
		return equal(*term.Equal)
	case term.In != nil:
		for _, text := range term.In {
			if equal(text) {
				return true
			}
		}
		return false
	case term.Prefix != nil:
		return strings.HasPrefix(string(v.Bytes), *term.Prefix)
	}
	return (term.Min == nil || cmp(*term.Min) >= 0) && (term.Above == nil || cmp(*term.Above) > 0) &&
		(term.Max == nil || cmp(*term.Max) <= 0) && (term.Below == nil || cmp(*term.Below) < 0)
}

func naiveNumber(typ Type, text string) *big.Rat {
	if typ == Time {
		at, err := time.Parse(time.RFC3339Nano, text)
		if err != nil {
			panic(err)
		}
		return new(big.Rat).SetInt64(at.UnixNano())
	}
	r, ok := new(big.Rat).SetString(text)
	if !ok {
		panic(text)
	}
	return r
}

func naiveValue(typ Type, v Value) *big.Rat {
	r := new(big.Rat).SetInt64(v.Num)
	if typ == Decimal {
		r.Quo(r, new(big.Rat).SetInt(new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(v.Scale)), nil)))
	}
	return r
}
