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
	"slices"
	"strings"
	"time"

	"github.com/ordergrid/ordergrid/e2e/testgrid"
	"github.com/ordergrid/ordergrid/hack/bench/acceptors"
	"github.com/ordergrid/ordergrid/hack/bench/cases"
	"github.com/ordergrid/ordergrid/hack/bench/floor"
	"github.com/ordergrid/ordergrid/hack/bench/grid"
	"github.com/ordergrid/ordergrid/hack/bench/peers"
	"github.com/ordergrid/ordergrid/hack/bench/results"
	"github.com/ordergrid/ordergrid/hack/bench/rounds"
	"github.com/ordergrid/ordergrid/hack/bench/system"
	"github.com/ordergrid/ordergrid/probe/host"
)

// bench is one run of the command.
type bench struct {
	settings
	w      io.Writer
	begin  time.Time
	dir    string // of what is built for the run; removed at its end
	runner rounds.Runner
	places map[string]system.Place
	table  bytes.Buffer
	stat   bytes.Buffer
	rows   []results.Row
	run    results.Run
	sinks  *grid.Sinks
}

func runCommand(ctx context.Context, args []string, out io.Writer) error {
	b := &bench{w: out, begin: time.Now()}
	b.run.Command = strings.TrimSpace("go run ./hack/bench " + quoted(args))
	rest, err := b.parse("bench", runHelp, args, out)
	if errors.Is(err, flag.ErrHelp) {
		return nil
	}
	if err != nil {
		return err
	}
	if len(rest) > 0 {
		return fmt.Errorf("%w: %q: allowed: flags, or one of list, compare, profile, help", errUsage, rest[0])
	}
	return b.runAll(ctx)
}

// runAll measures the cases chosen and writes the files.
func (b *bench) runAll(ctx context.Context) error {
	chosen, err := cases.Select(b.cases)
	if err != nil {
		return fmt.Errorf("%w: %w", errUsage, err)
	}
	if err := b.prepare(ctx); err != nil {
		return errors.Join(err, b.close())
	}
	err = b.measure(ctx, chosen)
	return errors.Join(err, b.instead(), b.write(), b.close())
}

// prepare builds what is run and finds out what cannot be.
func (b *bench) prepare(ctx context.Context) (err error) {
	b.places = map[string]system.Place{}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	if b.dir, err = os.MkdirTemp("", "ordergrid-bench-"); err != nil {
		return err
	}
	b.run.Machine, b.run.Date = machine(), b.begin.UTC().Format(time.RFC3339)
	if s, err := host.Take(nil); err == nil {
		b.run.Before = s.Load1
	}
	b.say("%s", b.run.Machine)
	wanted := regexp.MustCompile(b.systems) // checked by parse
	all := append([]system.System{floor.Go(self)}, floor.C(b.dir)...)
	all = append(all, peers.NewRedis(b.redis, b.dir))
	all = append(all, acceptors.All(self, b.dir)...)
	all = append(all, calling(b.dir, strings.Fields(b.nodeFlags))...)
	asked, err := peers.Choose(b.peers, b.dir)
	if err != nil {
		return err
	}
	for _, p := range asked {
		all = append(all, p)
	}
	b.sinks = &grid.Sinks{Dir: b.dir}
	flags := strings.Fields(b.nodeFlags)
	viewFlags := []string{"--views", "1Gi", "--view-rows", "8388608"}
	all = append(all, &grid.Grid{Label: cases.Grid, Args: flags, Dir: b.dir}, &grid.Grid{Label: cases.GridTLS, Args: flags, TLS: true, Dir: b.dir}, &grid.Grid{Label: cases.GridScraped, Args: flags, Scrape: true, Dir: b.dir},
		&grid.Grid{Label: cases.GridViews, Args: append(viewFlags, flags...), Dir: b.dir}, &grid.Grid{Label: cases.GridViewsBackup, Args: append([]string{"--view-copies", "backup"}, append(viewFlags, flags...)...), Dir: b.dir},
		&grid.Grid{Label: cases.GridInsecure, Args: flags, Insecure: true, Dir: b.dir}, &grid.Grid{Label: cases.GridJournal, Args: flags, Journal: true, Dir: b.dir},
		&grid.Grid{Label: cases.GridSinks, Args: flags, Sinks: b.sinks, Dir: b.dir}, &grid.Grid{Label: cases.GridFIX, Args: flags, FIX: true, Dir: b.dir})
	all = append(all, matching(b.dir, flags)...)
	var use []system.System
	for _, s := range all {
		switch {
		case !wanted.MatchString(s.Name()):
		case s.Missing() != "":
			b.say("skipped %s: %s", s.Name(), s.Missing())
		default:
			use = append(use, s)
		}
	}
	if len(use) == 0 {
		return fmt.Errorf("%w: --systems: value %q leaves no system to measure", errUsage, b.systems)
	}
	for _, s := range use {
		if p, ok := s.(*peers.Peer); ok {
			b.say("building what starts and loads %s with Maven", p.Name())
			if err := p.Build(ctx); err != nil {
				return err
			}
		}
	}
	program := ""
	for _, s := range use {
		if g, ok := s.(*grid.Grid); ok && len(g.Tags) == 0 {
			if program == "" {
				b.say("building grid-node as a release is built")
				if program, err = testgrid.Build(ctx, "grid-node"); err != nil {
					return err
				}
			}
			g.Program = program
		}
	}
	b.runner = rounds.Runner{Options: b.options, Self: self, Systems: use, Say: b.say}
	return nil
}

