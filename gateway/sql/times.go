package sql

import (
	"strconv"
	"strings"
	"time"
)

// Times are microseconds since 1970, as exact as PostgreSQL's.

func microsOf(ns int64) int64 {
	us := ns / 1000
	if ns%1000 < 0 {
		us--
	}
	return us
}

// fields cuts the text of a time into its date, time of day and zone.
func timeFields(s string) (date, clock, zone string) {
	s = strings.TrimSpace(s)
	date = s
	if i := strings.IndexAny(s, "Tt "); i > 0 {
		date, clock = s[:i], strings.TrimSpace(s[i+1:])
	}
	i := 0
	for i < len(clock) && (isDigit(clock[i]) || clock[i] == ':' || clock[i] == '.') {
		i++
	}
	return date, clock[:i], strings.TrimSpace(clock[i:])
}

// parseTime reads a time in ISO 8601's order; now is for words.
func parseTime(s string, zone *time.Location, now time.Time) (us int64, ok bool) {
	switch fold(strings.TrimSpace(s)) {
	case "now":
		return now.UnixMicro(), true
	case "epoch":
		return 0, true
	case "today", "yesterday", "tomorrow":
		days := map[string]int{"today": 0, "yesterday": -1, "tomorrow": 1}[fold(strings.TrimSpace(s))]
		l := now.In(zone)
		return time.Date(l.Year(), l.Month(), l.Day()+days, 0, 0, 0, 0, zone).UnixMicro(), true
	}
	date, clock, z := timeFields(s)
	part := strings.Split(date, "-")
	if len(part) != 3 || len(part[0]) != 4 {
		return 0, false
	}
	var n [3]int
	for i, p := range part {
		v, err := strconv.Atoi(p)
		if err != nil || len(p) > 4 || !isDigit(p[0]) {
			return 0, false
		}
		n[i] = v
	}
	day, ok := parseClock(clock)
	if !ok || n[0] < 1 || n[1] < 1 || n[1] > 12 || n[2] < 1 || n[2] > time.Date(n[0], time.Month(n[1])+1, 0, 0, 0, 0, 0, time.UTC).Day() {
		return 0, false
	}
	if z != "" {
		if zone, ok = parseZone(z); !ok {
			return 0, false
		}
	}
	sec := int(day / time.Second)
	t := time.Date(n[0], time.Month(n[1]), n[2], sec/3600, sec/60%60, sec%60, 0, zone)
	return t.UnixMicro() + int64(day%time.Second/time.Microsecond), true
}

// looksLikeTime reports whether a text that is no time has the form of one.
func looksLikeTime(s string) bool {
	date, clock, _ := timeFields(s)
	parts := append(strings.Split(date, "-"), strings.Split(clock, ":")...)
	if len(parts) < 4 {
		return false
	}
	for _, p := range parts {
		if strings.Trim(p, "0123456789.") != "" || p == "" && clock != "" {
			return false
		}
	}
	return len(parts[0]) == 4
}

// dotted reports whether a text is numbers and dots, of which PostgreSQL takes some for dates: 1.2.3 and 125.250.
func dotted(s string) bool {
	s = strings.TrimSpace(s)
	return strings.Contains(s, ".") && strings.Trim(s, "0123456789.") == ""
}

// parseClock reads 9:30, 09:30:15 or 09:30:15.123456; more digits are rounded.
func parseClock(s string) (time.Duration, bool) {
	if s == "" {
		return 0, true
	}
	part := strings.Split(s, ":")
	if len(part) < 2 || len(part) > 3 {
		return 0, false
	}
	var total time.Duration
	for i, unit := range []time.Duration{time.Hour, time.Minute} {
		v, err := strconv.Atoi(part[i])
		if err != nil || len(part[i]) > 2 || v >= []int{25, 60}[i] {
			return 0, false
		}
		total += time.Duration(v) * unit
	}
	if len(part) == 3 {
		whole, frac, _ := strings.Cut(part[2], ".")
		v, err := strconv.Atoi(whole)
		if err != nil || len(whole) > 2 || v > 60 || len(frac) > 20 || strings.Trim(frac, "0123456789") != "" {
			return 0, false
		}
		total += time.Duration(v) * time.Second
		digits := (frac + "0000000")[:7]
		us, _ := strconv.Atoi(digits[:6])
		if digits[6] >= '5' {
			us++
		}
		total += time.Duration(us) * time.Microsecond
	}
	return total, total <= 24*time.Hour
}

