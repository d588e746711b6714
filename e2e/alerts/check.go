package alerts

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/ordergrid/ordergrid/e2e/prometheus"
)

// Factor divides all durations of the rules while they are tried.
const Factor = 20

// Options of a check.
type Options struct {
	GridNode   string // the program
	Prometheus string // the program
	Rules      string // path of the rules
	Dir        string // for everything that is written
	Only       string // part of an alert's name; "" is all
	Say        func(format string, args ...any)
}

// alert names one of the rules' alerts; labels tell several of one name apart.
type alert struct {
	name   string
	labels map[string]string
}

func (a alert) String() string {
	var l []string
	for _, k := range slices.Sorted(maps.Keys(a.labels)) {
		l = append(l, k+"="+a.labels[k])
	}
	if len(l) == 0 {
		return a.name
	}
	return a.name + " (" + strings.Join(l, ", ") + ")"
}

// oneCase causes the conditions of alerts and ends them.
type oneCase struct {
	alerts []alert
	how    string
	grid   func(dir string) (gridOptions, error)
	// cause returns when the condition is there, or keeps it up on a goroutine of
	// w until undo.
	cause func(ctx context.Context, w *world) error
	undo  func(ctx context.Context, w *world) error
	limit time.Duration // for firing; 0 is a minute
}

// world is what a case works on.
type world struct {
	grid *grid
	dir  string
	// background runs until undo; its error fails the case.
	background func(f func(ctx context.Context) error)
}

// row is what came of one alert.
type row struct {
	alert           alert
	how             string
	fired, resolved time.Duration // 0: did not
	problem         error
}

// resolveLimit is how long an alert may go on after its cause has ended.
const resolveLimit = 2 * time.Minute

// Check causes all conditions that can be caused here, one grid after the other,
// and prints what became of the alerts. It fails if one did not fire or resolve.
func Check(ctx context.Context, o Options, out io.Writer) error {
	rules, err := os.ReadFile(o.Rules)
	if err != nil {
		return err
	}
	config, targets := filepath.Join(o.Dir, "prometheus.yml"), filepath.Join(o.Dir, "targets.json")
	for name, text := range map[string]string{
		filepath.Join(o.Dir, "rules.yml"): string(Shorten(rules, Factor)), targets: "[]",
		config: `global: {scrape_interval: 1s, scrape_timeout: 900ms, evaluation_interval: 1s}
rule_files: [rules.yml]
scrape_configs:
  - job_name: ordergrid-node
    scrape_native_histograms: true
    file_sd_configs: [{files: [targets.json], refresh_interval: 1s}]
`} {
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil { //nolint:gosec // nothing secret
			return err
		}
	}
	server, err := prometheus.Start(ctx, o.Prometheus, o.Dir, config)
	if err != nil {
		return err
	}
	defer server.Stop()
	var rows []row
	for i, c := range cases() {
		if !slices.ContainsFunc(c.alerts, func(a alert) bool { return strings.Contains(a.name, o.Only) }) {
			continue
		}
		got, err := run(ctx, o, server, c, fmt.Sprintf("grid%d", i), targets)
		if err != nil {
			return err
		}
		rows = append(rows, got...)
	}
	return report(out, rows)
}

// run is one case with a grid of its own.
func run(ctx context.Context, o Options, server *prometheus.Server, c oneCase, name, targets string) (rows []row, err error) {
	o.Say("%v: %s", c.alerts, c.how)
	dir := filepath.Join(o.Dir, name)
	if err := os.MkdirAll(dir, 0o755); err != nil { //nolint:gosec // nothing secret
		return nil, err
	}
	var options gridOptions
	if c.grid != nil {
		if options, err = c.grid(dir); err != nil {
			return nil, err
		}
	}
	g, err := startGrid(ctx, o.GridNode, name, options)
	if err != nil {
		return nil, err
	}
	defer func() {
		err = errors.Join(err, os.WriteFile(targets, []byte("[]"), 0o644), g.stop()) //nolint:gosec // nothing secret
	}()
	if err := point(targets, g); err != nil {
		return nil, err
	}
	sleep(ctx, 8*time.Second) // a few scrapes of a grid that is well
	if early := firing(ctx, server, c.alerts, name); len(early) > 0 {
		return nil, fmt.Errorf("%v fires before its condition was caused", early)
	}
	running, cancel := context.WithCancel(ctx)
	failed := make(chan error, 8)
	w := &world{grid: g, dir: dir, background: func(f func(context.Context) error) { go func() { failed <- f(running) }() }}
	defer cancel()
	began := time.Now()
	if err := c.cause(ctx, w); err != nil {
		return nil, err
	}
	fired := await(ctx, server, c.alerts, name, true, max(c.limit, time.Minute))
	cancel()
	ended := time.Now()
	if c.undo != nil {
		if err := c.undo(ctx, w); err != nil {
			return nil, err
		}
	}
	var problem error
	select {
	case problem = <-failed:
	default:
	}
	resolved := await(ctx, server, c.alerts, name, false, resolveLimit)
	for i, a := range c.alerts {
		r := row{alert: a, how: c.how, problem: problem}
		if !fired[i].IsZero() {
			r.fired = fired[i].Sub(began)
		}
		if !resolved[i].IsZero() {
			r.resolved = max(resolved[i].Sub(ended), time.Millisecond)
		}
		o.Say("%v fired after %v, resolved after %v", a, r.fired.Round(100*time.Millisecond), r.resolved.Round(100*time.Millisecond))
		rows = append(rows, r)
	}
	return rows, nil
}

