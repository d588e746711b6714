// Package alerts causes the conditions of alert rules for real, in grids of real
// processes that a real Prometheus scrapes, and sees each alert fire and resolve.
package alerts

import (
	"fmt"
	"regexp"
	"strconv"
	"time"
)

// leastRange holds four scrapes a second apart: rate and increase need two.
const leastRange = 4 * time.Second

var (
	ranges = regexp.MustCompile(`\[(\d+)([smhd])\]`)
	fors   = regexp.MustCompile(`(?m)^(\s*for: )(\d+)([smhd])$`)
)

var units = map[string]time.Duration{"s": time.Second, "m": time.Minute, "h": time.Hour, "d": 24 * time.Hour}

// Shorten divides every duration of a rules file by factor, so that what takes
// hours can be seen in minutes: `for`, and the ranges in brackets, which do not
// become shorter than four seconds. Nothing else changes: thresholds stay, and
// so do the names of records, with any durations in them.
func Shorten(rules []byte, factor int) []byte {
	short := func(n, unit []byte, least time.Duration) string {
		v, err := strconv.Atoi(string(n))
		if err != nil {
			panic(err) // digits, as matched; no rule has a duration beyond an int
		}
		d := time.Duration(v) * units[string(unit)] / time.Duration(factor)
		if v != 0 {
			d = max(d, least)
		}
		return fmt.Sprintf("%dms", d.Milliseconds())
	}
	rules = ranges.ReplaceAllFunc(rules, func(b []byte) []byte {
		m := ranges.FindSubmatch(b)
		return []byte("[" + short(m[1], m[2], leastRange) + "]")
	})
	return fors.ReplaceAllFunc(rules, func(b []byte) []byte {
		m := fors.FindSubmatch(b)
		return []byte(string(m[1]) + short(m[2], m[3], 0))
	})
}
