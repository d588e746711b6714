package cases

import (
	"fmt"
	"strings"
	"testing"

	"github.com/ordergrid/ordergrid/internal/golden"
)

// Names are what bench.json of two releases is compared by: they stay the same.
func TestNamesStayTheSame(t *testing.T) {
	var b strings.Builder
	seen := map[string]bool{}
	for _, c := range All() {
		if seen[c.Name] {
			t.Errorf("%s stands twice", c.Name)
		}
		seen[c.Name] = true
		fmt.Fprintf(&b, "%s: %s\n", c.Name, c.Title)
	}
	golden.Bytes(t, "testdata/cases.txt", []byte(b.String()))
}

func TestSelect(t *testing.T) {
	for expr, want := range map[string]int{"": 36, ".": 36, "^lo/repl/pingpong$": 1, "rate-6000": 4, "growth": 45, "growth/held": 15, "growth/connections": 7, "growth/partitions": 5, "growth/copies": 6, "growth/payload": 12, "tls": 4, "journal": 4, "sinks": 1, "match": 4} {
		got, err := Select(expr)
		if err != nil || len(got) != want {
			t.Errorf("%q: %d cases, %v, want %d", expr, len(got), err, want)
		}
	}
	if got, err := Select("functions"); err != nil || len(got) != 4 || !got[0].Uses(GridPost) || !got[0].Uses(GridBare) || !got[0].Uses(Grid) || got[0].Uses(GridTLS) {
		t.Errorf("functions: %+v, %v", got, err)
	}
	if standard, _ := Select("^lo/repl/pingpong$"); standard[0].Uses(GridPost) || standard[0].Uses(GridBare) || standard[0].Uses(GridPre) || standard[0].Uses(GridAudit) {
		t.Error("a standard case measures grids with functions")
	}
	for _, c := range Match() {
		if !c.Shape.TwoSided || !c.Uses(Grid) || !c.Uses(GridMatch) || !c.Uses(GridMatchTold) || c.Uses(GridBare) {
			t.Errorf("%+v", c)
		}
	}
	if standard, _ := Select("^lo/repl/pingpong$"); standard[0].Uses(GridMatch) || standard[0].Uses(GridMatchTold) || standard[0].Shape.TwoSided {
		t.Error("a standard case measures grids that match")
	}
	for _, bad := range []string{"(", "nosuch"} {
		if _, err := Select(bad); err == nil || !strings.Contains(err.Error(), fmt.Sprintf("value %q", bad)) {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

// Peers that speak Java take writes on loopback, in every case that is compared.
func TestUsesPeers(t *testing.T) {
	chosen, err := Select(Instead)
	if err != nil || len(chosen) != 4 {
		t.Fatalf("%d cases, %v", len(chosen), err)
	}
	for _, c := range chosen {
		if !c.Uses(Geode) || !c.Uses(Ignite) {
			t.Errorf("%s is not measured", c.Name)
		}
	}
	for _, expr := range []string{"^lo/repl/get$", "^ns/repl/pingpong$", "^tls/pingpong$", "^growth/held-1m-rate-6000$"} {
		if c, err := Select(expr); err != nil || c[0].Uses(Hazelcast) || c[0].Uses(Coherence) {
			t.Errorf("%s: %v, measured", expr, err)
		}
	}
}
