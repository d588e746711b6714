package sim

import (
	"os"
	"strconv"
	"testing"
)

func TestTry(t *testing.T) {
	from, to := uint64(0), uint64(24)
	if s := os.Getenv("SEED"); s != "" {
		n, _ := strconv.ParseUint(s, 10, 64)
		r := Run(n, os.Stdout)
		t.Logf("%v %+v", r.Violation, r.Stats)
		return
	}
	if s := os.Getenv("SEEDS"); s != "" {
		to, _ = strconv.ParseUint(s, 10, 64)
	}
	for seed := from; seed < to; seed++ {
		r := Run(seed, nil)
		if r.Violation != nil {
			t.Logf("seed %d %s: %v", seed, r.Profile, r.Violation)
		}
		if to < 30 {
			t.Logf("seed %d %s: %+v", seed, r.Profile, r.Stats)
		}
	}
}
