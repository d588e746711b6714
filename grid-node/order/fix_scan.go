package order

import "math/bits"

// Scans of every byte of a message read eight at once, which is safe: envelope has checked
// that there is a SOH before end, where every scan stops, and the seven-byte trailer after
// end.

const (
	ones  = 0x0101010101010101
	highs = 0x80 * ones
)

// readTag reads the tag number at i and returns it and the start of its value; 0 if there
// is no tag.
func readTag(m []byte, i, end int) (tag uint32, value int) {
	x := le.Uint64(m[i:])
	a, b, c := uint32(x&0xff)-'0', uint32(x>>8&0xff)-'0', uint32(x>>16&0xff)-'0'
	const equals = '=' - '0'
	if a-1 <= 8 { // most tags have two or three digits
		switch {
		case b == equals:
			return a, i + 2
		case b > 9:
		case c == equals:
			return a*10 + b, i + 3
		case c <= 9 && x>>24&0xff == '=':
			return a*100 + b*10 + c, i + 4
		}
	}
	return readLongTag(m[:end], i)
}

// readLongTag is readTag for up to nine digits.
func readLongTag(m []byte, start int) (tag uint32, value int) {
	i := start
	for ; i < len(m) && m[i]-'0' <= 9 && i-start < 9; i++ {
		tag = tag*10 + uint32(m[i]-'0')
	}
	if i == len(m) || m[i] != '=' || i == start || m[start] == '0' {
		return 0, 0
	}
	return tag, i + 1
}

// skipPrintable returns the index of the first byte from i on that is not printable ASCII:
// the SOH that ends the field, or an invalid byte.
func skipPrintable(m []byte, i int) int {
	for ; ; i += 8 {
		x := le.Uint64(m[i:])
		// The high bit of each byte below 0x20 or above 0x7e; bits above the lowest one
		// found may be wrong and are not used.
		if odd := ((x-0x20*ones)&^x | (x + ones) | x) & highs; odd != 0 {
			return i + bits.TrailingZeros64(odd)/8
		}
	}
}
