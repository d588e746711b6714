package boards

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

const root = "../.."

// TestTree: the files in the tree match the code.
func TestTree(t *testing.T) {
	drifted, err := WriteDerived(root, true)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range drifted {
		t.Errorf("%s differs from what it is derived from; run `make generate` and commit the result", name)
	}
}

// TestDrift: a file that differs, one that is missing and one without a source are found, and corrected.
func TestDrift(t *testing.T) {
	dir := t.TempDir()
	rules := filepath.Join(dir, Rules)
	if err := os.MkdirAll(filepath.Dir(rules), 0o755); err != nil {
		t.Fatal(err)
	}
	write := func(path, text string) {
		t.Helper()
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write(rules, "groups: []\n")
	if _, err := WriteDerived(dir, false); err != nil {
		t.Fatal(err)
	}
	if drifted, err := WriteDerived(dir, true); err != nil || len(drifted) > 0 {
		t.Fatalf("just written: %v, %v", drifted, err)
	}
	write(filepath.Join(dir, Dashboards, "overview.json"), "{}")
	write(filepath.Join(dir, chartJSON, "stale.json"), "{}")
	write(filepath.Join(dir, chartRules), "groups: [other]\n")
	if err := os.Remove(filepath.Join(dir, chartJSON, "latency.json")); err != nil {
		t.Fatal(err)
	}
	want := []string{"charts/ordergrid/files/dashboards/latency.json", "charts/ordergrid/files/dashboards/stale.json", chartRules, "dashboards/overview.json"}
	slices.Sort(want)
	for _, verify := range []bool{true, false} {
		if drifted, err := WriteDerived(dir, verify); err != nil || !slices.Equal(drifted, want) {
			t.Fatalf("verify %v: %v, %v\nwant %v", verify, drifted, err, want)
		}
	}
	if drifted, err := WriteDerived(dir, true); err != nil || len(drifted) > 0 {
		t.Fatalf("corrected: %v, %v", drifted, err)
	}
}
