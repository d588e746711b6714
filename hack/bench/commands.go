package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/ordergrid/ordergrid/hack/bench/cases"
	"github.com/ordergrid/ordergrid/hack/bench/results"
	"github.com/ordergrid/ordergrid/hack/bench/system"
	"github.com/ordergrid/ordergrid/internal/version"
	"github.com/ordergrid/ordergrid/probe/report"
)

func helpCommand(ctx context.Context, _ []string, out io.Writer) error {
	return runCommand(ctx, []string{"--help"}, out)
}

func listCommand(_ context.Context, args []string, out io.Writer) error {
	fs := flag.NewFlagSet("list", flag.ContinueOnError)
	fs.SetOutput(out)
	expr := fs.String("cases", "", "regular expression over the names of cases; default: all")
	if err := fs.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return nil
		}
		return fmt.Errorf("%w: %w", errUsage, err)
	}
	list := cases.All()
	if *expr != "" {
		var err error
		if list, err = cases.Select(*expr); err != nil {
			return fmt.Errorf("%w: %w", errUsage, err)
		}
	}
	t := report.NewList("", "")
	for _, c := range list {
		t.Add(c.Name, c.Title)
	}
	return t.Text(out)
}

const compareHelp = `usage: go run ./hack/bench compare BEFORE.json AFTER.json

Prints each case and system that both runs have. A difference is shown in per cent
when the ranges of the rounds do not overlap, else as "~". Trust the column "to floor"
between machines or days: both its sides were measured in the same run.
For statistics over rounds: benchstat BEFORE/benchstat.txt AFTER/benchstat.txt.
`

func compareCommand(_ context.Context, args []string, out io.Writer) error {
	if len(args) == 1 && (args[0] == "--help" || args[0] == "-h") {
		fmt.Fprint(out, compareHelp)
		return nil
	}
	if len(args) != 2 {
		return fmt.Errorf("%w: compare takes two files, got %d\n%s", errUsage, len(args), compareHelp)
	}
	before, err := results.ReadJSON(args[0])
	if err != nil {
		return fmt.Errorf("%w: %w", errUsage, err)
	}
	after, err := results.ReadJSON(args[1])
	if err != nil {
		return fmt.Errorf("%w: %w", errUsage, err)
	}
	return results.Compare(out, before, after)
}

const profileHelp = `usage: go run ./hack/bench profile --cases REGEXP [flags]

Runs one case once against the grid, or the system that --systems names, and takes CPU, allocation and block profiles of
primary, backup and client while it is loaded. The files stay in --out (default
out/profile), with a flame graph (SVG) of each CPU profile; the top entries are printed.
To look around in one: go tool pprof -http :8080 out/profile/primary.cpu.pprof

Profiling costs time itself: take no latency from such a run.

Flags:
`

// topEntries of each profile are printed.
const topEntries = 12

func profileCommand(ctx context.Context, args []string, out io.Writer) (err error) {
	b, c, err := begin("profile", profileHelp, []string{"--out", "out/profile", "--duration", "5s", "--cases", "^lo/repl/pipe-64x4$", "--gate", "off"}, args, out, anyCase)
	if b == nil {
		return err
	}
	defer func() { err = errors.Join(err, b.close()) }()
	at, err := b.onGrid(ctx, c)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(b.out, 0o755); err != nil {
		return err
	}
	b.say("profiling %s: %s", c.Name, c.Title)
	res, err := b.runner.Measure(ctx, at, c, b.gridSystem(), b.out)
	if err != nil {
		return err
	}
	b.say("%.0f orders/s, p50 %.1f us while profiled", float64(res.Orders)/res.Elapsed.Seconds(), float64(res.SendToEnd.Percentile(50))/1e3)
	return b.tops(ctx)
}

