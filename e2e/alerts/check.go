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
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/ordergrid/ordergrid/e2e/prometheus"
	"github.com/ordergrid/ordergrid/internal/proc"
	"github.com/ordergrid/ordergrid/probe/clock"
)

// Factor divides all durations of the rules while they are tried.
const Factor = 20

// Options of a check.
type Options struct {
	Bin        string         // directory with the programs grid-node, operator and order-probe
	Labels     string         // charts/ordergrid/files/scrape/labels.yaml
	Prometheus string         // the program
	Rules      string         // path of the rules
	Dir        string         // for everything that is written
	Only       *regexp.Regexp // of the names of alerts to cause; nil is all
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
	// without are labels of the world that the alerts do not have.
	without []string
}

// cannot is why a condition cannot be caused on this machine.
type cannot struct{ because string }

func (c cannot) Error() string { return c.because }

// world is the environment of a case.
type world struct {
	grid       *grid
	dir        string
	bin        string // directory with the programs
	targets    string // file of what Prometheus scrapes
	companions []*companion
	ports      proc.HeldPorts // of companions
	peers      [2]string      // addresses of two gateways that know each other, in the case that has them
	// background runs until undo; its error fails the case.
	background func(f func(ctx context.Context) error)
}

// Check causes all conditions that can be caused here, one grid after the other,
// and prints what became of the alerts. It fails if one did not fire or resolve.
func Check(ctx context.Context, o Options, out io.Writer) error {
	if !slices.ContainsFunc(known(), o.wants) {
		return fmt.Errorf("-only: %q matches no name of an alert that is caused here; those are %v", o.Only, known())
	}
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
	r := &results{}
	if err := devCases(ctx, o, r, config, targets); err != nil {
		return err
	}
	if err := operatedCases(ctx, o, r); err != nil {
		return err
	}
	return r.report(out)
}

// known are the alerts that are caused, case by case.
func known() (all [][]alert) {
	for _, c := range cases() {
		all = append(all, c.alerts)
	}
	for _, c := range operated() {
		all = append(all, c.alerts)
	}
	return all
}

// wants reports whether one of the alerts should be tested.
func (o Options) wants(alerts []alert) bool {
	return o.Only == nil || slices.ContainsFunc(alerts, func(a alert) bool { return o.Only.MatchString(a.name) })
}

// devCases are those that need no operator, each with a grid of its own.
func devCases(ctx context.Context, o Options, r *results, config, targets string) error {
	if !slices.ContainsFunc(cases(), func(c oneCase) bool { return o.wants(c.alerts) }) {
		return nil
	}
	server, err := prometheus.Start(ctx, o.Prometheus, o.Dir, config)
	if err != nil {
		return err
	}
	defer server.Stop()
	for i, c := range cases() {
		if !o.wants(c.alerts) {
			continue
		}
		got, err := run(ctx, o, server, c, fmt.Sprintf("grid%d", i), targets)
		if r.add(c.alerts, c.how, got, err); ctx.Err() != nil {
			return ctx.Err()
		}
	}
	return nil
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
	if options.close != nil {
		defer func() { err = errors.Join(err, options.close()) }()
	}
	g, err := startGrid(ctx, filepath.Join(o.Bin, "grid-node"), name, options)
	if err != nil {
		return nil, err
	}
	w := &world{grid: g, dir: dir, bin: o.Bin, targets: targets}
	defer func() {
		err = errors.Join(err, os.WriteFile(targets, []byte("[]"), 0o644), w.endCompanions(), g.stop()) //nolint:gosec // nothing secret
	}()
	if err := w.point(); err != nil {
		return nil, err
	}
	_ = clock.Wait(ctx, 8*time.Second) // a few scrapes of a healthy grid
	running, cancel := context.WithCancel(ctx)
	defer cancel()
	failed := make(chan error, 8)
	w.background = func(f func(context.Context) error) { go func() { failed <- f(running) }() }
	where := map[string]string{"namespace": "check", "grid": name}
	for _, label := range c.without {
		delete(where, label)
	}
	return trial{
		alerts: c.alerts, where: where, how: c.how, limit: c.limit,
		cause: func(ctx context.Context) error { return c.cause(ctx, w) },
		undo: func(ctx context.Context) error {
			cancel()
			if c.undo == nil {
				return nil
			}
			return c.undo(ctx, w)
		},
		problem: func() error {
			select {
			case err := <-failed:
				return err
			default:
				return nil
			}
		},
	}.run(ctx, o, server)
}

// point makes Prometheus scrape the grid and what runs beside it, with the labels that the chart's monitors set.
func (w *world) point() error {
	file, g := w.targets, w.grid
	var groups []map[string]any
	add := func(address string, labels map[string]string) {
		all := map[string]string{"namespace": "check", "grid": g.name}
		maps.Copy(all, labels)
		groups = append(groups, map[string]any{"targets": []string{address}, "labels": all})
	}
	for i, url := range g.HTTP {
		add(strings.TrimPrefix(url, "http://"), map[string]string{"shard": "0", "pod": fmt.Sprintf("%s-s0-%d", g.name, i)})
	}
	for _, c := range w.companions {
		add(c.http, c.labels)
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
