package main

import (
	"bytes"
	"encoding/csv"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/ordergrid/ordergrid/probe/published"
)

// row is one thing that a report describes.
type row struct {
	id, report, section, kind, item string

	status   string // one of statuses
	evidence string // what shows it: test:DIR.NAME, scenario:NAME, page:FILE#ANCHOR; several separated by blanks
	words    string // where it is here, how it differs, or why it is not here
}

// Statuses of a row.
const (
	works    = "works"
	differs  = "differs"
	notBuilt = "not built"
)

var statuses = []string{works, differs, notBuilt}

// read joins the two files, in the order of the list.
func read(root string) ([]row, error) {
	features, err := table(root, "docs/coverage/features.csv", "id,seed,section,kind,item,surface,ordergrid")
	if err != nil {
		return nil, err
	}
	status, err := table(root, "docs/coverage/status.csv", "id,status,evidence,words")
	if err != nil {
		return nil, err
	}
	of := map[string][]string{}
	for _, s := range status {
		if of[s[0]] != nil {
			return nil, fmt.Errorf("docs/coverage/status.csv: %s is there twice", s[0])
		}
		of[s[0]] = s
	}
	var rows []row
	for _, f := range features {
		s := of[f[0]]
		if s == nil {
			return nil, fmt.Errorf("docs/coverage/status.csv: %s (%s) is missing", f[0], f[4])
		}
		delete(of, f[0])
		rows = append(rows, row{id: f[0], report: f[1], section: f[2], kind: f[3], item: f[4], status: s[1], evidence: s[2], words: s[3]})
	}
	for id := range of {
		return nil, fmt.Errorf("docs/coverage/status.csv: %s is not in features.csv", id)
	}
	return rows, nil
}

func table(root, name, head string) ([][]string, error) {
	text, err := os.ReadFile(filepath.Join(root, name))
	if err != nil {
		return nil, err
	}
	r := csv.NewReader(bytes.NewReader(text))
	r.FieldsPerRecord = strings.Count(head, ",") + 1
	lines, err := r.ReadAll()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	if len(lines) == 0 || strings.Join(lines[0], ",") != head {
		return nil, fmt.Errorf("%s: the first line is not %s", name, head)
	}
	return lines[1:], nil
}

// check returns what is wrong with the rows: a status that there is not, a row that works without evidence, evidence that
// is not in the tree.
func check(root string, rows []row) (wrong []error) {
	say := func(r row, format string, args ...any) {
		wrong = append(wrong, fmt.Errorf("docs/coverage/status.csv: %s: %s", r.id, fmt.Sprintf(format, args...)))
	}
	for _, r := range rows {
		if !slices.Contains(statuses, r.status) {
			say(r, "status %q, allowed: %s", r.status, strings.Join(statuses, ", "))
		}
		if r.status != notBuilt && r.evidence == "" {
			say(r, "it %s, and nothing shows it: name a test or a scenario", r.status)
		}
		if r.status != works && r.words == "" {
			say(r, "status %q without words: how it differs, or why it is not here", r.status)
		}
		for _, e := range strings.Fields(r.evidence) {
			if err := shown(root, e); err != nil {
				say(r, "%v", err)
			}
		}
	}
	return wrong
}

var headings = regexp.MustCompile(`(?m)^#+ +(.*)$`)

// shown returns an error unless what the evidence names is in the tree.
func shown(root, evidence string) error {
	kind, name, _ := strings.Cut(evidence, ":")
	switch kind {
	case "test":
		dir, test, _ := strings.Cut(name, ".Test")
		files, _ := filepath.Glob(filepath.Join(root, dir, "*_test.go"))
		for _, f := range files {
			if text, err := os.ReadFile(f); err == nil && bytes.Contains(text, []byte("\nfunc Test"+test+"(")) {
				return nil
			}
		}
		return fmt.Errorf("%s: no test Test%s in %s", evidence, test, dir)
	case "scenario":
		d, err := published.Load()
		if err != nil {
			return err
		}
		if s, ok := d.Scenario(name); !ok || !s.IsRun() && !s.IsSystemScenario() {
			return fmt.Errorf("%s: order-probe runs no such scenario", evidence)
		}
		return nil
	case "page":
		file, anchor, _ := strings.Cut(name, "#")
		text, err := os.ReadFile(filepath.Join(root, file))
		if err != nil {
			return err
		}
		for _, h := range headings.FindAllSubmatch(text, -1) {
			if slug(string(h[1])) == anchor {
				return nil
			}
		}
		if anchor == "" {
			return nil
		}
		return fmt.Errorf("%s: no such heading", evidence)
	}
	return fmt.Errorf("%s: allowed: test:DIR.TestNAME, scenario:NAME, page:FILE#ANCHOR", evidence)
}

var dropped = regexp.MustCompile("[^a-z0-9 _-]")

// slug is the anchor of a heading.
func slug(h string) string {
	return strings.ReplaceAll(dropped.ReplaceAllString(strings.ToLower(h), ""), " ", "-")
}
