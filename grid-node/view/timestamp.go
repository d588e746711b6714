package view

import "time"

const (
	secondText = len("20060102-15:04:05")
	nsPerMs    = int64(time.Millisecond)
)

// clock reads UTCTimestamps. Most orders of a stream are of the second of the one before.
type clock struct {
	text [secondText]byte
	ms   int64 // of text
}

// parse returns ms since 1970. Second 60 is the second after it.
func (c *clock) parse(s []byte) (ms int64, ok bool) {
	if len(s) != secondText && len(s) != secondText+4 {
		return 0, false
	}
	if string(s[:secondText]) != string(c.text[:]) {
		if !c.second(s) {
			return 0, false
		}
	}
	if len(s) == secondText {
		return c.ms, true
	}
	a, b, d := s[secondText+1]-'0', s[secondText+2]-'0', s[secondText+3]-'0'
	if s[secondText] != '.' || a > 9 || b > 9 || d > 9 {
		return 0, false
	}
	return c.ms + int64(a)*100 + int64(b)*10 + int64(d), true
}

func (c *clock) second(s []byte) bool {
	var n [secondText]int
	for i, ch := range s[:secondText] {
		switch i {
		case 8, 11, 14:
			continue
		}
		if ch-'0' > 9 {
			return false
		}
		n[i] = int(ch - '0')
	}
	year := n[0]*1000 + n[1]*100 + n[2]*10 + n[3]
	t := time.Date(year, time.Month(n[4]*10+n[5]), n[6]*10+n[7], n[9]*10+n[10], n[12]*10+n[13], n[15]*10+n[16], 0, time.UTC)
	c.ms = t.UnixMilli()
	copy(c.text[:], s)
	return true
}
