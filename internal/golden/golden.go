// Package golden compares what a test has with files that are kept: objects and texts with those in testdata, which
// `go test ./the/package -update` rewrites, and metrics with docs/metrics.md.
package golden

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"testing"

	"sigs.k8s.io/yaml"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// YAML fails t when object, as YAML, differs from the content of file.
func YAML(t *testing.T, file string, object any) {
	t.Helper()
	got, err := yaml.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	Bytes(t, file, got)
}

// Bytes fails t when got differs from the content of file.
func Bytes(t *testing.T, file string, got []byte) {
	t.Helper()
	if *update {
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, got, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatalf("%v; run this test with -update and review the difference", err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s differs; run this test with -update and review the difference\n%s", file, got)
	}
}
