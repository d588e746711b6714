package sql

import (
	"math/big"
	"strconv"
	"strings"

	"github.com/ordergrid/ordergrid/grid-node/view"
)

// dec is an exact decimal of any size: m times ten to the power of -scale.
type dec struct {
	m     *big.Int
	scale int
}

// maxDigits bounds numbers of statements, before and behind the point.
const maxDigits = 200

func decInt(n int64) dec { return dec{m: big.NewInt(n)} }

// parseDec reads a number as numeric_in does; false if it is none or beyond the bound.
func parseDec(s string) (dec, bool) {
	s = strings.Trim(s, " \t\n\r\v\f")
	exp := 0
	if i := strings.IndexAny(s, "eE"); i >= 0 {
		n, err := strconv.Atoi(s[i+1:])
		if err != nil || n > maxDigits || n < -maxDigits {
			return dec{}, false
		}
		s, exp = s[:i], n
	}
	neg := strings.HasPrefix(s, "-")
	if neg || strings.HasPrefix(s, "+") {
		s = s[1:]
	}
	whole, frac, _ := strings.Cut(s, ".")
	all := whole + frac
	if all == "" || len(all) > maxDigits || strings.Trim(all, "0123456789") != "" {
		return dec{}, false
	}
	m, _ := new(big.Int).SetString(all, 10)
	if neg {
		m.Neg(m)
	}
	d := dec{m, len(frac) - exp}
	if d.scale < 0 {
		d.m.Mul(d.m, pow10(-d.scale))
		d.scale = 0
	}
	return d, true
}

func pow10(n int) *big.Int {
	return new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(n)), nil)
}

// floor is the greatest number not above d with at most so many digits behind the point, in
// units of the last of them, and whether it is d itself.
func (d dec) floor(scale int) (*big.Int, bool) {
	if d.scale <= scale {
		return new(big.Int).Mul(d.m, pow10(scale-d.scale)), true
	}
	q, r := new(big.Int).DivMod(d.m, pow10(d.scale-scale), new(big.Int))
	return q, r.Sign() == 0
}

func (d dec) cmp(e dec) int {
	scale := max(d.scale, e.scale)
	a, _ := d.floor(scale)
	b, _ := e.floor(scale)
	return a.Cmp(b)
}

func (d dec) add(e dec, sign int64) dec {
	scale := max(d.scale, e.scale)
	a, _ := d.floor(scale)
	b, _ := e.floor(scale)
	return dec{a.Add(a, b.Mul(b, big.NewInt(sign))), scale}
}

func (d dec) String() string { return pointed(new(big.Int).Set(d.m), d.scale) }

func pointed(m *big.Int, scale int) string {
	neg := m.Sign() < 0
	s := m.Abs(m).String()
	if scale > 0 {
		if len(s) <= scale {
			s = strings.Repeat("0", scale+1-len(s)) + s
		}
		s = s[:len(s)-scale] + "." + s[len(s)-scale:]
	}
	if neg {
		s = "-" + s
	}
	return s
}

// rounded is the whole number next to d, halves away from zero.
func (d dec) rounded() *big.Int {
	two := dec{new(big.Int).Mul(new(big.Int).Abs(d.m), big.NewInt(2)), d.scale}
	n, _ := two.add(decInt(1), 1).floor(0)
	n.Rsh(n, 1)
	if d.m.Sign() < 0 {
		n.Neg(n)
	}
	return n
}

// even is the whole number next to d, halves to an even one.
func (d dec) even() *big.Int {
	n := d.rounded()
	half := dec{new(big.Int).Mul(d.m, big.NewInt(2)), d.scale}
	if _, exact := d.floor(0); exact {
		return n
	}
	if _, exact := half.floor(0); exact && n.Bit(0) == 1 { // rounded went away from zero
		n.Sub(n, big.NewInt(int64(d.m.Sign())))
	}
	return n
}

// float is the shortest decimal of the binary number of 64 bits that is next to d.
func (d dec) float() dec {
	f, _ := strconv.ParseFloat(d.String(), 64)
	out, ok := parseDec(strconv.FormatFloat(f, 'e', -1, 64))
	if !ok {
		return d
	}
	return out
}

// number is d's floor as a value of a column: exact reports that it is d, beyond is the sign of
// d if it is greater or less than every value of a column.
func (d dec) number() (n view.Number, exact bool, beyond int) {
	m, exact := d.floor(view.MaxScale)
	n, ok := view.NumberOf(m)
	if !ok {
		return n, false, m.Sign()
	}
	return n, exact, 0
}
