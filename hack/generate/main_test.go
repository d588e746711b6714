package main

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// TestDrift: a file that differs, one that is missing and one that is no longer generated are all found, and put right.
func TestDrift(t *testing.T) {
	generated, tree := t.TempDir(), t.TempDir()
	write := func(dir, name, content string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write(generated, "same.yaml", "1")
	write(tree, "same.yaml", "1")
	write(generated, "changed.yaml", "2")
	write(tree, "changed.yaml", "1")
	write(generated, "new.yaml", "1")
	write(tree, "stale.yaml", "1")
	write(tree, "README.md", "not derived")

	drifted, err := differing(generated, tree, "*.yaml")
	if err != nil || !slices.Equal(drifted, []string{"changed.yaml", "new.yaml", "stale.yaml"}) {
		t.Fatalf("drifted %v, error %v", drifted, err)
	}
	for _, name := range drifted {
		if err := install(filepath.Join(generated, name), filepath.Join(tree, name)); err != nil {
			t.Fatal(err)
		}
	}
	if drifted, err := differing(generated, tree, "*.yaml"); err != nil || len(drifted) > 0 {
		t.Errorf("still drifted: %v, error %v", drifted, err)
	}
	if _, err := os.Stat(filepath.Join(tree, "README.md")); err != nil {
		t.Error(err)
	}
}
