package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestExecutionFlags(t *testing.T) {
	file := filepath.Join(t.TempDir(), "instruments.yaml")
	if err := os.WriteFile(file, []byte("- {symbol: A, tick: \"1\", lot: \"1\", low: \"0\", high: \"9\"}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for f, want := range map[executionFlags]string{
		{"store", "", "group"}: "", {"match", file, "group"}: "", {"match", file, "session"}: "", {"store", file, "group"}: "--instruments", {"match", "", "group"}: "--instruments",
		{"trade", file, "group"}: "--execution", {"match", file + "x", "group"}: "--instruments", {"store", "", "session"}: "--self-trade", {"match", file, "none"}: "--self-trade",
	} {
		x, err := f.options()
		if want == "" && (err != nil || (x != nil) != (f.mode == "match")) || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%+v: %v, %v, want %q", f, x, err, want)
		}
	}
}
