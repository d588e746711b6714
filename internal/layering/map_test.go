package layering

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const page = "../../docs/architecture.md"

var (
	quoted      = regexp.MustCompile("`([^`]+)`")
	alternative = regexp.MustCompile(`^(.*)\{(.*)\}(.*)$`)
)

// The table "Where a thing is done" names the directory of every Go package, or a parent; a
// top-level directory stands for itself only. Every package named in it exists.
func TestEveryPackageIsOnTheMap(t *testing.T) {
	named := namedOnMap(t)
	for _, dir := range packages(t) {
		if !onMap(named, dir) {
			t.Errorf("docs/architecture.md, Where a thing is done: no row names %s or a directory it is in; add one", dir)
		}
	}
	tops := []string{"api", "charts", "client", "cmd", "controllers", "dashboards", "e2e", "gateway", "grid-node", "hack", "images", "internal", "probe"}
	for _, name := range named {
		if top, _, below := strings.Cut(name, "/"); !below || !slices.Contains(tops, top) || strings.ContainsAny(name, "* ") {
			continue // a command, a file beside a named one, a pattern
		}
		if _, err := os.Stat(filepath.Join("../..", name)); err != nil {
			t.Errorf("docs/architecture.md, Where a thing is done: %s is not in the tree any more", name)
		}
	}
}

// namedOnMap are the words in backquotes, with {a,b} expanded.
func namedOnMap(t *testing.T) (names []string) {
	t.Helper()
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	_, table, found := strings.Cut(string(text), "\n## Where a thing is done\n")
	if !found {
		t.Fatalf("%s has no section Where a thing is done", page)
	}
	table, _, _ = strings.Cut(table, "\n## ")
	for _, m := range quoted.FindAllStringSubmatch(table, -1) {
		words := []string{m[1]}
		if a := alternative.FindStringSubmatch(m[1]); a != nil {
			words = nil
			for part := range strings.SplitSeq(a[2], ",") {
				words = append(words, a[1]+strings.TrimSpace(part)+a[3])
			}
		}
		for _, w := range words {
			names = append(names, strings.TrimSuffix(w, "/"))
		}
	}
	return names
}

// packages are the directories with Go files.
func packages(t *testing.T) (dirs []string) {
	t.Helper()
	err := filepath.WalkDir("../..", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := d.Name()
		if d.IsDir() && (name == "testdata" || name == "out" || name == "bin" || strings.HasPrefix(name, ".") && path != "../..") {
			return fs.SkipDir
		}
		if dir := filepath.ToSlash(filepath.Dir(strings.TrimPrefix(path, "../../"))); strings.HasSuffix(name, ".go") && !slices.Contains(dirs, dir) {
			dirs = append(dirs, dir)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return dirs
}

func onMap(named []string, dir string) bool {
	for {
		if slices.Contains(named, dir) {
			return true
		}
		up := filepath.ToSlash(filepath.Dir(dir))
		if !strings.Contains(up, "/") {
			return false
		}
		dir = up
	}
}
