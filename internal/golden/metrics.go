package golden

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	dto "github.com/prometheus/client_model/go"
)

// Metrics fails the test unless the page has exactly the metrics that g gathers and that match owns:
// name, type, labels, and the help text at the beginning of the meaning. page is the path of
// docs/metrics.md.
func Metrics(t *testing.T, page string, g prometheus.Gatherer, owns func(name string) bool) {
	t.Helper()
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	families, err := g.Gather()
	if err != nil {
		t.Fatal(err)
	}
	onPage := rows(string(text))
	for _, f := range families {
		if !owns(f.GetName()) {
			continue
		}
		want, got := row(f), onPage[f.GetName()]
		delete(onPage, f.GetName())
		if !strings.HasPrefix(got, want) {
			t.Errorf("%s: docs/metrics.md has\n%q, want (more may follow)\n%s |", f.GetName(), got, want)
		}
	}
	for name := range onPage {
		if owns(name) {
			t.Errorf("docs/metrics.md describes %s, which is not exported", name)
		}
	}
}

// AllMetrics is Check for all metrics of a collector, whose names begin with prefix, and promlint's opinion of them.
func AllMetrics(t *testing.T, page, prefix string, c prometheus.Collector) {
	t.Helper()
	reg := prometheus.NewRegistry()
	reg.MustRegister(c)
	Metrics(t, page, reg, func(name string) bool { return strings.HasPrefix(name, prefix) })
	if problems, err := testutil.GatherAndLint(reg); err != nil || len(problems) > 0 {
		t.Errorf("promlint: %v %v", problems, err)
	}
}

// HasMetric reports whether the page has a row for a metric.
func HasMetric(t *testing.T, page, name string) bool {
	t.Helper()
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	return rows(string(text))[name] != ""
}

// rows of the tables of the page, by the name in their first column.
func rows(page string) map[string]string {
	out := map[string]string{}
	for line := range strings.Lines(page) {
		if rest, ok := strings.CutPrefix(line, "| `"); ok {
			if name, _, ok := strings.Cut(rest, "`"); ok {
				out[name] = strings.TrimSpace(line)
			}
		}
	}
	return out
}

// row is the beginning of the line of a family.
func row(f *dto.MetricFamily) string {
	var labels []string
	for _, m := range f.GetMetric() {
		for _, l := range m.GetLabel() {
			if name := "`" + l.GetName() + "`"; !slices.Contains(labels, name) {
				labels = append(labels, name)
			}
		}
	}
	slices.Sort(labels)
	return fmt.Sprintf("| `%s` | %s | %s | %s", f.GetName(), strings.ToLower(f.GetType().String()), strings.Join(labels, " "), strings.ReplaceAll(f.GetHelp(), "|", `\|`))
}