// point makes Prometheus scrape the grid, with the labels that the chart's monitors set.
func point(file string, g *grid) error {
	var groups []map[string]any
	for i, url := range g.HTTP {
		groups = append(groups, map[string]any{"targets": []string{strings.TrimPrefix(url, "http://")},
			"labels": map[string]string{"namespace": "check", "grid": g.name, "shard": "0", "pod": fmt.Sprintf("%s-s0-%d", g.name, i)}})
	}
	b, err := json.Marshal(groups)
	if err != nil {
		return err
	}
	if err := os.WriteFile(file+".new", b, 0o644); err != nil { //nolint:gosec // nothing secret
		return err
	}
	return os.Rename(file+".new", file) // never half of it
}

// firing are those of the alerts that fire for the grid now.
func firing(ctx context.Context, server *prometheus.Server, wanted []alert, grid string) (found []alert) {
	now, err := server.Alerts(ctx)
	if err != nil {
		return nil // asked again soon
	}
	for _, a := range wanted {
		if slices.ContainsFunc(now, func(p prometheus.Alert) bool {
			ok := p.State == "firing" && p.Labels["alertname"] == a.name && p.Labels["grid"] == grid
			for k, v := range a.labels {
				ok = ok && p.Labels[k] == v
			}
			return ok
		}) {
			found = append(found, a)
		}
	}
	return found
}

// await waits until each of the alerts fires, or none does any more, and says
// when that was; a zero time: not within the limit.
func await(ctx context.Context, server *prometheus.Server, wanted []alert, grid string, fires bool, limit time.Duration) []time.Time {
	when, left := make([]time.Time, len(wanted)), len(wanted)
	for end := time.Now().Add(limit); left > 0 && time.Now().Before(end) && ctx.Err() == nil; sleep(ctx, 200*time.Millisecond) {
		now := firing(ctx, server, wanted, grid)
		for i, a := range wanted {
			is := slices.ContainsFunc(now, func(b alert) bool { return a.String() == b.String() })
			if when[i].IsZero() && is == fires {
				when[i] = time.Now()
				left--
			}
		}
	}
	return when
}

func report(out io.Writer, rows []row) error {
	t := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "alert\thow caused\tfired after\tresolved after")
	bad := 0
	seconds := func(d time.Duration) string {
		if d == 0 {
			return "NOT"
		}
		return fmt.Sprintf("%.1f s", d.Seconds())
	}
	for _, r := range rows {
		if r.fired == 0 || r.resolved == 0 || r.problem != nil {
			bad++
		}
		fmt.Fprintf(t, "%v\t%s\t%s\t%s\n", r.alert, r.how, seconds(r.fired), seconds(r.resolved))
		if r.problem != nil {
			fmt.Fprintf(t, "\t%v\t\t\n", r.problem)
		}
	}
	fmt.Fprintln(t, "\t\t\t")
	fmt.Fprintln(t, "not caused here\tbecause\t\t")
	for _, n := range notCaused {
		fmt.Fprintf(t, "%v\t%s\t\t\n", n.alert, n.because)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	if bad > 0 {
		return fmt.Errorf("%d of %d alerts did not fire, or did not resolve", bad, len(rows))
	}
	return nil
}
