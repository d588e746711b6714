package replica

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/ordergrid/ordergrid/grid-node/store"
)

var updatePage = flag.Bool("update", false, "rewrite the table of docs/replication.md")

// The page has the same table as the code.
func TestStagesPage(t *testing.T) {
	const path, begin, end = "../../docs/replication.md", "<!-- stages -->\n", "\n- **Primary drops"
	page, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	b.WriteString("  | from | to | when |\n  |---|---|---|\n")
	for from := range stageUncounted {
		for to, when := range moves[from] {
			if when != "" {
				fmt.Fprintf(&b, "  | %s | %s | %s |\n", from, stage(to), when)
			}
		}
	}
	before, after, ok := strings.Cut(string(page), begin)
	_, rest, closed := strings.Cut(after, end)
	if !ok || !closed {
		t.Fatalf("%s has no %q", path, begin)
	}
	if want := before + begin + b.String() + end + rest; want != string(page) {
		if *updatePage {
			err = os.WriteFile(path, []byte(want), 0o644)
		} else {
			err = fmt.Errorf("the table of %s is another; run go test ./grid-node/replica -run StagesPage -update", path)
		}
		if err != nil {
			t.Error(err)
		}
	}
}

// A transition that is not in the table ends the replica, as any broken invariant does.
func TestNoOtherMoves(t *testing.T) {
	st, err := store.New(store.Options{Limit: 1 << 20, Block: 4096})
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	for from := range stages {
		for to := range stages {
			self, err := NewMember("a/00000000000000a1", "10.0.0.1:7400")
			if err != nil {
				t.Fatal(err)
			}
			r, err := New(Options{Self: self, Store: st, Replicas: 2, MinInSync: 1})
			if err != nil {
				t.Fatal(err)
			}
			r.out = &Outbox{}
			p := peer{stage: from}
			r.become(&p, to)
			if broken := len(r.out.Actions) > 0; broken != (from != to && moves[from][to] == "") {
				t.Errorf("%s to %s: broken is %v", from, to, broken)
			}
		}
	}
}
