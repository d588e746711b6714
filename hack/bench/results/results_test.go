package results

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ordergrid/ordergrid/hack/bench/cases"
	"github.com/ordergrid/ordergrid/hack/bench/generator"
	"github.com/ordergrid/ordergrid/internal/golden"
	"github.com/ordergrid/ordergrid/probe/host"
)

// measured is a round with latencies base..base*1.9 us.
func measured(base, n int64, cpu time.Duration, open bool) Round {
	r := Round{Result: generator.Result{Orders: n, Elapsed: time.Second, OwnCPU: cpu / 4, SystemCPU: cpu * 3 / 4, EachCPU: []time.Duration{cpu / 2, cpu / 4},
		Use: host.Use{Steal: 0.5, Foreign: 1.25, LoadBefore: 0.2, LoadAfter: 0.9}}}
	for i := range n {
		ns := base * (1000 + i*900/n)
		r.SendToEnd.Record(ns)
		if open {
			r.CreateToEnd.Record(ns + 20_000)
			r.Lag.Record(3000)
		}
	}
	return r
}

func find(t *testing.T, expr string) *cases.Case {
	t.Helper()
	c, err := cases.Select(expr)
	if err != nil || len(c) != 1 {
		t.Fatalf("%s: %d cases, %v", expr, len(c), err)
	}
	return &c[0]
}

// sample is a latency case and a throughput case with everything that can happen.
func sample(t *testing.T) (list []*cases.Case, rows [][]Row, rounds []map[string][]Round) {
	latency, rate := find(t, "^lo/repl/rate-6000$"), find(t, "^lo/repl/pipe-64x4$")
	bad := measured(500, 10, time.Second, true)
	bad.Bad = "other processes used 30.0 % of the cores (allowed 8)"
	first := map[string][]Round{
		"floor-go": {measured(40, 6000, 300*time.Millisecond, true), bad, measured(42, 6000, 310*time.Millisecond, true), measured(38, 6000, 290*time.Millisecond, true)},
		"floor-c":  {measured(37, 6000, 300*time.Millisecond, true), measured(36, 6000, 300*time.Millisecond, true), measured(35, 6000, 300*time.Millisecond, true)},
		"redis":    {bad, bad, bad},
		"grid":     {measured(45, 6000, 400*time.Millisecond, true), measured(46, 6000, 400*time.Millisecond, true), measured(44, 6000, 400*time.Millisecond, true)},
	}
	second := map[string][]Round{
		"floor-c": {measured(100, 200_000, 1900*time.Millisecond, false)},
		"grid":    {measured(250, 90_000, 1900*time.Millisecond, false)},
	}
	list, rounds = []*cases.Case{latency, rate}, []map[string][]Round{first, second}
	for i, names := range [][]string{{"floor-go", "floor-c", "redis", "grid"}, {"floor-c", "grid"}} {
		var one []Row
		for _, name := range names {
			r := NewRow(list[i], name, rounds[i][name], []int{3, 1}[i], false)
			r.GeneratorCPU = 5.5
			one = append(one, r)
		}
		Judge(list[i], one, func(s string) bool { return strings.HasPrefix(s, "floor") })
		rows = append(rows, one)
	}
	return list, rows, rounds
}

func TestTableAndFiles(t *testing.T) {
	list, rows, rounds := sample(t)
	var table, stat, js bytes.Buffer
	var all []Row
	for i, c := range list {
		if err := Table(&table, c, rows[i]); err != nil {
			t.Fatal(err)
		}
		for _, r := range rows[i] {
			if err := WriteBenchstat(&stat, c, r.System, rounds[i][r.System]); err != nil {
				t.Fatal(err)
			}
		}
		all = append(all, rows[i]...)
	}
	if err := WriteJSON(&js, all); err != nil {
		t.Fatal(err)
	}
	golden.Bytes(t, "testdata/table.txt", table.Bytes())
	golden.Bytes(t, "testdata/benchstat.txt", stat.Bytes())
	golden.Bytes(t, "testdata/bench.json", js.Bytes())
}

// The better floor counts, for latency and for throughput, and a system without
// a valid round has no figure.
func TestJudge(t *testing.T) {
	_, rows, _ := sample(t)
	for _, r := range rows[0] {
		switch {
		case r.System == "redis":
			if r.Valid || r.RatioToFloor != nil || r.P50 != 0 || r.Invalid == "" || r.Bad != 3 {
				t.Errorf("redis: %+v", r)
			}
		case r.Floor != "floor-c" || r.RatioToFloor == nil || !r.Valid:
			t.Errorf("%s: floor %q, ratio %v", r.System, r.Floor, r.RatioToFloor)
		case r.System == "floor-go" && (r.Rounds != 3 || r.Bad != 1):
			t.Errorf("floor-go: %d rounds, %d bad", r.Rounds, r.Bad)
		}
	}
	if got := *rows[1][1].RatioToFloor; got != 0.45 {
		t.Errorf("90,000 of 200,000 orders/s is %v", got)
	}
}

// Without the gate disturbed rounds are shown, and the row is marked.
func TestForcedRowIsInvalid(t *testing.T) {
	bad := measured(40, 100, time.Second, true)
	bad.Bad = "busy"
	r := NewRow(find(t, "^lo/repl/rate-6000$"), "grid", []Round{bad}, 1, true)
	if r.Valid || r.Rounds != 1 || r.P50 == 0 || r.Invalid != "busy" {
		t.Errorf("%+v", r)
	}
	if r.P9999 != nil {
		t.Error("p99.99 of 100 samples")
	}
}

func TestCompare(t *testing.T) {
	_, rows, _ := sample(t)
	before := append(rows[0], rows[1]...)
	after := append([]Row(nil), before...)
	for i := range after {
		if after[i].System == "grid" {
			for _, f := range []*Figures{&after[i].Figures, &after[i].Min, &after[i].Max} {
				f.P50 *= 0.8
			}
		}
	}
	var out bytes.Buffer
	if err := Compare(&out, before, after); err != nil {
		t.Fatal(err)
	}
	golden.Bytes(t, "testdata/compare.txt", out.Bytes())
	if err := Compare(&out, before, nil); err == nil {
		t.Error("nothing in common accepted")
	}
}

func TestReadJSON(t *testing.T) {
	dir := t.TempDir()
	for name, content := range map[string]string{"no json": "x", "another json": `{"a":1}`, "no case": `[{"system":"grid"}]`, "no system": `[{"case":"x"}]`} {
		path := filepath.Join(dir, "bench.json")
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := ReadJSON(path); err == nil || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
