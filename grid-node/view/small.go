package view

import (
	"math"
	"math/bits"
	"strconv"
)

// Most numbers have a mantissa of 64 bits: these are compared, added and written without math/big, which allocates.

// small returns the mantissa of a number that has 64 bits.
func (n Number) small() (int64, bool) {
	v := int64(n.Lo)
	return v, n.Hi == v>>63
}

// aligned returns two numbers as mantissas of one scale, if both fit.
func aligned(n, m Number) (x, y int64, scale uint8, ok bool) {
	x, okX := n.small()
	y, okY := m.small()
	if n.Scale < m.Scale {
		x, ok = times(x, m.Scale-n.Scale)
		scale = m.Scale
	} else {
		y, ok = times(y, n.Scale-m.Scale)
		scale = n.Scale
	}
	return x, y, scale, ok && okX && okY
}

// times returns v times ten to the power of scale, if it fits.
func times(v int64, scale uint8) (int64, bool) {
	magnitude := uint64(v)
	if v < 0 {
		magnitude = -magnitude
	}
	hi, lo := bits.Mul64(magnitude, pow10[scale])
	if hi != 0 || lo > math.MaxInt64 {
		return 0, false
	}
	if v < 0 {
		return -int64(lo), true
	}
	return int64(lo), true
}

// shortest returns v times ten to the power of -scale, canonical.
func shortest(v int64, scale uint8) Number {
	for _, step := range [...]uint8{8, 8, 4, 2, 1} { // divisions are most of the cost
		if p := int64(pow10[step]); scale >= step && v%p == 0 {
			v, scale = v/p, scale-step
		}
	}
	return Number{Hi: v >> 63, Lo: uint64(v), Scale: scale}
}

// appendSmall appends v times ten to the power of -scale.
func appendSmall(b []byte, v int64, scale int) []byte {
	magnitude := uint64(v)
	if v < 0 {
		b, magnitude = append(b, '-'), -magnitude
	}
	var buf [2 * MaxScale]byte
	digits := strconv.AppendUint(buf[:0], magnitude, 10)
	if scale == 0 {
		return append(b, digits...)
	}
	if whole := len(digits) - scale; whole > 0 {
		b, digits = append(b, digits[:whole]...), digits[whole:]
	} else {
		b = append(b, '0')
	}
	b = append(b, '.')
	for range scale - len(digits) {
		b = append(b, '0')
	}
	return append(b, digits...)
}
