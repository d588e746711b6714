package results

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

func ran(orders int) *Queries {
	q := &Queries{Orders: orders, Run: Run{Machine: "a machine", Date: "2026-11-28T12:00:00Z", Command: "go run ./hack/bench query"}}
	for _, r := range []Query{
		{Question: Load, System: "grid", Ms: 1200, Times: 1},
		{Question: "get", System: "grid", Ms: 0.05, Times: 100},
		{Question: "get", System: "grid-sql", Ms: 0.09, Times: 100},
		{Question: "count", System: "grid", Ms: 1.5, Times: 9},
		{Question: Drop, System: "grid", Ms: 12, Times: 1},
		{Question: "get", System: "postgresql", Ms: 0.08, Times: 100},
		{Question: "count", System: "coherence", Ms: 900, Times: 3},
		{Question: "group", System: "coherence", Ms: 2000, Times: 3, Wrong: "1 rows, must be 2"},
		{Question: Load, System: "coherence", Ms: 54000, Times: 1, Invalid: "12.0 % of CPU time stolen (allowed 3)"},
	} {
		q.Add(r)
	}
	return q
}

// Goals are judged of a million orders, by figures that count.
func TestGoals(t *testing.T) {
	q := ran(1_000_000)
	q.Judge()
	var got []string
	for i := range q.Goals {
		got = append(got, fmt.Sprintf("%s; %s; %s; %s", q.Goals[i].cells()...))
	}
	want := []string{
		"point get: through SQL, by the native one; at most 2; 1.80; reached",
		"point get: through SQL, by PostgreSQL's; at most 1; 1.12; missed",
		"equality, indexed: the best of Coherence, Hazelcast and Redis, by the grid; at least 10; -; not judged",
		"scan, ms; at most 2; 1.50; reached",
		"scan: Coherence by the grid; at least 400; 600; reached",
		"count and sum by symbol, ms; at most 3; -; not judged",
		"patch: Coherence by the grid; at least 50; -; not judged",
		"load: the faster of Coherence and Hazelcast, by the grid; at least 10; -; not judged",
		"drop, ms; at most 10; 12.0; missed",
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("%s\nwanted\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	q = ran(20_000)
	q.Judge()
	for i := range q.Goals {
		if q.Goals[i].Reached != nil {
			t.Errorf("judged of fewer orders: %+v", q.Goals[i])
		}
	}
}

// A wrong answer has no figure, and fails the run; nor has a system that failed.
func TestQueryTables(t *testing.T) {
	q := ran(1_000_000)
	q.Fail("redis", errors.New("it is full"))
	q.Skipped = []string{"hazelcast: Maven is not installed"}
	q.Judge()
	var text, md strings.Builder
	if err := errors.Join(q.Text(&text), q.Markdown(&md)); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"| ms at p50 | grid | grid-sql | postgresql | coherence | redis |",
		"| load | 1,200 | - | - | 54,000 (INVALID) | FAILED |",
		"| point get | 0.05 | 0.09 | 0.08 | - | FAILED |",
		"| count and sum by symbol | - | - | - | WRONG | FAILED |",
		"- coherence is WRONG about group: 1 rows, must be 2", "- coherence is INVALID: 12.0 % of CPU time stolen (allowed 3)",
		"- redis FAILED: it is full", "- not measured: hazelcast: Maven is not installed",
		"1,000,000 orders of 300 bytes. Command: `go run ./hack/bench query`",
	} {
		if !strings.Contains(md.String(), want+"\n") {
			t.Errorf("%q is not in\n%s", want, &md)
		}
	}
	for _, want := range []string{"WRONG", "missed", "it is full"} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("%q is not in\n%s", want, &text)
		}
	}
	if err := q.Failed(); err == nil || !strings.Contains(err.Error(), "coherence: group: 1 rows, must be 2") || !q.Invalid() {
		t.Errorf("%v", err)
	}
	if q := ran(1); q.Rows[7].Wrong == "" || q.Failed() == nil {
		t.Error("a wrong answer is no failure")
	}
}
