package results

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/ordergrid/ordergrid/internal/golden"
)

// One line a system, whatever of it was measured.
func TestInstead(t *testing.T) {
	open, one := find(t, "^lo/repl/rate-6000$"), find(t, "^lo/repl/pingpong$")
	disturbed := measured(300, 6000, 300*time.Millisecond, true)
	disturbed.Bad = "30.0 % of CPU time stolen"
	rows := []Row{
		NewRow(open, "redis", []Round{measured(80, 6000, 300*time.Millisecond, true)}, 1, false),
		NewRow(open, "hazelcast", []Round{disturbed}, 1, true),
		NewRow(open, "geode", []Round{disturbed}, 1, false),
		NewRow(one, "redis", []Round{measured(60, 5000, 300*time.Millisecond, false)}, 1, false),
		NewRow(one, "grid", []Round{measured(50, 5000, 300*time.Millisecond, false)}, 1, false),
	}
	var out bytes.Buffer
	if err := Instead(&out, &Run{Machine: "a CPU, 2 cores", Date: "2026-11-21T13:40:00Z", Command: "go run ./hack/bench --peers all"}, rows); err != nil {
		t.Fatal(err)
	}
	golden.Bytes(t, "testdata/instead.md", out.Bytes())
	for l := range strings.Lines(out.String()) { // all lines have the columns
		if strings.HasPrefix(l, "|") && strings.Count(l, "|") != len(columns)+2 {
			t.Errorf("%d columns: %s", strings.Count(l, "|")-1, l)
		}
	}
}
