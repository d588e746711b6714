package main

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
)

// The tables are what the generator writes.
func TestTablesAreGenerated(t *testing.T) {
	dir := t.TempDir()
	if err := run(dir); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"fix42.txt", "fix44.txt", "fix50sp2.txt"} {
		want, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		got, err := os.ReadFile(filepath.Join("..", "..", "..", "..", "gateway", "fix", "dict", name))
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got, want) {
			t.Errorf("gateway/fix/dict/%s is not what the generator writes: run go run ./cmd/dict ../../gateway/fix/dict in e2e/fix", name)
		}
	}
}
