package preview

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ordergrid/ordergrid/dashboards/grafana"
)

// Load reads the dashboards of a directory, in the order of their names.
func Load(dir string) ([]*grafana.Dashboard, error) {
	names, err := filepath.Glob(filepath.Join(dir, "*.json"))
	if err != nil {
		return nil, err
	}
	if len(names) == 0 {
		return nil, fmt.Errorf("no *.json in %s; run `go run ./dashboards/cmd/generate`", dir)
	}
	slices.Sort(names)
	var out []*grafana.Dashboard
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err != nil {
			return nil, err
		}
		d := &grafana.Dashboard{}
		if err := json.Unmarshal(text, d); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		out = append(out, d)
	}
	return out, nil
}

// Window is the time range of a dashboard.
type Window struct {
	From, To time.Time
	Step     time.Duration // between two values of a line
	Scrape   time.Duration // scrape interval, as configured in Grafana's data source
}

// builtins are Grafana's own variables.
func (w Window) builtins() map[string]string {
	// As Grafana computes it: at least four scrapes, so that a rate has two samples even when one scrape fails.
	rate := max(w.Step+w.Scrape, 4*w.Scrape)
	return map[string]string{
		"__rate_interval": promDuration(rate), "__interval": promDuration(w.Step), "__range": promDuration(w.To.Sub(w.From).Round(time.Second)),
	}
}

func promDuration(d time.Duration) string { return strconv.FormatInt(d.Milliseconds(), 10) + "ms" }

// expand substitutes $name and ${name}. Longer names first: $__rate_interval contains no other, but $pod might be a
// prefix of one.
func expand(text string, values map[string]string) (string, error) {
	names := make([]string, 0, len(values))
	for n := range values {
		names = append(names, n)
	}
	slices.SortFunc(names, func(a, b string) int { return len(b) - len(a) })
	for _, n := range names {
		text = strings.ReplaceAll(strings.ReplaceAll(text, "${"+n+"}", values[n]), "$"+n, values[n])
	}
	if i := strings.IndexByte(text, '$'); i >= 0 {
		return "", fmt.Errorf("unknown variable: %.60s", text[i:])
	}
	return text, nil
}

var labelValues = regexp.MustCompile(`^label_values\((.*), ([a-z_]+)\)$`)

// Choose finds the values of a dashboard's variables like Grafana, each query limited by the choices before it. A
// variable without a value is an error. all has every variable at All, chosen at all its values by name.
func Choose(c *Client, d *grafana.Dashboard, w Window) (all, chosen map[string]string, err error) {
	all, chosen = w.builtins(), w.builtins()
	for _, v := range d.Templating.List {
		if v.Type != "query" {
			continue
		}
		query, ok := v.Query.(map[string]any)
		if !ok {
			return nil, nil, fmt.Errorf("variable %s: its query is not an object", v.Name)
		}
		m := labelValues.FindStringSubmatch(fmt.Sprint(query["query"]))
		if m == nil {
			return nil, nil, fmt.Errorf("variable %s: %q is not label_values(series, label)", v.Name, query["query"])
		}
		label := m[2]
		match, err := expand(m[1], chosen)
		if err != nil {
			return nil, nil, fmt.Errorf("variable %s: %w", v.Name, err)
		}
		values, err := c.LabelValues(label, match, w)
		if err != nil {
			return nil, nil, fmt.Errorf("variable %s: %w", v.Name, err)
		}
		if len(values) == 0 {
			return nil, nil, fmt.Errorf("variable %s has no value: nothing has the label %s among %s", v.Name, label, match)
		}
		all[v.Name], chosen[v.Name] = v.AllValue, "("+strings.Join(values, "|")+")"
	}
	return all, chosen, nil
}
