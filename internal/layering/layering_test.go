// Package layering holds docs/architecture.md against the tree: its import rules, and the packages and files it names.
package layering

import (
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
)

const (
	module      = "github.com/ordergrid/ordergrid/"
	rulesTitle  = "Import rules"
	ruleColumns = 4 // package, never depends on, never imports itself, so that
)

// ruleCell is the grammar of a cell: `a`, `b` except `c`, `d`; or empty.
var ruleCell = regexp.MustCompile("^((`[^` ]+`(, |$| except ))*)$")

// set is a cell of the rules: names, and those of them that are excepted.
type set struct{ names, except []string }

// rule is a row of the table "Import rules".
type rule struct {
	of       set // packages it is for: a path, or path/... for all below
	depends  set // prefixes of import paths that are not among their dependencies, transitively; ./... is this module
	imports  set // prefixes that they do not import themselves
	original string
}

// pkg is what go list reports of a package. Imports of tests are not part of it.
type pkg struct {
	ImportPath    string
	Imports, Deps []string
}

var listed = sync.OnceValues(func() ([]pkg, error) {
	cmd := exec.Command("go", "list", "-json=ImportPath,Imports,Deps", "./...")
	cmd.Dir = root
	out, err := cmd.Output()
	if err != nil {
		if exit, ok := errors.AsType[*exec.ExitError](err); ok {
			err = errors.New(string(exit.Stderr))
		}
		return nil, err
	}
	var list []pkg
	for dec := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p pkg
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			return list, nil
		} else if err != nil {
			return nil, err
		}
		list = append(list, p)
	}
})

func TestImportsPointOneWay(t *testing.T) {
	all, err := listed()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	for _, r := range rules(t) {
		t.Run(r.of.names[0], func(t *testing.T) {
			for _, p := range r.packages(t, all) {
				for _, dep := range r.depends.violations(p.Deps) {
					t.Errorf("%s depends on %s, which docs/architecture.md forbids: %s", p.ImportPath, dep, r.original)
				}
				for _, dep := range r.imports.violations(p.Imports) {
					t.Errorf("%s imports %s, which docs/architecture.md forbids: %s", p.ImportPath, dep, r.original)
				}
			}
		})
	}
}

// A rule whose words match nothing would hold whatever the code does.
func TestRulesAreOfThisTree(t *testing.T) {
	all, err := listed()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	known := map[string]bool{}
	for _, p := range all {
		known[p.ImportPath] = true
		for _, d := range p.Deps {
			known[d] = true
		}
	}
	for _, r := range rules(t) {
		for _, word := range slices.Concat(r.depends.names, r.imports.names) {
			if !matchesAny(word, known) {
				t.Errorf("no package depends on %s at all, is it misspelt? Rule: %s", word, r.original)
			}
		}
		of := r.packages(t, all)
		for _, word := range r.depends.except {
			if !slices.ContainsFunc(of, func(p pkg) bool { return len(matching(word, p.Deps)) > 0 }) {
				t.Errorf("the exception %s is not needed any more; remove it. Rule: %s", word, r.original)
			}
		}
		for _, word := range r.of.except {
			free := slices.DeleteFunc(slices.Clone(all), func(p pkg) bool { return !covers(word, p.ImportPath) })
			if !slices.ContainsFunc(free, func(p pkg) bool { return len(r.depends.violations(p.Deps)) > 0 }) {
				t.Errorf("%s keeps to the rule; remove the exception. Rule: %s", word, r.original)
			}
		}
	}
}

// rules are the rows of the table.
func rules(t *testing.T) (list []rule) {
	t.Helper()
	for _, s := range sections(t) {
		if s.title != rulesTitle {
			continue
		}
		for line := range strings.SplitSeq(s.text, "\n") {
			if !strings.HasPrefix(line, "| `") {
				continue
			}
			cells := strings.Split(strings.Trim(line, "|"), "|")
			if len(cells) != ruleColumns {
				t.Fatalf("docs/architecture.md, %s: %d columns, want %d: %s", rulesTitle, len(cells), ruleColumns, line)
			}
			for _, c := range cells[:ruleColumns-1] {
				if c = strings.TrimSpace(c); !ruleCell.MatchString(c) {
					t.Fatalf("docs/architecture.md, %s: cell is %q, allowed: `path`, `path` except `path`, `path`", rulesTitle, c)
				}
			}
			list = append(list, rule{cell(cells[0]), cell(cells[1]), cell(cells[2]), line})
		}
	}
	if len(list) == 0 {
		t.Fatalf("docs/architecture.md has no rows below ## %s", rulesTitle)
	}
	return list
}

func cell(text string) set {
	names, except, _ := strings.Cut(text, " except ")
	raw := func(text string) (list []string) {
		for _, m := range quoted.FindAllStringSubmatch(text, -1) {
			list = append(list, m[1])
		}
		return list
	}
	return set{raw(names), raw(except)}
}

// packages are those that the rule is for, at least one by each name.
func (r *rule) packages(t *testing.T, all []pkg) (list []pkg) {
	t.Helper()
	for _, name := range r.of.names {
		n := len(list)
		for _, p := range all {
			if covers(name, p.ImportPath) && !slices.ContainsFunc(r.of.except, func(e string) bool { return covers(e, p.ImportPath) }) {
				list = append(list, p)
			}
		}
		if len(list) == n {
			t.Errorf("docs/architecture.md, %s: no package is %s", rulesTitle, name)
		}
	}
	return list
}

func (s *set) violations(deps []string) (list []string) {
	for _, name := range s.names {
		for _, dep := range matching(name, deps) {
			if !slices.ContainsFunc(s.except, func(e string) bool { return len(matching(e, []string{dep})) > 0 }) {
				list = append(list, dep)
			}
		}
	}
	return list
}

// covers reports whether the pattern path or path/... is of that package of this module.
func covers(pattern, importPath string) bool {
	tree, all := strings.CutSuffix(pattern, "/...")
	return importPath == module+tree || all && strings.HasPrefix(importPath, module+tree+"/")
}

// matching are the paths that are the word or below it.
func matching(word string, paths []string) (list []string) {
	prefix := word
	if word == "./..." {
		prefix = strings.TrimSuffix(module, "/")
	} else if info, err := os.Stat(filepath.Join(root, word)); err == nil && info.IsDir() {
		prefix = module + word
	}
	for _, p := range paths {
		if p == prefix || strings.HasPrefix(p, prefix+"/") {
			list = append(list, p)
		}
	}
	return list
}

func matchesAny(word string, known map[string]bool) bool {
	for p := range known {
		if len(matching(word, []string{p})) > 0 {
			return true
		}
	}
	return false
}
