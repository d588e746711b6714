package local

import (
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestFreeIndex(t *testing.T) {
	all := map[int]string{}
	for i := range maxClusters {
		all[i] = "x"
	}
	for _, c := range []struct {
		name string
		held map[int]string
		used []string
		want int
		err  string
	}{
		{"first", nil, nil, 0, ""},
		{"held by another", map[int]string{0: "a", 1: "b"}, nil, 2, ""},
		{"gap", map[int]string{0: "a", 2: "b"}, nil, 1, ""},
		{"host address inside", nil, []string{"10.180.3.4/32"}, 1, ""},
		{"wider route", nil, []string{"10.180.0.0/15"}, 2, ""},
		{"unrelated routes", nil, []string{"192.0.2.0/24", "10.96.0.0/12", "169.254.0.0/16"}, 0, ""},
		{"all held", all, nil, 0, "take a cluster down"},
		{"the whole of 10/8 is routed", nil, []string{"10.0.0.0/8"}, 0, "host's routes"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var used []netip.Prefix
			for _, prefix := range c.used {
				used = append(used, netip.MustParsePrefix(prefix))
			}
			got, err := freeIndex(c.held, used)
			if c.err == "" && (err != nil || got != c.want) {
				t.Errorf("index %d, %v; want %d", got, err, c.want)
			}
			if c.err != "" && (err == nil || !strings.Contains(err.Error(), c.err)) {
				t.Errorf("error %v does not say %q", err, c.err)
			}
		})
	}
}

func TestParseRoutes(t *testing.T) {
	got, err := parseRoutes([]byte(`[{"dst":"default","gateway":"192.0.2.1"},{"dst":"192.0.2.0/24","dev":"eth0"},
		{"type":"local","dst":"127.0.0.1"},{"type":"local","dst":"10.180.0.254"},{"dst":"0.0.0.0/0"}]`))
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"192.0.2.0/24", "127.0.0.1/32", "10.180.0.254/32"}
	if len(got) != len(want) {
		t.Fatalf("routes are %v, want %v", got, want)
	}
	for i, prefix := range got {
		if prefix.String() != want[i] {
			t.Errorf("route %d is %s, want %s", i, prefix, want[i])
		}
	}
	if _, err := parseRoutes([]byte("Error: no such table")); err == nil {
		t.Error("nonsense was accepted")
	}
}

func TestHeldIndexesForgetsTheDead(t *testing.T) {
	dir, alive := t.TempDir(), t.TempDir()
	for name, content := range map[string]string{"0": alive, "3": filepath.Join(alive, "gone"), "note": "?"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	held := heldIndexes(dir)
	if len(held) != 1 || held[0] != alive {
		t.Errorf("held is %v, want only 0 by %s", held, alive)
	}
	if exists(filepath.Join(dir, "3")) {
		t.Error("the entry of a cluster that is gone was kept")
	}
}
