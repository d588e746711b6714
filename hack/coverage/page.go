package main

import (
	"bytes"
	"fmt"
	"path"
	"strings"
)

// render makes the page: counts by report, then a table for each report.
func render(rows []row) []byte {
	var b bytes.Buffer
	b.WriteString(`# What the reports describe, and where it is here

Made by ` + "`go run ./hack/coverage`" + ` from [coverage/features.csv](coverage/features.csv), which lists what five benchmark
reports of order caches describe, and [coverage/status.csv](coverage/status.csv). *Works*: it is here, and what is named
shows it. *Differs*: it is reached another way, or in part. A test refuses a row that works and names no test or
scenario of the tree.

`)
	var reports []string
	of := map[string][]row{}
	for _, r := range rows {
		if of[r.report] == nil {
			reports = append(reports, r.report)
		}
		of[r.report] = append(of[r.report], r)
	}
	fmt.Fprintf(&b, "| report | %s | all |\n|---%s|---:|\n", strings.Join(statuses, " | "), strings.Repeat("|---:", len(statuses)))
	line := func(name string, rows []row) {
		fmt.Fprintf(&b, "| %s ", name)
		for _, s := range statuses {
			fmt.Fprintf(&b, "| %d ", count(rows, s))
		}
		fmt.Fprintf(&b, "| %d |\n", len(rows))
	}
	for _, name := range reports {
		line("["+name+"](#"+slug(name)+")", of[name])
	}
	line("all", rows)
	for _, name := range reports {
		fmt.Fprintf(&b, "\n## %s\n\n| id | section | what | status | where, or why not | shown by |\n|---|---|---|---|---|---|\n", name)
		for _, r := range of[name] {
			fmt.Fprintf(&b, "| %s | %s | %s | %s | %s | %s |\n", r.id, cell(r.section), cell(r.item), r.status, cell(r.words), evidence(r.evidence))
		}
	}
	return b.Bytes()
}

func count(rows []row, status string) (n int) {
	for _, r := range rows {
		if r.status == status {
			n++
		}
	}
	return n
}

func cell(s string) string { return strings.ReplaceAll(s, "|", "\\|") }

// evidence as links and names.
func evidence(s string) string {
	var out []string
	for _, e := range strings.Fields(s) {
		kind, name, _ := strings.Cut(e, ":")
		switch kind {
		case "page":
			file, _, _ := strings.Cut(name, "#")
			out = append(out, fmt.Sprintf("[%s](%s)", path.Base(file), strings.TrimPrefix(name, "docs/")))
		case "test":
			dir, test, _ := strings.Cut(name, ".Test")
			out = append(out, fmt.Sprintf("`%s` Test%s", dir, test))
		default:
			out = append(out, "`"+name+"`")
		}
	}
	return strings.Join(out, ", ")
}
