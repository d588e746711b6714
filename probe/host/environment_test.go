package host

import (
	"strings"
	"testing"
)

func TestParseRunning(t *testing.T) {
	n, err := parseRunning([]byte("cpu  1 2 3\nintr " + strings.Repeat("0 ", 50_000) + "\nprocs_running 3\nprocs_blocked 0\n"))
	if err != nil || n != 3 {
		t.Errorf("%d, %v", n, err)
	}
	for _, bad := range []string{"", "cpu 1\n", "procs_running many\n"} {
		if _, err := parseRunning([]byte(bad)); err == nil {
			t.Errorf("%q accepted", bad)
		}
	}
}

func TestQuiet(t *testing.T) {
	l := Limits{MaxBusy: 8, MaxRunning: 2, MaxSteal: 3, MaxForeign: 8}
	for _, c := range []struct {
		s    State
		want bool
	}{
		{State{Busy: 1, Running: 1}, true},
		{State{Busy: 9, Running: 1}, false},
		{State{Busy: 1, Running: 3}, false},
		{State{Busy: 1, Running: 1, Steal: 4}, false},
	} {
		if got := l.quiet(c.s); got != c.want {
			t.Errorf("%s: quiet is %v", c.s, got)
		}
	}
}

func TestJudgeSaysWhat(t *testing.T) {
	l := Limits{MaxSteal: 3, MaxForeign: 8}
	if s := l.Judge(Use{Steal: 2, Foreign: 7}); s != "" {
		t.Errorf("a quiet round is judged %q", s)
	}
	s := l.Judge(Use{Steal: 4, Foreign: 9})
	if want := "4.0 % of CPU time stolen (allowed 3); other processes used 9.0 % of the cores (allowed 8)"; s != want {
		t.Errorf("%q, want %q", s, want)
	}
}

func TestLook(t *testing.T) {
	s, err := Look()
	if err != nil || s.Running < 1 {
		t.Errorf("%+v, %v", s, err)
	}
}
