package system

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ordergrid/ordergrid/grid-node/order"
	"github.com/ordergrid/ordergrid/internal/plot"
	"github.com/ordergrid/ordergrid/probe/published"
)

// questions are such of so many ms, one after the other.
func askedFor(ms ...int) (all []answered) {
	at := time.Duration(0)
	for _, n := range ms {
		took := time.Duration(n) * time.Millisecond
		all = append(all, answered{at: at, took: took, rows: hotRows["X"]})
		at += took
	}
	return all
}

// TestRecovery: questions are as before after the last that is slower than all before the kill.
func TestRecovery(t *testing.T) {
	calm := slices.Repeat([]int{10}, calmRun)
	for name, c := range map[string]struct {
		ms   []int
		want time.Duration
		ok   bool
	}{
		"none slower":      {append(slices.Clone(calm), calm...), 0, true},
		"one slower":       {slices.Concat(calm, []int{500}, calm), 500 * time.Millisecond, true},
		"again and again":  {slices.Concat(calm, []int{500}, calm[1:], []int{100}, calm), 790 * time.Millisecond, true},
		"later":            {slices.Concat(calm, calm, []int{500}, calm), 700 * time.Millisecond, true},
		"as slow before":   {slices.Concat([]int{10, 60}, calm[7:], []int{60}, calm), 0, true},
		"until the end":    {slices.Concat(calm, []int{500}, calm[1:]), 500 * time.Millisecond, false},
		"a little slower":  {slices.Concat(calm, []int{30}, calm), 0, true},
		"nothing is asked": {nil, 0, false},
	} {
		if got, ok := recovery(askedFor(c.ms...), calmRun*10*time.Millisecond, 0.010); got != c.want || ok != c.ok {
			t.Errorf("%s: %v, %v, want %v, %v", name, got, ok, c.want, c.ok)
		}
	}
	refused := askedFor(slices.Concat(calm, []int{10}, calm)...)
	refused[calmRun].err = errors.New("no primary")
	if got, ok := recovery(refused, calmRun*10*time.Millisecond, 0.010); got != 10*time.Millisecond || !ok {
		t.Errorf("a question that is not answered: %v, %v, want 10ms", got, ok)
	}
}

// TestJudgeFailover: a row less is wrong, a recovery that takes longer than published fails, and a run without questions
// before the kill shows nothing.
func TestJudgeFailover(t *testing.T) {
	d, err := published.Load()
	if err != nil {
		t.Fatal(err)
	}
	calm := slices.Repeat([]int{10}, calmRun)
	kill := calmRun * 10 * time.Millisecond
	good := askedFor(slices.Concat(calm, []int{500}, calm)...)
	missing := slices.Clone(good)
	missing[calmRun+3].rows--
	for want, all := range map[Verdict][]answered{
		Pass:    good,
		Wrong:   missing,
		Fail:    askedFor(slices.Concat(calm, []int{16_000}, calm)...),
		Invalid: askedFor(slices.Concat([]int{400}, calm)...),
	} {
		r := &Report{Verdict: Pass}
		judgeFailover(d, r, failures[0], 0, all, kill)
		if r.Verdict != want {
			t.Errorf("verdict %s, want %s: %v", r.Verdict, want, r.Reasons)
		}
		if want == Pass && (len(r.Figures) != 2 || len(r.Charts()) != 1 || r.Rows[0][6] != "0.50") {
			t.Errorf("%d figures, %d charts, rows %v", len(r.Figures), len(r.Charts()), r.Rows)
		}
	}
	for id, want := range map[string][2]int{"dev-s0-1/7": {0, 1}, "dev-s11-0/x": {11, 0}} {
		if shard, ordinal, err := nodeOf(id); err != nil || [2]int{shard, ordinal} != want {
			t.Errorf("%s: %d, %d, %v", id, shard, ordinal, err)
		}
	}
	if _, _, err := nodeOf("pod-1/7"); err == nil {
		t.Error("a node without a shard was found")
	}
}

// TestWideObjects: objects have the fields asked for, and as many as a question is to find are found.
func TestWideObjects(t *testing.T) {
	k := &tier{caches: &caches{p: published.Caches{Rows: 10_000, Caches: 1}}, fields: 100}
	found := 0
	for i := range k.p.Rows {
		fix := k.wide(nil, i)
		if n := bytes.Count(fix, []byte{1}); n != k.fields {
			t.Fatalf("%d fields, want %d: %q", n, k.fields, fix)
		}
		if i < 10 {
			var o order.Order
			if err := order.Parse(fix, &o); err != nil {
				t.Fatalf("%v: %q", err, fix)
			}
		}
		if bytes.Contains(fix, []byte("\x015003=X\x01")) {
			found++
		}
	}
	if found != hotRows["X"] {
		t.Errorf("%d objects are found, want %d", found, hotRows["X"])
	}
}

// TestSized: orders are as long as asked for.
func TestSized(t *testing.T) {
	for _, n := range []int{256, 999, 1000, 1024, 9_999, 10_000, 16_384} {
		o := sized("12345678", n)
		if got := len(o); got > n || got < n-2 {
			t.Errorf("%d bytes, want %d", got, n)
		}
		if err := order.Parse(o, new(order.Order)); err != nil {
			t.Errorf("of %d bytes: %v", n, err)
		}
	}
	if a, b := sized("12345678", 10), sized("12345678", 0); !bytes.Equal(a, b) {
		t.Errorf("%q and %q", a, b)
	}
}

// TestCharts: columns become curves, without what is no number.
func TestCharts(t *testing.T) {
	r := &Report{Scenario: published.LoadScenario, Columns: []string{"loader", "rows", "traffic", "rows/s"}}
	r.row("csv", 1000, 0, "10")
	r.row("csv", 3000, 0, "1,200")
	r.row("csv", 5000, 0, "-")
	r.row("fix", 1000, 0, "11")
	l := r.Charts()
	if len(l) != 1 || len(l[0].Curves) != 1 || !strings.HasPrefix(l[0].Curves[0].Name, "rows/s, loader csv") {
		t.Fatalf("%+v", l)
	}
	if got, want := fmt.Sprint(l[0].Curves[0].Points), fmt.Sprint([]plot.XY{{X: 1000, Y: 10, Lower: 10, Upper: 10}, {X: 3000, Y: 1200, Lower: 1200, Upper: 1200}}); got != want {
		t.Errorf("%s, want %s", got, want)
	}
	for scenario, list := range charts {
		for _, c := range list {
			r := &Report{Scenario: scenario, Columns: append(append([]string{c.x}, c.y...), c.by...)}
			for i := range 2 {
				cells := []any{i + 1}
				for range len(c.y) + len(c.by) {
					cells = append(cells, 7)
				}
				r.row(cells...)
			}
			for _, l := range r.Charts() {
				if d, err := l.Draw(); err != nil || !strings.Contains(d.Inline(), c.title) {
					t.Errorf("%s: %v", scenario, err)
				}
			}
		}
	}
}