// tagged builds the programs with build tags that a case uses.
func (b *bench) tagged(ctx context.Context, chosen []cases.Case) (err error) {
	for _, s := range b.runner.Systems {
		g, ok := s.(*grid.Grid)
		if !ok || len(g.Tags) == 0 || !slices.ContainsFunc(chosen, func(c cases.Case) bool { return c.Uses(s.Name()) }) {
			continue
		}
		b.say("building grid-node with the tags %s", strings.Join(g.Tags, ", "))
		if g.Program, err = testgrid.Build(ctx, "grid-node", g.Tags...); err != nil {
			return err
		}
		if g.Name() == cases.GridBare {
			if err := grid.Bare(ctx, b.dir, g.Program); err != nil {
				return err
			}
		}
	}
	return nil
}

// farSide builds grid-sink and starts what sinks write to, if a case has sinks.
func (b *bench) farSide(ctx context.Context, chosen []cases.Case) (err error) {
	used := func(s system.System) bool {
		return s.Name() == cases.GridSinks && slices.ContainsFunc(chosen, func(c cases.Case) bool { return c.Uses(s.Name()) })
	}
	if !slices.ContainsFunc(b.runner.Systems, used) {
		return nil
	}
	b.say("building grid-sink, and starting Kafka and PostgreSQL for it")
	if b.sinks.Program, err = testgrid.Build(ctx, "grid-sink"); err != nil {
		return err
	}
	return b.sinks.Start(ctx)
}

// gateway builds order-gateway, if a case has a grid behind one.
func (b *bench) gateway(ctx context.Context, chosen []cases.Case) (err error) {
	for _, s := range b.runner.Systems {
		if g, ok := s.(*grid.Grid); ok && g.FIX && slices.ContainsFunc(chosen, func(c cases.Case) bool { return c.Uses(s.Name()) }) {
			b.say("building order-gateway")
			if g.Gateway, err = testgrid.Build(ctx, "order-gateway"); err != nil {
				return err
			}
		}
	}
	return nil
}

func (b *bench) measure(ctx context.Context, chosen []cases.Case) error {
	if err := errors.Join(b.tagged(ctx, chosen), b.farSide(ctx, chosen), b.gateway(ctx, chosen)); err != nil {
		return err
	}
	usual := b.estimate(chosen)
	limit := 2*usual + spare
	b.say("%d cases, %d systems, %d rounds of %v after %v: about %v when the machine is quiet, no case begins after %v", len(chosen), len(b.runner.Systems),
		b.options.Rounds, b.options.Duration, b.options.Warmup, usual.Round(time.Second), limit.Round(time.Second))
	var failed error
	invalid := false
	for i := range chosen {
		c := &chosen[i]
		at, missing, err := b.place(ctx, c.Network)
		if err != nil {
			return err
		}
		if missing == "" && time.Since(b.begin) > limit {
			missing, invalid = "the time is over: the machine was busy for too long", true
		}
		if missing == "" && !b.runner.Usable(c) {
			missing = "none of the chosen systems can run it"
		}
		if missing != "" {
			b.say("skipped %s: %s", c.Name, missing)
			continue
		}
		out, err := b.runner.Case(ctx, at, c)
		if err != nil {
			return err
		}
		if err := b.keep(c, &out); err != nil {
			return err
		}
		if failed == nil {
			failed = out.Err
		}
		for _, r := range out.Rows {
			invalid = invalid || !r.Valid
		}
	}
	if failed == nil && invalid {
		return errEnvironment
	}
	return failed
}

