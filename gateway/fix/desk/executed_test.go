package desk

import (
	"math/bits"
	"testing"
)

func TestAverage(t *testing.T) {
	for _, c := range []struct {
		price, qty, price2, qty2 int64
		digits                   uint8
		want                     string
	}{
		{500, 40, 0, 0, 2, "5.00"},
		{500, 1, 501, 2, 2, "5.006666"},
		{500, 1, 501, 1, 2, "5.005"},
		{-37, 3, -38, 1, 0, "-37.25"},
		{1 << 62, 1, 1 << 62, 1, 0, "4611686018427387904"},
		{1, 1, 2, 2, 0, "1.6666"},
	} {
		var v [2]uint64
		for _, f := range [][2]int64{{c.price, c.qty}, {c.price2, c.qty2}} {
			hi, lo := bits.Mul64(uint64(f[0]), uint64(f[1]))
			if f[0] < 0 {
				hi -= uint64(f[1])
			}
			var carry uint64
			v[1], carry = bits.Add64(v[1], lo, 0)
			v[0] += hi + carry
		}
		if got := string(average(v, c.qty+c.qty2, c.digits)); got != c.want {
			t.Errorf("%+v: %s, want %s", c, got, c.want)
		}
	}
}
