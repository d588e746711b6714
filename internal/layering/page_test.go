package layering

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

const (
	root = "../.."
	page = root + "/docs/architecture.md"
)

var (
	quoted      = regexp.MustCompile("`([^`]+)`")
	alternative = regexp.MustCompile(`^(.*)\{(.*)\}(.*)$`)
	layerTitle  = regexp.MustCompile(`^\d+\. `)
)

// section is a part of the page below a headline of the second level.
type section struct {
	title string
	text  string // without the headline
}

// sections of the page, in its order.
func sections(t *testing.T) (list []section) {
	t.Helper()
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	for part := range strings.SplitSeq("\n"+string(text), "\n## ") {
		title, body, _ := strings.Cut(part, "\n")
		list = append(list, section{title, body})
	}
	return list
}

// layers are the numbered sections.
func layers(t *testing.T) (list []section) {
	t.Helper()
	for _, s := range sections(t) {
		if layerTitle.MatchString(s.title) {
			list = append(list, s)
		}
	}
	return list
}

// unit is what names are resolved in: a row of a table, an item of a list or a paragraph.
type unit struct {
	text  string
	names []string // words in backquotes, with {a,b} expanded
}

// units of a text, without its pictures.
func units(text string) (list []unit) {
	var current []string
	end := func() {
		if len(current) > 0 {
			joined := strings.Join(current, " ")
			list = append(list, unit{joined, words(joined)})
		}
		current = nil
	}
	fenced := false
	for line := range strings.SplitSeq(text, "\n") {
		if strings.HasPrefix(line, "```") {
			fenced = !fenced
			end()
			continue
		}
		if fenced {
			continue
		}
		if line == "" || strings.HasPrefix(line, "|") || strings.HasPrefix(line, "- ") {
			end()
		}
		if line != "" {
			current = append(current, line)
		}
	}
	end()
	return list
}

func words(text string) (list []string) {
	for _, m := range quoted.FindAllStringSubmatch(text, -1) {
		expanded := []string{m[1]}
		if a := alternative.FindStringSubmatch(m[1]); a != nil {
			expanded = nil
			for part := range strings.SplitSeq(a[2], ",") {
				expanded = append(expanded, a[1]+strings.TrimSpace(part)+a[3])
			}
		}
		for _, w := range expanded {
			list = append(list, strings.TrimSuffix(strings.TrimSuffix(w, "/..."), "/"))
		}
	}
	return list
}

// inTree reports whether a file or directory of the tree matches the name, which may be a pattern.
func inTree(name string) bool {
	found, err := filepath.Glob(filepath.Join(root, name))
	return err == nil && len(found) > 0
}

// isPath reports whether a word is meant as a path from the top of the tree.
func isPath(word string) bool {
	top, _, below := strings.Cut(word, "/")
	if !below || top == "" || top == "." || strings.ContainsAny(word, " <>") {
		return false
	}
	info, err := os.Stat(filepath.Join(root, top))
	return err == nil && info.IsDir()
}
