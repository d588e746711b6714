package layering

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const layerCount = 10

// A layer has a picture, a table and what it never does.
func TestEveryLayerHasItsParts(t *testing.T) {
	list := layers(t)
	if len(list) != layerCount {
		t.Fatalf("docs/architecture.md has %d numbered sections, want %d", len(list), layerCount)
	}
	for i, s := range list {
		if !strings.HasPrefix(s.title, fmt.Sprintf("%d. ", i+1)) {
			t.Errorf("section %q is number %d", s.title, i+1)
		}
		for what, mark := range map[string]string{"picture": "\n```\n", "table": "\n|---|", "paragraph of what it never does": "\nIt never "} {
			if !strings.Contains(s.text, mark) {
				t.Errorf("section %q has no %s", s.title, what)
			}
		}
	}
}

// The numbered sections name the directory of every Go package, or a parent; a top-level directory stands for itself only.
func TestEveryPackageIsOnTheMap(t *testing.T) {
	var named []string
	for _, s := range layers(t) {
		for _, u := range units(s.text) {
			named = append(named, u.names...)
		}
	}
	for _, dir := range packages(t) {
		if !onMap(named, dir) {
			t.Errorf("docs/architecture.md: no numbered section names %s or a directory it is in; add it to the table of its layer", dir)
		}
	}
}

// A path from the top of the tree exists, in any section. A Go file without a directory, and a file of testdata, is in one
// of the directories that the same row or paragraph names.
func TestEveryNamedFileExists(t *testing.T) {
	for _, s := range sections(t) {
		for _, u := range units(s.text) {
			for _, name := range u.names {
				if isPath(name) {
					if !inTree(name) {
						t.Errorf("docs/architecture.md, %s: %s is not in the tree", s.title, name)
					}
					continue
				}
				file := strings.HasSuffix(name, ".go") || strings.HasPrefix(name, "testdata/")
				if file && !strings.Contains(name, " ") && !slices.ContainsFunc(u.names, func(dir string) bool {
					return isPath(dir) && inTree(filepath.Join(dir, name)) || isPath(dir) && inTree(filepath.Join(filepath.Dir(dir), name))
				}) {
					t.Errorf("docs/architecture.md, %s: %s is in no directory named beside it: %.120s", s.title, name, u.text)
				}
			}
		}
	}
}

var (
	link      = regexp.MustCompile(`\]\(([^)#]*)(?:#([^)]*))?\)`)
	headline  = regexp.MustCompile(`(?m)^#+ (.*)$`)
	unlinked  = regexp.MustCompile(`[^\p{L}\p{N}_\- ]`)
	otherSite = regexp.MustCompile(`^[a-z]+://`)
)

// Links lead to files and headlines that exist.
func TestLinksOfThePage(t *testing.T) {
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range link.FindAllStringSubmatch(string(text), -1) {
		target, anchor := m[1], m[2]
		if otherSite.MatchString(target) {
			continue
		}
		path := page
		if target != "" {
			path = filepath.Join(filepath.Dir(page), target)
		}
		linked, err := os.ReadFile(path)
		if err != nil && anchor == "" {
			_, err = os.Stat(path)
		}
		if err != nil {
			t.Errorf("docs/architecture.md links to %s: %v", target, err)
			continue
		}
		if anchor != "" && !slices.Contains(anchors(string(linked)), anchor) {
			t.Errorf("docs/architecture.md links to %s#%s, and there is no such headline", target, anchor)
		}
	}
}

// anchors of a page's headlines, as GitHub makes them.
func anchors(text string) (list []string) {
	for _, m := range headline.FindAllStringSubmatch(text, -1) {
		list = append(list, strings.ReplaceAll(unlinked.ReplaceAllString(strings.ToLower(m[1]), ""), " ", "-"))
	}
	return list
}

// packages are the directories with Go files.
func packages(t *testing.T) (dirs []string) {
	t.Helper()
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := d.Name()
		if d.IsDir() && (name == "testdata" || name == "out" || name == "bin" || strings.HasPrefix(name, ".") && path != root) {
			return fs.SkipDir
		}
		if dir := filepath.ToSlash(filepath.Dir(strings.TrimPrefix(path, root+"/"))); strings.HasSuffix(name, ".go") && !slices.Contains(dirs, dir) {
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
