package order

import "bytes"

// Terms are the values of an order message that books need beside Fields. Their slices are
// of the message; nil where it has no such tag.
type Terms struct {
	Stop, OrigClOrdID, MaxFloor, ExecInst, Group, SMP []byte // tags 99, 41, 111, 18, 2362, 2964
}

// termPlaces is where the values of Terms are, in the order of its fields.
type termPlaces [6]struct{ from, to uint16 } // from is 0 where there is none

// in returns them.
func (p *termPlaces) in(msg []byte) (t Terms) {
	for i, v := range [...]*[]byte{&t.Stop, &t.OrigClOrdID, &t.MaxFloor, &t.ExecInst, &t.Group, &t.SMP} {
		if p[i].from != 0 {
			*v = msg[p[i].from:p[i].to]
		}
	}
	return t
}

// Terms reads them in a message that Parse accepted. A data field with a SOH in it may
// mislead it, to the terms that its sender has put there.
func (o *Order) Terms(msg []byte) Terms {
	p := o.terms(msg)
	return p.in(msg)
}

// Terms is Order.Terms of the message that Parse accepted last. They are where they are in the
// message that it is like.
func (ls *Layouts) Terms(msg []byte, o *Order) (t Terms) {
	at := ls.fitted - 1
	if at < 0 {
		return o.Terms(msg)
	}
	l := ls.sets[at/layoutWays].ways[at%layoutWays]
	if !l.termed {
		l.terms, l.termed = o.terms(msg), true
		l.bare = l.terms == termPlaces{}
	}
	if !l.bare {
		t = l.terms.in(msg)
	}
	return t
}

func (o *Order) terms(msg []byte) (p termPlaces) {
	for i := 0; i < int(o.CheckSumOff)-3; {
		tag := uint32(0)
		for ; i < len(msg) && msg[i]-'0' <= 9; i++ {
			tag = tag*10 + uint32(msg[i]-'0')
		}
		if i == len(msg) || msg[i] != '=' {
			return p
		}
		i++
		from := i
		for i < len(msg) && msg[i] != SOH {
			i++
		}
		at := -1
		switch tag {
		case 99:
			at = 0
		case 41:
			at = 1
		case 111:
			at = 2
		case 18:
			at = 3
		case 2362:
			at = 4
		case 2964:
			at = 5
		}
		if at >= 0 {
			p[at].from, p[at].to = uint16(from), uint16(i)
		}
		i++
	}
	return p
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
