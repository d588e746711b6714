// Package rules holds the alert and recording rules, as YAML; promtool tests their behaviour, the tests here their
// consistency with the rest of the repository.
package rules

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/ordergrid/ordergrid/internal/golden"
)

const (
	runbooks = "../../docs/runbooks/"
	url      = "https://github.com/ordergrid/ordergrid/blob/main/docs/runbooks/"
)

type rule struct {
	Record, Alert, Expr, For string
	Labels, Annotations      map[string]string
}

func load(t *testing.T) (rules []rule) {
	t.Helper()
	for _, g := range groups(t) {
		rules = append(rules, g.Rules...)
	}
	return rules
}

type group struct {
	Name  string
	Rules []rule
}

func groups(t *testing.T) []group {
	t.Helper()
	var file struct{ Groups []group }
	read(t, "ordergrid.rules.yaml", &file)
	return file.Groups
}

func read(t *testing.T, name string, into any) {
	t.Helper()
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.UnmarshalStrict(b, into); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
}

func alerts(t *testing.T) (names []string) {
	for _, r := range load(t) {
		if r.Alert != "" && !slices.Contains(names, r.Alert) {
			names = append(names, r.Alert)
		}
	}
	if len(names) == 0 {
		t.Fatal("there are no alerts")
	}
	return names
}

func TestAlertAnnotations(t *testing.T) {
	for _, r := range load(t) {
		if r.Alert == "" {
			continue
		}
		if r.For == "" {
			t.Errorf("%s: no for; write 0s for at once", r.Alert)
		}
		if s := r.Labels["severity"]; s != "critical" && s != "warning" {
			t.Errorf("%s: severity is %q, allowed: critical, warning", r.Alert, s)
		}
		if r.Labels["service"] != "ordergrid" {
			t.Errorf("%s: no label service: ordergrid, which dashboards and routes select", r.Alert)
		}
		if r.Annotations["summary"] == "" || r.Annotations["description"] == "" {
			t.Errorf("%s: no summary or no description", r.Alert)
		}
		if want := url + r.Alert + ".md"; r.Annotations["runbook_url"] != want {
			t.Errorf("%s: runbook_url is %q, want %q", r.Alert, r.Annotations["runbook_url"], want)
		}
	}
}

func TestEveryAlertHasItsPageAndEveryPageItsAlert(t *testing.T) {
	names := alerts(t)
	index, err := os.ReadFile(runbooks + "README.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		page, err := os.ReadFile(runbooks + name + ".md")
		if err != nil {
			t.Error(err)
			continue
		}
		for _, part := range []string{"# " + name + "\n", "## What it means\n", "## What to look at\n", "## What to do\n", "## When it resolves\n"} {
			if !strings.Contains(string(page), part) {
				t.Errorf("docs/runbooks/%s.md has no %q", name, strings.TrimSpace(part))
			}
		}
		if !strings.Contains(string(index), "| ["+name+"]("+name+".md) |") {
			t.Errorf("docs/runbooks/README.md does not list %s", name)
		}
	}
	pages, err := filepath.Glob(runbooks + "*.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range pages {
		if name := strings.TrimSuffix(filepath.Base(p), ".md"); name != "README" && !slices.Contains(names, name) {
			t.Errorf("docs/runbooks/%s.md belongs to no alert", name)
		}
	}
}

var (
	quoted = regexp.MustCompile(`"[^"]*"`)
	word   = regexp.MustCompile(`[a-zA-Z_:][a-zA-Z0-9_:]*`)
	parts  = regexp.MustCompile(`_(bucket|count|sum)$`)
)

// ours are names in an expression that are metrics of ours, or of the library used by the operator, or records of this
// file.
func ours(name string) bool {
	return strings.HasPrefix(name, "ordergrid_") || strings.HasPrefix(name, "controller_runtime_") || strings.Contains(name, ":")
}

// docs/metrics.md has exactly the metrics that the code exports (golden.Metrics), so metrics on the page exist.
func TestEveryMetricExists(t *testing.T) {
	rules, records, used := load(t), map[string]bool{}, 0
	for _, r := range rules {
		records[r.Record] = true
	}
	for _, r := range rules {
		for _, name := range word.FindAllString(quoted.ReplaceAllString(r.Expr, ""), -1) {
			if !ours(name) || records[name] {
				continue
			}
			used++
			if base := parts.ReplaceAllString(name, ""); !golden.HasMetric(t, "../../docs/metrics.md", name) && !golden.HasMetric(t, "../../docs/metrics.md", base) {
				t.Errorf("%s%s: docs/metrics.md has no metric %s", r.Alert, r.Record, name)
			}
		}
	}
	if used < len(rules) {
		t.Errorf("%d metrics found in %d rules: this test no longer sees them", used, len(rules))
	}
}

// Each alert, and each of several with the same name, is seen firing and not firing by promtool.
func TestEveryAlertIsTested(t *testing.T) {
	var file struct {
		RuleFiles          []string `json:"rule_files"`
		EvaluationInterval string   `json:"evaluation_interval"`
		GroupEvalOrder     []string `json:"group_eval_order"`
		Tests              []struct {
			Interval    string
			InputSeries []struct{ Series, Values string } `json:"input_series"`
			Checks      []struct {
				EvalTime string `json:"eval_time"`
				Alert    string `json:"alertname"`
				Expected []struct {
					Labels      map[string]string `json:"exp_labels"`
					Annotations map[string]string `json:"exp_annotations"`
				} `json:"exp_alerts"`
			} `json:"alert_rule_test"`
		}
	}
	read(t, "ordergrid.rules_test.yaml", &file)
	for i, g := range groups(t) {
		if i >= len(file.GroupEvalOrder) || file.GroupEvalOrder[i] != g.Name {
			t.Errorf("group_eval_order is %v, want the groups of the rules in their order, %s at %d: promtool evaluates others in random order", file.GroupEvalOrder, g.Name, i)
		}
	}
	quiet, firing := map[string]bool{}, map[string]bool{}
	for _, test := range file.Tests {
		for _, c := range test.Checks {
			if len(c.Expected) == 0 {
				quiet[c.Alert] = true
			}
			for _, e := range c.Expected {
				firing[key(c.Alert, e.Labels)] = true
			}
		}
	}
	for _, r := range load(t) {
		if r.Alert == "" {
			continue
		}
		if !quiet[r.Alert] {
			t.Errorf("%s is in no test that expects it not to fire", r.Alert)
		}
		if !firing[key(r.Alert, r.Labels)] {
			t.Errorf("%s with labels %v is in no test that expects it to fire", r.Alert, r.Labels)
		}
	}
}

// key distinguishes alerts of one name, by the labels that rules set.
func key(alert string, labels map[string]string) string {
	for _, l := range []string{"severity", "seen_by", "window", "cause"} {
		alert += "/" + labels[l]
	}
	return alert
}
