package charts

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// rights are a role's permissions, one line per group, resource, name and verb.
type rights map[string]bool

func (r rights) add(rules []rbacv1.PolicyRule, nameOf func(string) string) {
	for _, rule := range rules {
		names := []string{""}
		if len(rule.ResourceNames) > 0 {
			names = rule.ResourceNames
		}
		for _, url := range rule.NonResourceURLs {
			for _, verb := range rule.Verbs {
				r[strings.Join([]string{"", url, "", verb}, " | ")] = true
			}
		}
		for _, group := range rule.APIGroups {
			for _, resource := range rule.Resources {
				for _, name := range names {
					for _, verb := range rule.Verbs {
						r[strings.Join([]string{group, resource, nameOf(name), verb}, " | ")] = true
					}
				}
			}
		}
	}
}

// pageRights reads the tables of docs/rbac.md: the permissions of each role by the name in its section's title.
func pageRights(t *testing.T) map[string]rights {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("..", "docs", "rbac.md"))
	if err != nil {
		t.Fatal(err)
	}
	title := regexp.MustCompile("^## `([A-Za-z-]+)`")
	page, section := map[string]rights{}, ""
	for line := range strings.Lines(string(data)) {
		if m := title.FindStringSubmatch(line); m != nil {
			section = m[1]
			page[section] = rights{}
			continue
		}
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		if !strings.HasPrefix(line, "|") || strings.HasPrefix(line, "|---") || strings.TrimSpace(cells[0]) == "group" {
			continue
		}
		if len(cells) != 5 || section == "" || strings.TrimSpace(cells[4]) == "" {
			t.Fatalf("docs/rbac.md: %q has to have five cells, the last with a reason, in a section with a role's name", line)
		}
		rule := rbacv1.PolicyRule{APIGroups: list(strings.ReplaceAll(cells[0], `""`, " ")), Resources: list(cells[1]), ResourceNames: []string{strings.TrimSpace(cells[2])}, Verbs: list(cells[3])}
		page[section].add([]rbacv1.PolicyRule{rule}, asGiven)
	}
	return page
}

func list(cell string) (out []string) {
	for item := range strings.SplitSeq(cell, ",") {
		out = append(out, strings.TrimSpace(item))
	}
	return out
}

// wantOnPage compares the permissions of a role with its section.
func wantOnPage(t *testing.T, page map[string]rights, section, role string, got rights) {
	t.Helper()
	want := page[section]
	if want == nil {
		t.Errorf("docs/rbac.md has no section `%s` for %s", section, role)
		return
	}
	for right := range got {
		if !want[right] {
			t.Errorf("%s grants, and section `%s` of docs/rbac.md does not have: %s", role, section, right)
		}
	}
	for right := range want {
		if !got[right] {
			t.Errorf("section `%s` of docs/rbac.md has, and %s does not grant: %s", section, role, right)
		}
	}
}

// made are the sections about roles created by the operator.
var made = []string{"SHARD", "PROBE"}

// TestRBACPage compares docs/rbac.md with every role of the chart, for all values that render one.
func TestRBACPage(t *testing.T) {
	page := pageRights(t)
	seen := map[string]bool{}
	for _, set := range [][]string{
		nil,
		{"drills.namespaces={staging}", "drills.nodeFeaturesNamespace=tools"},
		{"drills.namespaces={*}", "certificates.namespaces={*}"},
		{"certificates.namespaces={desk}", "functions.pullSecrets={desk}"},
		{"functions.pullSecrets={*}"},
		{"clientTokens.namespaces={trading}", "metrics.insecure=Accept"},
		{"drills.namespaces={*}", "watchNamespaces={emea,apac}", "preflight=always"},
	} {
		for key, o := range render(t, set...) {
			section, got := "", rights{}
			switch o.GetKind() {
			case "ClusterRole":
				got.add(as[rbacv1.ClusterRole](t, map[string]*unstructured.Unstructured{key: o}, key).Rules, asGiven)
			case "Role":
				got.add(as[rbacv1.Role](t, map[string]*unstructured.Unstructured{key: o}, key).Rules, asGiven)
			default:
				continue
			}
			section = strings.Replace(o.GetName(), "og-ordergrid", "RELEASE", 1)
			seen[section] = true
			wantOnPage(t, page, section, key, got)
		}
	}
	for section := range page {
		if !seen[section] && !slices.Contains(made, section) {
			t.Errorf("docs/rbac.md has a section `%s`, but the chart renders no such role", section)
		}
	}
}

func asGiven(name string) string { return name }

// wantMadeRolesOnPage compares the page with the Roles that the operator has created for grid rtd and probe pair, as on
// the API server.
func wantMadeRolesOnPage(t *testing.T, cl client.Client) {
	t.Helper()
	page := pageRights(t)
	words := map[*regexp.Regexp]string{
		regexp.MustCompile(`^rtd-p[0-9]+$`): "the grid's own",
		regexp.MustCompile(`^pair-[0-9]+$`): "the probe's channels",
		regexp.MustCompile(`^pair-run$`):    "the probe's start",
	}
	for section, name := range map[string]string{"SHARD": "rtd-s0", "PROBE": "pair"} {
		role := &rbacv1.Role{}
		if err := cl.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: name}, role); err != nil {
			t.Fatal(err)
		}
		got := rights{}
		got.add(role.Rules, func(name string) string {
			for pattern, word := range words {
				if pattern.MatchString(name) {
					return word
				}
			}
			return name
		})
		wantOnPage(t, page, section, "Role/"+name, got)
	}
	var roles rbacv1.RoleList
	if err := cl.List(t.Context(), &roles, client.InNamespace("default"), client.MatchingLabels{"app.kubernetes.io/managed-by": "ordergrid-operator"}); err != nil || len(roles.Items) != len(made) {
		t.Errorf("the operator has made %d Roles, error %v; docs/rbac.md knows %v", len(roles.Items), err, made)
	}
}
