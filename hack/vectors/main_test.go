package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// TestVectors compares docs/protocol/vectors with what the codec makes now.
func TestVectors(t *testing.T) {
	drifted, err := run("../..", true)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range drifted {
		t.Errorf("%s differs from what the codec makes; run `make generate` and read the difference: clients in other languages have to follow", name)
	}
}

// TestRun: a file that is missing, one that differs and one that no command makes are found.
func TestRun(t *testing.T) {
	root := t.TempDir()
	files, err := all()
	if err != nil {
		t.Fatal(err)
	}
	if drifted, err := run(root, false); err != nil || len(drifted) != len(files) {
		t.Fatalf("wrote %v, error %v, want %d files", drifted, err, len(files))
	}
	path := filepath.Join(root, dir, "hashes.json")
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, bytes.Replace(text, []byte("ef46"), []byte("ef47"), 1), 0o644); err != nil {
		t.Fatal(err)
	}
	if drifted, err := run(root, true); err != nil || !slices.Equal(drifted, []string{dir + "/hashes.json"}) {
		t.Errorf("found %v, error %v", drifted, err)
	}
	if err := os.WriteFile(filepath.Join(root, dir, "old.json"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if drifted, err := run(root, true); err != nil || !slices.Contains(drifted, dir+"/old.json") {
		t.Errorf("a file that no command makes passed: found %v, error %v", drifted, err)
	}
}

// TestVectorsCoverFrames: every frame that a client sends or gets has a vector, and one that is refused.
func TestVectorsCoverFrames(t *testing.T) {
	count := func(make func() (file, error)) map[string]int {
		f, err := make()
		if err != nil {
			t.Fatal(err)
		}
		text, err := f.text()
		if err != nil {
			t.Fatal(err)
		}
		var read struct {
			Vectors []struct{ Name, Frame string }
		}
		if err := json.Unmarshal(text, &read); err != nil {
			t.Fatal(err)
		}
		n, names := map[string]int{}, map[string]bool{}
		for _, v := range read.Vectors {
			n[v.Frame]++
			if names[v.Name] {
				t.Errorf("%s: two vectors have the name %q", f.name, v.Name)
			}
			names[v.Name] = true
		}
		return n
	}
	frames, hostile := count(frameVectors), count(hostileVectors)
	for i := range wire.Frames {
		if row := &wire.Frames[i]; ofClient(row) && (frames[row.Name] < 1 || hostile[row.Name] < 4) {
			t.Errorf("%s has %d vectors and %d that are refused, want 1 and 4 or more", row.Name, frames[row.Name], hostile[row.Name])
		}
	}
}
