package generator

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ordergrid/ordergrid/probe/fixorder"
	"github.com/ordergrid/ordergrid/probe/report"
)

// line is a result as a program writes it.
func line(t *testing.T, orders int64) string {
	t.Helper()
	r := Result{Orders: orders, Elapsed: time.Second}
	for i := range orders {
		r.SendToEnd.Record(1000 * (1 + i))
	}
	b, err := json.Marshal(map[string]any{"orders": r.Orders, "elapsed": r.Elapsed, "failed": 0, "unsent": 0, "error": "", "send_to_end": r.SendToEnd, "create_to_end": "", "lag": ""})
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func programSpec(program ...string) Spec {
	return Spec{Driver: "some.Class", Addresses: []string{"127.0.0.1=1,2,3"}, Program: program, Shape: Shape{Op: Submit, Threads: 1, Depth: 1},
		Size: fixorder.Size, Copies: 2, Duration: time.Second}
}

// Both words, then the result: the program's CPU time is the generator's.
func TestProgram(t *testing.T) {
	s := programSpec("sh", "-c", `echo measuring; i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done; echo measured; echo "$RESULT"; exit 0`)
	t.Setenv("RESULT", line(t, 100))
	r, err := Run(&s)
	if err != nil {
		t.Fatal(err)
	}
	if r.Orders != 100 || r.SendToEnd.Count() != 100 || r.Elapsed != time.Second || r.OwnCPU < 20*time.Millisecond || len(r.EachCPU) != 0 || r.SystemCPU != 0 {
		t.Errorf("%d orders, %d latencies in %v, CPU %v + %v %v", r.Orders, r.SendToEnd.Count(), r.Elapsed, r.OwnCPU, r.SystemCPU, r.EachCPU)
	}
}

func TestProgramThatFails(t *testing.T) {
	for script, want := range map[string]string{
		"echo no server answers >&2; exit 1":                 "no server answers",
		"echo hello; exec sleep 60":                          `said "hello", wanted: measuring`,
		"echo measuring; echo done":                          `said "done", wanted: measured`,
		"echo measuring; echo measured":                      "ended without a result",
		"echo measuring; echo measured; echo '{'":            "result",
		`echo measuring; echo measured; echo '{"lag":"xx"}'`: "histogram",
		"echo measuring; echo measured; echo '{}'; exit 3":   "exit status 3",
	} {
		s := programSpec("sh", "-c", script)
		if _, err := Run(&s); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want an error with %q", script, err, want)
		}
	}
	s := programSpec("/nosuch/program")
	if _, err := Run(&s); err == nil || !strings.Contains(err.Error(), "/nosuch/program") {
		t.Errorf("%v", err)
	}
}

func TestFollowTellsBothMoments(t *testing.T) {
	var words []string
	r, err := follow(strings.NewReader("measuring\nmeasured\n"+line(t, 3)+"\n"), func(word string) error { words = append(words, word); return nil })
	if err != nil || r.Orders != 3 || !slices.Equal(words, []string{"measuring", "measured"}) {
		t.Errorf("%+v, %v, %v", r, words, err)
	}
	broken := errors.New("broken")
	if _, err := follow(strings.NewReader("measuring\n"), func(string) error { return broken }); !errors.Is(err, broken) {
		t.Errorf("%v", err)
	}
}

func TestProgramArguments(t *testing.T) {
	s := programSpec("java")
	s.Shape.Rate, s.Warmup, s.ProgramWarmup = 6000, 2*time.Second, 15*time.Second
	args, err := programArgs(&s, 7)
	if err != nil {
		t.Fatal(err)
	}
	text := strings.Join(args, " ")
	for _, want := range []string{"--peer some.Class --servers 127.0.0.1=1,2,3", "--rate 6000 --threads 1 --depth 1", "--jvm-warmup-ms 15000 --warmup-ms 2000 --duration-ms 1000"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not in %s", want, text)
		}
	}
	order, err := base64.StdEncoding.DecodeString(args[slices.Index(args, "--order")+1])
	if err != nil || len(order) != fixorder.Size || fixorder.Check(order) != nil {
		t.Errorf("order %q, %v", order, err)
	}
	s.Driver = Null
	if args, err = programArgs(&s, 7); err != nil || args[1] != nothing {
		t.Errorf("%v, %v", args, err)
	}
}

func TestProgramRefuses(t *testing.T) {
	for _, change := range []func(*Spec){
		func(s *Spec) { s.Shape.Op, s.Held = Get, 1 },
		func(s *Spec) { s.Held = 1 },
		func(s *Spec) { s.Series = true },
		func(s *Spec) { s.Shape.Threads = 128 },
		func(s *Spec) { s.Addresses = nil },
	} {
		s := programSpec("true")
		change(&s)
		if _, err := Run(&s); err == nil || !strings.Contains(err.Error(), "allowed") && !strings.Contains(err.Error(), "none given") {
			t.Errorf("%+v: %v", s, err)
		}
	}
}

var _ json.Marshaler = report.Histogram{} // what a program writes is what we would
