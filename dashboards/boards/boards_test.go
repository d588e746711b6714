package boards

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/ordergrid/ordergrid/dashboards/grafana"
)

const docsDir = "../../docs"

func all(t *testing.T) map[string]*grafana.Dashboard {
	t.Helper()
	files, err := Files()
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]*grafana.Dashboard{}
	for _, f := range files {
		d := &grafana.Dashboard{}
		if err := json.Unmarshal(f.Data, d); err != nil {
			t.Fatalf("%s: %v", f.Name, err)
		}
		out[f.Name] = d
	}
	if len(out) != 5 {
		t.Fatalf("%d dashboards", len(out))
	}
	return out
}

// eachPanel calls f for every panel that asks something.
func eachPanel(t *testing.T, f func(t *testing.T, d *grafana.Dashboard, p *grafana.Panel)) {
	for name, d := range all(t) {
		for i := range d.Panels {
			if p := &d.Panels[i]; p.Type != "row" {
				t.Run(name+"/"+p.Title, func(t *testing.T) { f(t, d, p) })
			}
		}
	}
}

// TestEveryPanelExplainsItself: what it shows, where to read on, and what stands there when there is nothing to show.
func TestEveryPanelExplainsItself(t *testing.T) {
	eachPanel(t, func(t *testing.T, _ *grafana.Dashboard, p *grafana.Panel) {
		if len(p.Description) < 15 || !strings.HasSuffix(p.Description, ".") {
			t.Errorf("description %q", p.Description)
		}
		if len(p.Links) == 0 {
			t.Error("no link to the documentation")
		}
		if len(p.Targets) == 0 {
			t.Error("asks nothing")
		}
		never := !slices.ContainsFunc(p.Targets, func(q grafana.Target) bool { return !strings.HasSuffix(q.Expr, "or vector(0)") })
		if p.FieldConfig.Defaults.NoValue == "" && !never {
			t.Error("no text for a panel without an answer, and a query that may have none")
		}
	})
}

// TestLinksLeadSomewhere: the page and its headline are in the tree.
func TestLinksLeadSomewhere(t *testing.T) {
	check := func(t *testing.T, url string) {
		page, ok := strings.CutPrefix(url, docsURL)
		if !ok {
			t.Errorf("link %s is not below %s", url, docsURL)
			return
		}
		page, anchor, _ := strings.Cut(page, "#")
		text, err := os.ReadFile(filepath.Join(docsDir, page))
		if err != nil {
			t.Error(err)
			return
		}
		if anchor != "" && !slices.Contains(anchors(string(text)), anchor) {
			t.Errorf("%s has no headline #%s", page, anchor)
		}
	}
	eachPanel(t, func(t *testing.T, _ *grafana.Dashboard, p *grafana.Panel) {
		for _, l := range p.Links {
			check(t, l.URL)
		}
	})
	for _, d := range all(t) {
		for _, l := range d.Links {
			if l.URL != "" {
				check(t, l.URL)
			}
		}
	}
}

var notInAnchor = regexp.MustCompile(`[^\p{L}\p{N} _-]`)

// anchors of a page, as GitHub makes them of its headlines.
func anchors(page string) (out []string) {
	for line := range strings.Lines(page) {
		if title, ok := strings.CutPrefix(strings.TrimLeft(line, "#"), " "); ok && strings.HasPrefix(line, "#") {
			title = notInAnchor.ReplaceAllString(strings.ToLower(strings.TrimSpace(title)), "")
			out = append(out, strings.ReplaceAll(title, " ", "-"))
		}
	}
	return out
}

var metricName = regexp.MustCompile(`\bordergrid_[a-z_]+`)

// TestMetricsAreDocumented: no query or variable names a metric that docs/metrics.md does not.
func TestMetricsAreDocumented(t *testing.T) {
	page, err := os.ReadFile(filepath.Join(docsDir, "metrics.md"))
	if err != nil {
		t.Fatal(err)
	}
	known := func(name string) bool {
		for _, suffix := range []string{"", "_bucket", "_sum", "_count"} {
			if base, ok := strings.CutSuffix(name, suffix); ok && strings.Contains(string(page), "`"+base+"`") {
				return true
			}
		}
		return false
	}
	for file, d := range all(t) {
		var texts []string
		for _, p := range d.Panels {
			for _, q := range p.Targets {
				texts = append(texts, q.Expr)
			}
		}
		for _, a := range d.Annotations.List {
			texts = append(texts, a.Expr)
		}
		for _, v := range d.Templating.List {
			if q, ok := v.Query.(map[string]any); ok {
				texts = append(texts, q["query"].(string))
			}
		}
		for _, name := range metricName.FindAllString(strings.Join(texts, "\n"), -1) {
			if !known(name) {
				t.Errorf("%s: %s is not in docs/metrics.md", file, name)
			}
		}
	}
}

// TestVariables: every variable a query uses is declared, and every one declared is used.
func TestVariables(t *testing.T) {
	used := regexp.MustCompile(`\$\{?([a-z]+)`)
	for file, d := range all(t) {
		var declared, wanted []string
		text := ""
		for _, v := range d.Templating.List {
			declared = append(declared, v.Name)
			if q, ok := v.Query.(map[string]any); ok {
				text += q["query"].(string)
			}
		}
		for _, p := range d.Panels {
			for _, q := range p.Targets {
				text += q.Expr + q.Datasource.UID
			}
		}
		for _, a := range d.Annotations.List {
			text += a.Expr
		}
		for _, m := range used.FindAllStringSubmatch(text, -1) {
			wanted = append(wanted, m[1])
		}
		for _, name := range wanted {
			if !slices.Contains(declared, name) && !strings.HasPrefix(name, "__") {
				t.Errorf("%s uses $%s, which it does not declare", file, name)
			}
		}
		for _, name := range declared {
			if !slices.Contains(wanted, name) {
				t.Errorf("%s declares $%s and does not use it", file, name)
			}
		}
	}
}

// TestLayout: no panel lies on another or beyond the page, and the overview is one screen.
func TestLayout(t *testing.T) {
	for file, d := range all(t) {
		taken, ids, lowest := map[[2]int]string{}, map[int]bool{}, 0
		for _, p := range d.Panels {
			g := p.GridPos
			if g.X+g.W > columns || ids[p.ID] {
				t.Errorf("%s: %q at %+v, id %d", file, p.Title, g, p.ID)
			}
			ids[p.ID] = true
			for x := g.X; x < g.X+g.W; x++ {
				for y := g.Y; y < g.Y+g.H; y++ {
					if other := taken[[2]int{x, y}]; other != "" {
						t.Fatalf("%s: %q lies on %q", file, p.Title, other)
					}
					taken[[2]int{x, y}] = p.Title
				}
			}
			lowest = max(lowest, g.Y+g.H)
		}
		// 1080 lines less Grafana's own head, at 38 a row.
		if file == "overview.json" && lowest > 25 {
			t.Errorf("the overview is %d rows high, more than a screen", lowest)
		}
	}
}