// keep prints the table of a case and keeps its rows.
func (b *bench) keep(c *cases.Case, out *rounds.Outcome) error {
	b.rows = append(b.rows, out.Rows...)
	if err := results.Table(io.MultiWriter(b.w, &b.table), c, out.Rows); err != nil {
		return err
	}
	fmt.Fprintln(b.w)
	for _, r := range out.Rows {
		if err := results.WriteBenchstat(&b.stat, c, r.System, out.Rounds[r.System]); err != nil {
			return err
		}
	}
	return nil
}

// place is where a case runs, or why it cannot.
func (b *bench) place(ctx context.Context, network string) (at system.Place, missing string, err error) {
	if at = b.places[network]; at != nil {
		return at, "", nil
	}
	at = system.Loopback{}
	if network == "ns" {
		if missing = system.Missing(); missing != "" {
			return nil, missing, nil
		}
		if at, err = system.NewNamespaces(ctx); err != nil {
			return nil, "", err
		}
	}
	b.places[network] = at
	return at, "", nil
}

// perRound is what a round costs beside its load: waiting for quiet, starting and stopping.
const perRound = 1500 * time.Millisecond

// spare is time for a machine that is not quiet at first.
const spare = 5 * time.Minute

// fillRate is how many orders/s the grid takes while it is filled ahead of a round;
// low, so that an estimate is rather too long.
const fillRate = 250_000

func (b *bench) estimate(chosen []cases.Case) (d time.Duration) {
	for i := range chosen {
		n := 0
		for _, s := range b.runner.Systems {
			if !chosen[i].Uses(s.Name()) {
				continue
			}
			n++
			if own, ok := s.(system.WithGenerator); ok {
				d += time.Duration(b.options.Rounds) * (own.Setup() + b.options.PeersWarmup)
			}
		}
		d += time.Duration(n*b.options.Rounds)*(b.options.Warmup+b.options.Duration+perRound+time.Duration(chosen[i].Held)*time.Second/fillRate) + time.Second
	}
	return d
}

// write leaves the files of what was measured, also of a run that was cut short.
func (b *bench) write() error {
	if len(b.rows) == 0 {
		return nil
	}
	if err := os.MkdirAll(b.out, 0o755); err != nil {
		return err
	}
	var js bytes.Buffer
	if err := results.WriteJSON(&js, b.rows); err != nil {
		return err
	}
	run, err := json.MarshalIndent(b.run, "", "  ")
	if err != nil {
		return err
	}
	head := b.run.Machine + "\n" + b.run.Date + ", " + b.run.Command + "\n"
	files := map[string][]byte{results.RunFile: append(run, '\n'), "bench.json": js.Bytes(), "table.txt": append([]byte(head), b.table.Bytes()...), "benchstat.txt": b.stat.Bytes()}
	for _, name := range []string{"table.txt", "bench.json", results.RunFile, "benchstat.txt"} {
		path := filepath.Join(b.out, name)
		if err := os.WriteFile(path, files[name], 0o644); err != nil { //nolint:gosec // for everyone to read
			return err
		}
		b.say("wrote %s", path)
	}
	return nil
}

// instead prints what one would use in place of the grid and writes it as Markdown,
// of a run that has peers.
func (b *bench) instead() error {
	if b.peers == "" || len(b.rows) == 0 {
		return nil
	}
	var md bytes.Buffer
	if err := results.Instead(&md, &b.run, b.rows); err != nil {
		return err
	}
	if err := os.MkdirAll(b.out, 0o755); err != nil {
		return err
	}
	path := filepath.Join(b.out, "peers.md")
	if err := os.WriteFile(path, md.Bytes(), 0o644); err != nil { //nolint:gosec // for everyone to read
		return err
	}
	fmt.Fprintf(b.w, "%s\n", &md)
	b.say("wrote %s", path)
	return nil
}

// quoted is a command line that a shell reads as these arguments.
func quoted(args []string) string {
	out := make([]string, 0, len(args))
	for _, a := range args {
		if a == "" || strings.ContainsAny(a, " |()*$^?[]'\"") {
			a = "'" + strings.ReplaceAll(a, "'", `'\''`) + "'"
		}
		out = append(out, a)
	}
	return strings.Join(out, " ")
}

// close leaves nothing behind.
func (b *bench) close() error {
	var errs []error
	for _, p := range b.places {
		errs = append(errs, p.Close())
	}
	if b.sinks != nil {
		b.sinks.Stop()
	}
	if b.dir != "" {
		errs = append(errs, os.RemoveAll(b.dir))
	}
	return errors.Join(errs...)
}

// say prints a progress line behind the time since the start.
func (b *bench) say(format string, args ...any) {
	fmt.Fprintf(b.w, "%6s  %s\n", time.Since(b.begin).Round(time.Second), fmt.Sprintf(format, args...))
}
