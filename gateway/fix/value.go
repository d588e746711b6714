package fix

import (
	"strconv"
	"time"
)

// number reads an unsigned number of up to 18 digits.
func number(v []byte) (n uint64, ok bool) {
	if len(v) == 0 || len(v) > 18 {
		return 0, false
	}
	for _, c := range v {
		if c-'0' > 9 {
			return 0, false
		}
		n = n*10 + uint64(c-'0')
	}
	return n, true
}

// integer reports whether v is a number that may have a sign.
func integer(v []byte) bool {
	if len(v) > 1 && v[0] == '-' {
		v = v[1:]
	}
	_, ok := number(v)
	return ok
}

// decimal reports whether v is digits with at most one point; it may begin with a minus.
func decimal(v []byte) bool {
	if len(v) > 0 && v[0] == '-' {
		v = v[1:]
	}
	digits, points := 0, 0
	for _, c := range v {
		switch {
		case c == '.':
			points++
		case c-'0' <= 9:
			digits++
		default:
			return false
		}
	}
	return digits > 0 && points <= 1
}

// timestamp reads a UTCTimestamp: YYYYMMDD-HH:MM:SS with a fraction of 3, 6, 9 or no
// digits, as unix nanoseconds. Second 60 is a leap second.
func timestamp(v []byte) (ns int64, ok bool) {
	const short = len("20060102-15:04:05")
	switch len(v) {
	case short:
	case short + 4, short + 7, short + 10:
		if v[short] != '.' {
			return 0, false
		}
		fraction, ok := number(v[short+1:])
		if !ok {
			return 0, false
		}
		for i := len(v); i < short+10; i++ {
			fraction *= 10
		}
		ns = int64(fraction)
	default:
		return 0, false
	}
	year, ok1 := number(v[:4])
	month, ok2 := number(v[4:6])
	day, ok3 := number(v[6:8])
	hour, ok4 := number(v[9:11])
	minute, ok5 := number(v[12:14])
	second, ok6 := number(v[15:17])
	if !ok1 || !ok2 || !ok3 || !ok4 || !ok5 || !ok6 || v[8] != '-' || v[11] != ':' || v[14] != ':' || hour > 23 || minute > 59 || second > 60 {
		return 0, false
	}
	date := time.Date(int(year), time.Month(month), int(day), 0, 0, 0, 0, time.UTC)
	if date.Month() != time.Month(month) || year < 1970 || year > 2200 {
		return 0, false
	}
	return date.UnixNano() + int64(hour*3600+minute*60+second)*int64(time.Second) + ns, true
}

// stamper formats times; the same second only once.
type stamper struct {
	second int64
	text   [len("20060102-15:04:05")]byte
}

// append appends a UTCTimestamp with milliseconds.
func (s *stamper) append(dst []byte, ns int64) []byte {
	if second := ns / int64(time.Second); second != s.second || s.text[0] == 0 {
		s.second = second
		copy(s.text[:], time.Unix(second, 0).UTC().AppendFormat(s.text[:0], "20060102-15:04:05"))
	}
	ms := byte(ns / int64(time.Millisecond) % 1000 / 10)
	return append(append(dst, s.text[:]...), '.', '0'+ms/10, '0'+ms%10, '0'+byte(ns/int64(time.Millisecond)%10))
}

func quote(v []byte) string {
	if len(v) > 32 {
		return strconv.QuoteToASCII(string(v[:32])) + "…"
	}
	return strconv.QuoteToASCII(string(v))
}
