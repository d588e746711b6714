package main

import (
	"bytes"
	"strings"
	"testing"
)

func TestExitCodes(t *testing.T) {
	small := []string{"-orders", "1", "-faults", "1", "-hand-overs", "0", "-retires", "0"}
	for _, c := range []struct {
		name      string
		args      []string
		code      int
		out, errs string
	}{
		{"holds", small, exitHolds, "holds: I1 I2 I3 I4 I5 I6 I10 I13", ""},
		{"broken", append([]string{"-mutant", "ack-before-backup"}, small...), exitBroken, "broken: I3", ""},
		{"one left out", append([]string{"-except", "I13"}, small...), exitHolds, "holds: I1 I2 I3 I4 I5 I6 I10 I19\n", ""},
		{"mutant escapes", append([]string{"-mutants"}, small...), exitBroken, "a mutant was not caught", ""},
		{"too many members", []string{"-members", "4"}, exitUnknown, "", "members is 4, allowed: 2..3"},
		{"no number", []string{"-orders", "many"}, exitUnknown, "", `invalid value "many" for flag -orders`},
		{"too many orders", []string{"-orders", "4"}, exitUnknown, "", "orders is 4, allowed: 0..3"},
		{"too few members", []string{"-members", "1"}, exitUnknown, "", "members is 1, allowed: 2..3"},
		{"no such mutant", []string{"-mutant", "missing"}, exitUnknown, "", `mutant "missing", allowed: none, ack-before-backup`},
		{"no such invariant", []string{"-except", "I7"}, exitUnknown, "", `invariant "I7", allowed: [I1`},
		{"argument", []string{"fast"}, exitUnknown, "", `argument "fast"`},
	} {
		t.Run(c.name, func(t *testing.T) {
			var out, errs bytes.Buffer
			if code := run(c.args, &out, &errs); code != c.code {
				t.Errorf("exit code %d, want %d\n%s%s", code, c.code, &out, &errs)
			}
			if !strings.Contains(out.String(), c.out) || !strings.Contains(errs.String(), c.errs) {
				t.Errorf("printed\n%s%s\nwant %q and %q", &out, &errs, c.out, c.errs)
			}
		})
	}
}
