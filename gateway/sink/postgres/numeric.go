package postgres

// maxDecimal is the longest decimal number that is encoded: more than any valid order has.
const maxDecimal = 64

// appendNumeric appends a field of type numeric in the binary format: length, number of digits in base 10,000, weight of
// the first one, sign, decimals. It returns ok false, and dst as it was, for text that is no decimal number.
func appendNumeric(dst []byte, text []byte) (_ []byte, ok bool) {
	negative := len(text) > 0 && text[0] == '-'
	if negative {
		text = text[1:]
	}
	// Decimal digits, aligned so that groups of four end at the point.
	var digits [maxDecimal + 8]byte
	point, n := -1, 0
	if len(text) == 0 || len(text) > maxDecimal {
		return dst, false
	}
	for _, c := range text {
		switch {
		case c == '.' && point < 0:
			point = n
		case c-'0' <= 9:
			digits[n] = c - '0'
			n++
		default:
			return dst, false
		}
	}
	if n == 0 {
		return dst, false
	}
	if point < 0 {
		point = n
	}
	scale := n - point
	lead := (4 - point%4) % 4
	copy(digits[lead:], digits[:n])
	clear(digits[:lead])
	n += lead
	clear(digits[n : n+3])
	groups, weight := (n+3)/4, (point+lead)/4-1

	var values [(maxDecimal + 8) / 4]uint16
	for i := range groups {
		d := digits[4*i:]
		values[i] = uint16(d[0])*1000 + uint16(d[1])*100 + uint16(d[2])*10 + uint16(d[3])
	}
	first := 0
	for first < groups && values[first] == 0 {
		first++
		weight--
	}
	for groups > first && values[groups-1] == 0 {
		groups--
	}
	sign := uint16(0)
	if first == groups {
		weight = 0
	} else if negative {
		sign = 0x4000
	}
	dst = be.AppendUint32(dst, uint32(8+2*(groups-first)))
	dst = be.AppendUint16(dst, uint16(groups-first))
	dst = be.AppendUint16(dst, uint16(int16(weight)))
	dst = be.AppendUint16(dst, sign)
	dst = be.AppendUint16(dst, uint16(scale))
	for _, v := range values[first:groups] {
		dst = be.AppendUint16(dst, v)
	}
	return dst, true
}
