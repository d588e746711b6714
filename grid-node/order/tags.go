package order

import "bytes"

// Terms are the values of an order message that books need beside Fields. Their slices are
// of the message; nil where it has no such tag.
type Terms struct {
	Stop, OrigClOrdID, MaxFloor, ExecInst, Group, SMP []byte // tags 99, 41, 111, 18, 2362, 2964
}

// Terms reads them in a message that Parse accepted. A data field with a SOH in it may
// mislead it, to the terms that its sender has put there.
func (o *Order) Terms(msg []byte) (t Terms) {
	for i := 0; i < int(o.CheckSumOff)-3; {
		tag := uint32(0)
		for ; i < len(msg) && msg[i]-'0' <= 9; i++ {
			tag = tag*10 + uint32(msg[i]-'0')
		}
		if i == len(msg) || msg[i] != '=' {
			return t
		}
		i++
		from := i
		for i < len(msg) && msg[i] != SOH {
			i++
		}
		v := msg[from:i]
		switch tag {
		case 18:
			t.ExecInst = v
		case 41:
			t.OrigClOrdID = v
		case 99:
			t.Stop = v
		case 111:
			t.MaxFloor = v
		case 2362:
			t.Group = v
		case 2964:
			t.SMP = v
		}
		i++
	}
	return t
}

// Units reads a decimal number at the start of v, up to its end or a SOH, as an integer
// with so many digits behind the point. It reports false for what needs more of them, is
// beyond 2^62, or is no number.
func Units(v []byte, digits uint8) (n int64, ok bool) {
	const most = 1 << 62
	if end := bytes.IndexByte(v, SOH); end >= 0 {
		v = v[:end]
	}
	minus := len(v) > 0 && v[0] == '-'
	if minus {
		v = v[1:]
	}
	behind, point := 0, false
	for _, c := range v {
		switch d := c - '0'; {
		case c == '.' && !point:
			point = true
		case d > 9 || n > (most-9)/10:
			return 0, false
		case point && behind == int(digits):
			if d != 0 {
				return 0, false
			}
		default:
			n, ok = n*10+int64(d), true
			if point {
				behind++
			}
		}
	}
	for ; behind < int(digits); behind++ {
		if n > most/10 {
			return 0, false
		}
		n *= 10
	}
	if minus {
		n = -n
	}
	return n, ok
}