// parseZone reads Z, +02, +02:30, -0500, or a name.
func parseZone(s string) (*time.Location, bool) {
	switch fold(s) {
	case "z", "utc", "gmt", "zulu":
		return time.UTC, true
	}
	if s[0] != '+' && s[0] != '-' {
		l, err := LoadZone(s)
		return l, err == nil
	}
	d := strings.ReplaceAll(s[1:], ":", "")
	if len(d) == 1 || len(d) == 3 {
		d = "0" + d
	}
	v, err := strconv.Atoi((d + "000000")[:6])
	if err != nil || len(d) > 6 || len(d)%2 != 0 || v < 0 || v/10000 > 15 || v/100%100 > 59 {
		return nil, false
	}
	sec := v/10000*3600 + v/100%100*60 + v%100
	if s[0] == '-' {
		sec = -sec
	}
	return time.FixedZone("", sec), true
}

// LoadZone finds a time zone by its name. The directory of zones is only read for names that
// can be one.
func LoadZone(name string) (*time.Location, error) {
	switch fold(name) {
	case "utc", "gmt", "etc/utc", "z", "zulu", "universal":
		return time.UTC, nil
	}
	if len(name) == 0 || len(name) > 64 || fold(name) == "local" || strings.Trim(fold(name), "abcdefghijklmnopqrstuvwxyz0123456789_/+-") != "" {
		return nil, Refuse(StateParameter, "invalid value for parameter \"TimeZone\": \"%s\"", clip(name))
	}
	l, err := time.LoadLocation(name)
	if err != nil {
		return nil, Refuse(StateParameter, "invalid value for parameter \"TimeZone\": \"%s\"", clip(name)).hint("Use UTC, or a name such as Europe/Zurich.")
	}
	return l, nil
}

// intervalUnits of time, in microseconds. Months have no fixed length.
var intervalUnits = map[string]int64{
	"microsecond": 1, "microseconds": 1, "millisecond": 1e3, "milliseconds": 1e3, "ms": 1e3, "second": 1e6, "seconds": 1e6, "sec": 1e6, "secs": 1e6, "s": 1e6,
	"minute": 60e6, "minutes": 60e6, "min": 60e6, "mins": 60e6, "m": 60e6, "hour": 3600e6, "hours": 3600e6, "h": 3600e6,
	"day": 86400e6, "days": 86400e6, "d": 86400e6, "week": 7 * 86400e6, "weeks": 7 * 86400e6, "w": 7 * 86400e6,
}

// parseInterval reads "90 minutes", "1 day 2 hours", "01:30:00". Days are of 24 hours.
func parseInterval(s string) (us int64, ok bool) {
	words := strings.Fields(fold(s))
	for i := 0; i < len(words); i++ {
		w := words[i]
		if strings.Contains(w, ":") {
			d, good := parseClock(strings.TrimPrefix(w, "-"))
			if !good {
				return 0, false
			}
			if w[0] == '-' {
				d = -d
			}
			us += d.Microseconds()
			continue
		}
		n := 0
		for n < len(w) && (isDigit(w[n]) || n == 0 && (w[0] == '-' || w[0] == '+')) {
			n++
		}
		v, err := strconv.ParseInt(w[:n], 10, 32)
		unit := w[n:]
		if unit == "" && i+1 < len(words) {
			i++
			unit = words[i]
		}
		per := intervalUnits[unit]
		if err != nil || per == 0 || v > 1<<20 && per > 60e6 {
			return 0, false
		}
		us += v * per
	}
	return us, len(words) > 0
}

// appendTime writes a time as PostgreSQL does with DateStyle ISO.
func appendTime(dst []byte, us int64, zone *time.Location) []byte {
	t := time.UnixMicro(us).In(zone)
	bc := t.Year() <= 0
	if bc {
		t = t.AddDate(1-2*t.Year(), 0, 0)
	}
	dst = t.AppendFormat(dst, "2006-01-02 15:04:05")
	if us := t.Nanosecond() / 1000; us != 0 {
		f := strconv.AppendInt(nil, int64(us)+1e6, 10)[1:]
		for f[len(f)-1] == '0' {
			f = f[:len(f)-1]
		}
		dst = append(append(dst, '.'), f...)
	}
	_, off := t.Zone()
	sign := byte('+')
	if off < 0 {
		sign, off = '-', -off
	}
	dst = append(dst, sign, byte('0'+off/36000), byte('0'+off/3600%10))
	if off%3600 != 0 {
		dst = append(dst, ':', byte('0'+off/600%6), byte('0'+off/60%10))
		if off%60 != 0 {
			dst = append(dst, ':', byte('0'+off%60/10), byte('0'+off%10))
		}
	}
	if bc {
		dst = append(dst, " BC"...)
	}
	return dst
}
