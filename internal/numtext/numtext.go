// Package numtext formats numbers for readers.
package numtext

import (
	"math"
	"strconv"
	"strings"
)

// Thousands writes a whole number with separators: 6,000.
func Thousands(v float64) string {
	s := strconv.FormatFloat(math.Abs(math.Round(v)), 'f', 0, 64)
	var b strings.Builder
	if v <= -0.5 {
		b.WriteByte('-')
	}
	for i, c := range s {
		if i > 0 && (len(s)-i)%3 == 0 {
			b.WriteByte(',')
		}
		b.WriteRune(c)
	}
	return b.String()
}

// Short writes a figure with three digits or more: 8.31, 83.1, 831, 8,310.
func Short(v float64) string {
	switch a := math.Abs(v); {
	case a >= 99.95:
		return Thousands(v)
	case a >= 9.995:
		return strconv.FormatFloat(v, 'f', 1, 64)
	}
	return strconv.FormatFloat(v, 'f', 2, 64)
}

// Micros writes a time given in microseconds, with three digits and the unit that fits.
func Micros(us float64) string {
	trim := func(v float64) string { return strconv.FormatFloat(v, 'g', 3, 64) }
	switch {
	case us == 0:
		return "0"
	case us >= 1e6:
		return trim(us/1e6) + " s"
	case us >= 1e3:
		return trim(us/1e3) + " ms"
	}
	return trim(us) + " µs"
}