// begin makes the run of a command for one case: args follow the defaults of its flags, and allowed says what else a case
// has to be, "" for nothing. A nil run without an error: help was asked for.
func begin(name, help string, defaults, args []string, out io.Writer, allowed func(*bench, *cases.Case) string) (*bench, *cases.Case, error) {
	b := &bench{w: out, begin: time.Now()}
	if _, err := b.parse(name, help, append(defaults, args...), out); errors.Is(err, flag.ErrHelp) {
		return nil, nil, nil
	} else if err != nil {
		return nil, nil, err
	}
	c, err := b.oneCase()
	if err != nil {
		return nil, nil, err
	}
	if why := allowed(b, c); why != "" {
		return nil, nil, fmt.Errorf("%w: CASES: value %q, allowed: %s", errUsage, b.cases, why)
	}
	return b, c, nil
}

func anyCase(*bench, *cases.Case) string { return "" }

// oneCase is the case that --cases names.
func (b *bench) oneCase() (*cases.Case, error) {
	chosen, err := cases.Select(b.cases)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errUsage, err)
	}
	if len(chosen) != 1 {
		return nil, fmt.Errorf("%w: CASES: value %q matches %d cases, allowed: one, such as ^%s$", errUsage, b.cases, len(chosen), chosen[0].Name)
	}
	return &chosen[0], nil
}

// onGrid prepares a run of one case against the grid alone; close ends it.
func (b *bench) onGrid(ctx context.Context, c *cases.Case) (system.Place, error) {
	if b.systems == "." {
		b.systems = "^" + cases.Grid + "$"
	}
	if err := b.prepare(ctx); err != nil {
		return nil, err
	}
	at, missing, err := b.place(ctx, c.Network)
	if err == nil && missing != "" {
		err = errors.New(missing)
	}
	return at, err
}

func (b *bench) gridSystem() system.System { return b.runner.Systems[0] }

// tops prints the first entries of every profile.
func (b *bench) tops(ctx context.Context) error {
	for _, kind := range []string{"cpu", "allocs", "block"} {
		files, err := filepath.Glob(filepath.Join(b.out, "*."+kind+".pprof"))
		if err != nil {
			return err
		}
		for _, f := range files {
			args := []string{"tool", "pprof", "-top", fmt.Sprintf("-nodecount=%d", topEntries)}
			if kind == "allocs" {
				args = append(args, "-sample_index=alloc_objects")
			}
			top, err := exec.CommandContext(ctx, "go", append(args, f)...).CombinedOutput()
			if err != nil {
				return fmt.Errorf("go tool pprof %s: %w: %s", f, err, top)
			}
			fmt.Fprintf(b.w, "\n%s\n%s", f, top)
		}
	}
	return b.flames()
}

// flames draws the CPU profiles.
func (b *bench) flames() error {
	files, err := filepath.Glob(filepath.Join(b.out, "*.cpu.pprof"))
	if err != nil {
		return err
	}
	for _, f := range files {
		svg := strings.TrimSuffix(f, ".cpu.pprof") + ".svg"
		if err := drawFlame(svg, f); err != nil {
			return err
		}
		fmt.Fprintf(b.w, "flame graph: %s\n", svg)
	}
	return nil
}

func drawFlame(svg, prof string) error {
	in, err := os.Open(prof)
	if err != nil {
		return err
	}
	defer func() { _ = in.Close() }()
	out, err := os.Create(svg)
	if err != nil {
		return err
	}
	name := strings.TrimSuffix(filepath.Base(svg), ".svg")
	return errors.Join(writeFlameGraph(out, in, "cpu", name+": CPU time by call path, callers below"), out.Close())
}

// machine is one line about where this runs.
func machine() string {
	model := "unknown CPU"
	if b, err := os.ReadFile("/proc/cpuinfo"); err == nil {
		for l := range strings.Lines(string(b)) {
			if k, v, ok := strings.Cut(l, ":"); ok && strings.TrimSpace(k) == "model name" {
				model = strings.TrimSpace(v)
				break
			}
		}
	}
	release, _ := os.ReadFile("/proc/sys/kernel/osrelease") // "": unknown
	return fmt.Sprintf("%s, %d cores, Linux %s, %s, ordergrid %s", model, runtime.NumCPU(), strings.TrimSpace(string(release)), runtime.Version(), version.String())
}
