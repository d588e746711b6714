package view

import (
	"cmp"
	"fmt"
	"math"
	"math/big"
	"strings"
)

// Number is an exact decimal: Hi:Lo, a signed integer of 128 bits, times ten to the power
// of -Scale. It is canonical: Scale is 0 or the last digit is not.
type Number struct {
	Hi    int64
	Lo    uint64
	Scale uint8 // at most MaxScale
}

// MaxScale is the most digits behind the point.
const MaxScale = 19

// fixedScale is the scale of decimal columns.
const fixedScale = 8

var pow10 = func() (p [MaxScale + 1]uint64) {
	p[0] = 1
	for i := 1; i < len(p); i++ {
		p[i] = p[i-1] * 10
	}
	return p
}()

// parseFixed reads a FIX decimal in units of 1e-8. ok is false if it is none; far, if it
// does not fit.
func parseFixed(s []byte) (v int64, far, ok bool) {
	neg := len(s) > 0 && s[0] == '-'
	if neg {
		s = s[1:]
	}
	if len(s) == 0 || len(s) > 20 {
		return 0, false, false
	}
	var m uint64
	scale, digits := -1, 0
	for _, c := range s {
		d := c - '0'
		if d > 9 {
			if c != '.' || scale >= 0 {
				return 0, false, false
			}
			scale = 0
			continue
		}
		digits++
		if scale >= 0 {
			if scale == fixedScale {
				far = far || d != 0
				continue
			}
			scale++
		}
		if m > (math.MaxUint64-9)/10 {
			far = true
			continue
		}
		m = m*10 + uint64(d)
	}
	if digits == 0 {
		return 0, false, false
	}
	up := pow10[fixedScale-max(scale, 0)]
	if far || m > math.MaxInt64/up {
		return 0, true, true
	}
	if v = int64(m * up); neg {
		v = -v
	}
	return v, false, true
}

// ParseNumber reads a decimal: digits with at most one point, at most 38 digits and 19
// behind the point, a minus before it.
func ParseNumber(s string) (Number, error) {
	bad := fmt.Errorf("decimal is %.60q, allowed: at most 38 digits, %d of them behind one point, with or without a minus", s, MaxScale)
	t := strings.TrimPrefix(s, "-")
	whole, frac, point := strings.Cut(t, ".")
	all := whole + frac
	if len(all) == 0 || len(s) > 100 || strings.Trim(all, "0123456789") != "" || point && strings.Contains(frac, ".") {
		return Number{}, bad
	}
	frac = strings.TrimRight(frac, "0")
	m, ok := new(big.Int).SetString(whole+frac, 10)
	if whole+frac == "" {
		m, ok = new(big.Int), true
	}
	if !ok || len(frac) > MaxScale {
		return Number{}, bad
	}
	if len(t) < len(s) {
		m.Neg(m)
	}
	n, ok := numberOf(m, len(frac))
	if !ok {
		return Number{}, bad
	}
	return n, nil
}

// fixedNumber is a column's value as a Number.
func fixedNumber(v int64) Number { return shortest(v, fixedScale) }

// numberOf returns m times ten to the power of -scale, canonical; false if it does not fit.
func numberOf(m *big.Int, scale int) (Number, bool) {
	ten, rem := big.NewInt(10), new(big.Int)
	for scale > 0 {
		q, r := new(big.Int).QuoRem(m, ten, rem)
		if r.Sign() != 0 {
			break
		}
		m, scale = q, scale-1
	}
	if scale > MaxScale || m.BitLen() > 126 { // 2^126 > 8.5e37: sums of any two fit
		return Number{}, false
	}
	lo := new(big.Int).And(m, new(big.Int).SetUint64(math.MaxUint64))
	hi := new(big.Int).Rsh(m, 64)
	return Number{Hi: hi.Int64(), Lo: lo.Uint64(), Scale: uint8(scale)}, true
}

// Big returns the number times 1e19.
func (n Number) Big() *big.Int {
	m := new(big.Int).Lsh(big.NewInt(n.Hi), 64)
	m.Add(m, new(big.Int).SetUint64(n.Lo))
	return m.Mul(m, new(big.Int).SetUint64(pow10[MaxScale-n.Scale]))
}

// NumberOf returns m times 1e-19, the inverse of Big; false if a Number cannot be that
// large or exact.
func NumberOf(m *big.Int) (Number, bool) { return numberOf(new(big.Int).Set(m), MaxScale) }

// Add returns the sum, false if it has more digits than a Number can have.
func (n Number) Add(m Number) (Number, bool) {
	if x, y, scale, ok := aligned(n, m); ok {
		if sum := x + y; (sum > x) == (y > 0) {
			return shortest(sum, scale), true
		}
	}
	return NumberOf(new(big.Int).Add(n.Big(), m.Big()))
}

// Compare returns the sign of n-m.
func (n Number) Compare(m Number) int {
	if n.Scale == m.Scale {
		if n.Hi != m.Hi {
			return cmp.Compare(n.Hi, m.Hi)
		}
		return cmp.Compare(n.Lo, m.Lo)
	}
	if x, y, _, ok := aligned(n, m); ok {
		return cmp.Compare(x, y)
	}
	return n.Big().Cmp(m.Big())
}

// Canonical reports whether n is as ParseNumber makes it.
func (n Number) Canonical() bool {
	if n.Scale > MaxScale {
		return false
	}
	if v, ok := n.small(); ok {
		return n.Scale == 0 || v%10 != 0
	}
	c, ok := NumberOf(n.Big())
	return ok && c == n
}

func (n Number) String() string {
	if v, ok := n.small(); ok {
		return string(appendSmall(nil, v, int(n.Scale)))
	}
	m := new(big.Int).Lsh(big.NewInt(n.Hi), 64)
	m.Add(m, new(big.Int).SetUint64(n.Lo))
	s := new(big.Int).Abs(m).String()
	if k := int(n.Scale); k > 0 {
		if len(s) <= k {
			s = strings.Repeat("0", k+1-len(s)) + s
		}
		s = s[:len(s)-k] + "." + s[len(s)-k:]
	}
	if m.Sign() < 0 {
		s = "-" + s
	}
	return s
}

// FixedRange returns the column values v with lo <= v <= hi; lo or hi may be nil. None are
// in it if from > to.
func FixedRange(lo, hi *Number) (from, to int64) {
	unit := new(big.Int).SetUint64(pow10[MaxScale-fixedScale])
	from, to = fixedMin, math.MaxInt64
	if lo != nil {
		q, r := new(big.Int).DivMod(lo.Big(), unit, new(big.Int))
		if r.Sign() != 0 {
			q.Add(q, big.NewInt(1))
		}
		if from = clampFixed(q); q.Cmp(big.NewInt(math.MaxInt64)) > 0 {
			return 1, 0
		}
	}
	if hi != nil {
		q, _ := new(big.Int).DivMod(hi.Big(), unit, new(big.Int))
		if to = clampFixed(q); q.Cmp(big.NewInt(fixedMin)) < 0 {
			return 1, 0
		}
	}
	return from, to
}

func clampFixed(q *big.Int) int64 {
	switch {
	case q.Cmp(big.NewInt(fixedMin)) < 0:
		return fixedMin
	case q.Cmp(big.NewInt(math.MaxInt64)) > 0:
		return math.MaxInt64
	}
	return q.Int64()
}
