package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/ordergrid/ordergrid/hack/bench/queries"
	"github.com/ordergrid/ordergrid/hack/bench/results"
	"github.com/ordergrid/ordergrid/probe/host"
)

const queryHelp = `usage: go run ./hack/bench query [flags]; make bench PEERS=query

Asks the same questions about the same orders, one client on loopback, one system after the
other: grid (two nodes; by its own client, and through the listener for SQL as grid-sql),
postgresql, redis, hazelcast and coherence. Prints a table and the goals of the grid, and
writes both to --out as query.md and query.json.

Every system is loaded with --orders orders of 300 bytes, asked each question for --warmup
without timing it and for --duration with, and then, unless --changes=false, changed: 40 %
of the orders are patched, and all dropped. Figures are medians, in milliseconds; load,
patch and drop are done once. Every answer is compared with what follows from the orders:
a wrong one is WRONG in place of its figure, and the exit status is 1.

A system that is not installed is skipped, with the reason. PostgreSQL and Redis are those
of this machine (apt-get install postgresql-15 redis-server), Maven fetches Hazelcast and
Coherence (apt-get install maven default-jdk-headless); one that it cannot is FAILED. What each system needs in memory is
said first, and the run refused if this machine has not as much.

Examples:
  go run ./hack/bench query
  go run ./hack/bench query --orders 20000 --gate off --systems '^(grid|redis)$'
  go run ./hack/bench query --orders 10000000 --systems '^grid$' --changes=false

Exit status: 0 measured, 1 a wrong answer or a failure, 2 wrong usage, 3 the machine was
too busy. A goal that was missed is no failure.

Flags:
`

// querySettings are what a user may set.
type querySettings struct {
	queries.Options
	systems, out, redis, gate string
	heap                      int
}

func (s *querySettings) parse(args []string, out io.Writer) error {
	fs := flag.NewFlagSet("query", flag.ContinueOnError)
	fs.SetOutput(io.Discard)
	s.Limits = host.Quiet
	fs.IntVar(&s.Orders, "orders", 1_000_000, "orders that are loaded")
	fs.BoolVar(&s.Changes, "changes", true, "patch and drop the orders too")
	fs.StringVar(&s.systems, "systems", ".", "regular expression over the names of systems; grid-sql comes with grid")
	fs.DurationVar(&s.Warmup, "warmup", 3*time.Second, "how long a question is asked before it is timed")
	fs.DurationVar(&s.Duration, "duration", 3*time.Second, "how long it is timed; three times at the least")
	fs.DurationVar(&s.Patience, "patience", time.Minute, "longest wait for a quiet machine before a system")
	fs.StringVar(&s.gate, "gate", "on", "on: wait for a quiet machine; off: measure now, and mark what was disturbed INVALID")
	fs.IntVar(&s.heap, "heap", 0, "MiB of heap of each server of Hazelcast and Coherence; default: 2048 for a million orders, 512 or more")
	fs.StringVar(&s.redis, "redis", "", "redis-server to use; default: the one in PATH")
	fs.StringVar(&s.out, "out", "out/bench", "directory of query.md and query.json")
	fs.Float64Var(&s.Limits.MaxSteal, "max-steal", s.Limits.MaxSteal, "per cent of CPU time stolen above which figures do not count")
	fs.Float64Var(&s.Limits.MaxForeign, "max-foreign", s.Limits.MaxForeign, "per cent of the cores used by other processes above which figures do not count")
	err := fs.Parse(args)
	switch {
	case errors.Is(err, flag.ErrHelp):
		fmt.Fprint(out, queryHelp)
		fs.SetOutput(out)
		fs.PrintDefaults()
		return flag.ErrHelp
	case err != nil:
	case fs.NArg() > 0:
		err = fmt.Errorf("%q: allowed: flags", fs.Arg(0))
	default:
		err = s.check()
	}
	if err != nil {
		return fmt.Errorf("%w: %w", errUsage, err)
	}
	return nil
}

// Orders have ClOrdIDs of nine digits.
const minOrders, maxOrders = 1_000, 100_000_000

