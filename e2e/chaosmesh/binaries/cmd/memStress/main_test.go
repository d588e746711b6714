package main

import "testing"

func TestParse(t *testing.T) {
	const total = 8 << 30
	for size, want := range map[string]uint64{"64MB": 64 << 20, "1gb": 1 << 30, "25%": 2 << 30, "1.5 KB": 1536, "4096": 4096, "0": 0, "100%": total} {
		if got, err := parse(size, total); got != want || err != nil {
			t.Errorf("%q: %d, %v; want %d", size, got, err, want)
		}
	}
	for _, size := range []string{"", "MB", "-1MB", "9GB", "101%", "NaN", "Inf", "1e400", "1TB", "1 2"} {
		if got, err := parse(size, total); err == nil {
			t.Errorf("%q: %d", size, got)
		}
	}
}
