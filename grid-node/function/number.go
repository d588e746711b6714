package function

import (
	"bytes"
	"math"
	"math/bits"

	"github.com/ordergrid/ordergrid/grid-node/order"
)

const places = 8 // of quantity and price in an area

// powers[n] is 10^n.
var powers = [places + 1]uint64{1, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8}

// number reads the FIX number that v begins with, up to SOH, as decimal does: the usual ones
// in one pass. With at most 18 digits nothing overflows before the end.
func number(v []byte) (int64, bool) {
	const digits = 18
	n, point := uint64(0), -1
	for k, c := range v[:min(len(v), digits+2)] {
		if d := c - '0'; d <= 9 {
			n = n*10 + uint64(d)
			continue
		}
		if c == '.' && point < 0 {
			point = k
			continue
		}
		count, after := k, 0
		if point >= 0 {
			count, after = k-1, k-1-point
		}
		if c != order.SOH || count == 0 || count > digits || after > places {
			break
		}
		hi, lo := bits.Mul64(n, powers[places-after])
		if hi != 0 || lo > math.MaxInt64 {
			return 0, false
		}
		return int64(lo), true
	}
	return decimal(v[:max(bytes.IndexByte(v, order.SOH), 0)])
}

// decimal reads a FIX number as an integer of 1e-8. It reports false for what does not fit
// or has more places.
func decimal(v []byte) (int64, bool) {
	n, negative, after, digits := int64(0), false, -1, 0
	for i, c := range v {
		switch {
		case c == '-' && i == 0:
			negative = true
		case c == '.' && after < 0:
			after = 0
		case c >= '0' && c <= '9':
			digits++
			if after >= 0 {
				if after++; after > places {
					if c != '0' {
						return 0, false
					}
					continue
				}
			}
			if n > (1<<63-1-9)/10 {
				return 0, false
			}
			n = n*10 + int64(c-'0')
		default:
			return 0, false
		}
	}
	for after = max(after, 0); after < places; after++ {
		if n > (1<<63-1)/10 {
			return 0, false
		}
		n *= 10
	}
	if negative {
		n = -n
	}
	return n, digits > 0
}