func (s *querySettings) check() error {
	_, err := regexp.Compile(s.systems)
	switch {
	case err != nil:
		return fmt.Errorf("--systems: value %q, allowed: a regular expression: %w", s.systems, err)
	case s.Orders < minOrders || s.Orders > maxOrders:
		return fmt.Errorf("--orders: value %d, allowed: %d to %d", s.Orders, minOrders, maxOrders)
	case s.Warmup < 0 || s.Warmup > time.Hour:
		return fmt.Errorf("--warmup: value %v, allowed: 0 to 1h", s.Warmup)
	case s.Duration < 0 || s.Duration > time.Hour:
		return fmt.Errorf("--duration: value %v, allowed: 0 to 1h", s.Duration)
	case s.gate != "on" && s.gate != "off":
		return fmt.Errorf("--gate: value %q, allowed: on, off", s.gate)
	case s.heap != 0 && s.heap < 256:
		return fmt.Errorf("--heap: value %d, allowed: 256 or more, 0 for as much as the orders need", s.heap)
	}
	if s.redis != "" {
		if _, err := os.Stat(s.redis); err != nil {
			return fmt.Errorf("--redis: value %q, allowed: the path of redis-server: %w", s.redis, err)
		}
	}
	s.Gate = s.gate == "on"
	return nil
}

func queryCommand(ctx context.Context, args []string, out io.Writer) (err error) {
	var s querySettings
	if err := s.parse(args, out); errors.Is(err, flag.ErrHelp) {
		return nil
	} else if err != nil {
		return err
	}
	b := &bench{w: out, begin: time.Now()}
	if b.dir, err = os.MkdirTemp("", "ordergrid-bench-"); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.close()) }()
	b.run.Command = strings.TrimSpace("go run ./hack/bench query " + quoted(args))
	b.run.Machine, b.run.Date = machine(), b.begin.UTC().Format(time.RFC3339)
	if load, err := host.Take(nil); err == nil {
		b.run.Before = load.Load1
	}
	b.say("%s", b.run.Machine)
	systems, skipped, err := b.querySystems(&s)
	if err != nil {
		return err
	}
	r := queries.Runner{Options: s.Options, Say: b.say}
	table, err := r.Run(ctx, systems)
	if err != nil {
		return err
	}
	table.Run, table.Skipped = b.run, skipped
	return b.queried(s.out, table)
}

// querySystems are those that are asked for and can run here; the others are skipped, each with the reason.
func (b *bench) querySystems(s *querySettings) (use []queries.System, skipped []string, err error) {
	all, err := queries.Systems(b.dir, s.redis, s.heap)
	if err != nil {
		return nil, nil, err
	}
	wanted := regexp.MustCompile(s.systems) // checked by parse
	for _, x := range all {
		switch {
		case !wanted.MatchString(x.Name()):
		case x.Missing() != "":
			b.say("skipped %s: %s", x.Name(), x.Missing())
			skipped = append(skipped, x.Name()+": "+x.Missing())
		default:
			use = append(use, x)
		}
	}
	if len(use) == 0 {
		return nil, nil, fmt.Errorf("%w: --systems: value %q leaves no system to measure", errUsage, s.systems)
	}
	said, err := queries.Memory(use, &s.Options, host.AvailableMiB())
	for _, line := range said {
		b.say("memory: %s", line)
	}
	if err != nil {
		return nil, nil, err
	}
	return use, skipped, nil
}

// queried prints and writes a run of questions.
func (b *bench) queried(dir string, table *results.Queries) error {
	table.Judge()
	if err := table.Text(b.w); err != nil {
		return err
	}
	var md bytes.Buffer
	if err := table.Markdown(&md); err != nil {
		return err
	}
	js, err := json.MarshalIndent(table, "", "  ")
	if err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for name, text := range map[string][]byte{"query.md": md.Bytes(), "query.json": append(js, '\n')} {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, text, 0o644); err != nil { //nolint:gosec // for everyone to read
			return err
		}
		b.say("wrote %s", path)
	}
	if err := table.Failed(); err != nil || !table.Invalid() {
		return err
	}
	return errEnvironment
}
