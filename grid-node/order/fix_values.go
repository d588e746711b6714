package order

// enum checks a coded value. Versions differ in what they allow.
func (p *parser) enum(tag uint32, off int, v []byte) *Error {
	e, o := &enums[enumIndex(tag)], p.order
	allowed := e.fix44
	switch o.Version {
	case FIX42:
		allowed = e.fix42
	case FIX50:
		allowed = e.fix50
	}
	if len(v) != 1 || !contains(allowed, v[0]) {
		return &Error{Tag: tag, Reason: ReasonEnum, Offset: off, Value: quote(v), Allowed: "one of " + allowed}
	}
	switch tag {
	case 54:
		o.Side = v[0]
	case 40:
		o.OrdType = v[0]
	case 59:
		o.TimeInForce = v[0]
	}
	return nil
}

type enumValues struct{ fix42, fix44, fix50 string }

var enums = [...]enumValues{
	{fix42: "123456789", fix44: "123456789ABCDEFG", fix50: "123456789ABCDEFG"},              // 54 Side
	{fix42: "123456789ABCDEFGHIP", fix44: "12346789DEGIJKLMP", fix50: "12346789DEGIJKLMPQ"}, // 40 OrdType
	{fix42: "0123456", fix44: "01234567", fix50: "0123456789"},                              // 59 TimeInForce
	{fix42: "123", fix44: "123", fix50: "123"},                                              // 21 HandlInst
}

func enumIndex(tag uint32) int {
	switch tag {
	case 54:
		return 0
	case 40:
		return 1
	case 59:
		return 2
	}
	return 3
}

func contains(set string, c byte) bool {
	for i := range len(set) {
		if set[i] == c {
			return true
		}
	}
	return false
}

func maxLen(tag uint32, off int, v []byte, limit int) *Error {
	if len(v) > limit {
		return &Error{Tag: tag, Reason: ReasonTooLong, Offset: off, Value: quote(v), Allowed: "at most " + number(limit) + " characters"}
	}
	return nil
}

// parseUint reads up to limit digits.
func parseUint(v []byte, limit int) (int, bool) {
	if len(v) == 0 || len(v) > limit {
		return 0, false
	}
	n := 0
	for _, c := range v {
		d := c - '0'
		if d > 9 {
			return 0, false
		}
		n = n*10 + int(d)
	}
	return n, true
}

// decimal reports whether v is digits with at most one point, at most 20 characters. A
// signed one may begin with a minus; an unsigned one is not zero.
func decimal(v []byte, signed bool) bool {
	if len(v) > 20 {
		return false
	}
	if signed && len(v) > 0 && v[0] == '-' {
		v = v[1:]
	}
	digits, points, zero := 0, 0, true
	for _, c := range v {
		switch {
		case c == '.':
			points++
		case c-'0' <= 9:
			digits++
			zero = zero && c == '0'
		default:
			return false
		}
	}
	return digits > 0 && points <= 1 && (signed || !zero)
}

// timestamp reports whether v is a UTCTimestamp: YYYYMMDD-HH:MM:SS with or without
// milliseconds; second 60 is a leap second.
func timestamp(v []byte) bool {
	if len(v) != 17 && len(v) != 21 {
		return false
	}
	if v[8] != '-' || v[11] != ':' || v[14] != ':' {
		return false
	}
	if len(v) == 21 && (v[17] != '.' || !digits(v[18:21])) {
		return false
	}
	if !digits(v[:8]) {
		return false
	}
	month, day := two(v[4:]), two(v[6:])
	hour, minute, second := two(v[9:]), two(v[12:]), two(v[15:])
	return month >= 1 && month <= 12 && day >= 1 && day <= daysIn(month, two(v)*100+two(v[2:])) &&
		hour <= 23 && minute <= 59 && second <= 60
}

// two reads two digits, 255 if invalid.
func two(v []byte) int {
	a, b := v[0]-'0', v[1]-'0'
	if a > 9 || b > 9 {
		return 255
	}
	return int(a)*10 + int(b)
}

func digits(v []byte) bool {
	for _, c := range v {
		if c-'0' > 9 {
			return false
		}
	}
	return true
}

func daysIn(month, year int) int {
	switch month {
	case 4, 6, 9, 11:
		return 30
	case 2:
		if year%4 == 0 && (year%100 != 0 || year%400 == 0) {
			return 29
		}
		return 28
	}
	return 31
}
