package derived

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// TestUpdate: a file that differs, one that is missing and one that is not made any more are all found, and put right.
func TestUpdate(t *testing.T) {
	root := t.TempDir()
	if err := os.Mkdir(filepath.Join(root, "in"), 0o755); err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string]string{"same.yaml": "1", "changed.yaml": "1", "stale.yaml": "1", "README.md": "not derived"} {
		if err := os.WriteFile(filepath.Join(root, "in", name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	files := Files{"in/same.yaml": []byte("1"), "in/changed.yaml": []byte("2"), "below/new.yaml": []byte("1")}
	want := []string{"below/new.yaml", "in/changed.yaml", "in/stale.yaml"}
	for _, verify := range []bool{true, false} {
		if drifted, err := files.Update(root, verify, "in/*.yaml"); err != nil || !slices.Equal(drifted, want) {
			t.Fatalf("verify %t: drifted %v, error %v, want %v", verify, drifted, err, want)
		}
	}
	if drifted, err := files.Update(root, true, "in/*.yaml"); err != nil || len(drifted) > 0 {
		t.Errorf("still drifted: %v, error %v", drifted, err)
	}
	if _, err := os.Stat(filepath.Join(root, "in", "README.md")); err != nil {
		t.Error(err)
	}
}
