// Command bench measures the clients of other languages beside Go's, interleaved in one run against one grid of
// grid-node dev: one synchronous client, and four clients with 64 orders in flight each.
//
//	go run ./clients/bench
//
// A round runs every client of a case once, in an order that rotates. Figures are medians of all rounds, ratios medians of
// the rounds' own ratios to Go's.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/ordergrid/ordergrid/e2e/testgrid"
	"github.com/ordergrid/ordergrid/internal/checkout"
	"github.com/ordergrid/ordergrid/probe/devgrid"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if len(os.Args) > 1 && os.Args[1] == "drive" {
		exit(driveGo(loadOf(os.Args[2:])))
	}
	rounds := flag.Int("rounds", 5, "rounds")
	duration := flag.Duration("duration", 5*time.Second, "measured time of a run")
	warmup := flag.Duration("warmup", 5*time.Second, "time before it: virtual machines compile")
	flag.Parse()
	if flag.NArg() > 0 || *rounds < 1 {
		exit(fmt.Errorf("arguments are %q and --rounds %d, allowed: no arguments and 1 or more rounds", flag.Args(), *rounds))
	}
	exit(run(ctx, *rounds, load{Warmup: *warmup, Duration: *duration, Size: 305}))
}

func exit(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
	os.Exit(0)
}

// args is the command line of a driver.
func (l load) args() []string {
	return []string{l.Endpoints, strconv.Itoa(l.Clients), strconv.Itoa(l.Window), strconv.FormatInt(l.Warmup.Milliseconds(), 10),
		strconv.FormatInt(l.Duration.Milliseconds(), 10), strconv.Itoa(l.Size), l.Prefix}
}

func loadOf(args []string) load {
	number := func(i int) int { n, _ := strconv.Atoi(args[i]); return n } //nolint:errcheck // args makes them
	return load{args[0], number(1), number(2), time.Duration(number(3)) * time.Millisecond, time.Duration(number(4)) * time.Millisecond, number(5), args[6]}
}

// driver is a client's program.
type driver struct {
	name string
	args []string
}

// A driver prints one line of figures as JSON, for the command line of load.args: see driver.go.

type benchCase struct {
	name            string
	clients, window int
}

var cases = []benchCase{{"one client, synchronous", 1, 0}, {"4 clients, 64 in flight each", 4, 64}}

func run(ctx context.Context, rounds int, l load) error {
	dir, err := os.MkdirTemp("", "ordergrid-clients-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir) //nolint:errcheck // below the directory for temporary files
	drivers, program, err := build(ctx, dir)
	if err != nil {
		return err
	}
	got := map[string][]figures{}
	for round := range rounds {
		for _, c := range cases {
			for i := range drivers {
				d := drivers[(i+round)%len(drivers)]
				l.Clients, l.Window, l.Prefix = c.clients, c.window, fmt.Sprintf("B%d", round)
				f, err := once(ctx, program, d, l)
				if err != nil {
					return fmt.Errorf("%s, %s: %w", c.name, d.name, err)
				}
				fmt.Fprintf(os.Stderr, "round %d  %-28s  %-5s  %8.0f/s  p50 %7.1f µs  p99 %7.1f µs\n", round+1, c.name, d.name, f.OrdersPerSecond, f.P50us, f.P99us)
				got[c.name+d.name] = append(got[c.name+d.name], f)
			}
		}
	}
	table(drivers, got)
	return nil
}

// once runs one driver against a grid of its own: what the grid holds is the same for each.
func once(ctx context.Context, program string, d driver, l load) (f figures, err error) {
	g, err := devgrid.Start(ctx, devgrid.Options{Program: program, Shards: 1, Replicas: 2, MemoryMiB: 4096})
	if err != nil {
		return f, err
	}
	defer func() { err = errors.Join(err, g.Stop()) }()
	l.Endpoints = strings.Join(g.Endpoints, ",")
	cmd := exec.CommandContext(ctx, d.args[0], append(d.args[1:len(d.args):len(d.args)], l.args()...)...)
	var trouble bytes.Buffer
	cmd.Stderr = &trouble
	out, err := cmd.Output()
	if err != nil {
		return f, fmt.Errorf("%w\n%s", err, trouble.String())
	}
	return f, json.Unmarshal(out, &f)
}

// build compiles grid-node and the drivers; the first is Go's, with which the others are compared.
func build(ctx context.Context, dir string) (drivers []driver, program string, err error) {
	root, err := checkout.Root()
	if err != nil {
		return nil, "", err
	}
	if program, err = testgrid.Build(ctx, "grid-node"); err != nil {
		return nil, "", err
	}
	self, err := os.Executable()
	if err != nil {
		return nil, "", err
	}
	drivers = []driver{{"Go", []string{self, "drive"}}}
	var steps [][]string
	sources, err := filepath.Glob(filepath.Join(root, "clients/java/src/*/java/dev/ordergrid/client/*.java"))
	if err != nil {
		return nil, "", err
	}
	if installed("Java", "javac", "its client is measured with a JDK, release 17 or later") {
		classes := filepath.Join(dir, "classes")
		steps = append(steps, append([]string{"javac", "--release", "17", "-d", classes}, sources...))
		drivers = append(drivers, driver{"Java", []string{"java", "-cp", classes, "dev.ordergrid.client.BenchDriver"}})
	}
	python := filepath.Join(root, "clients/python/bench/driver.py")
	if _, err := os.Stat(python); err == nil && installed("Python", "python3", "its client is measured with Python 3.10 or later") {
		drivers = append(drivers, driver{"Python", []string{"python3", python}})
	}
	for _, args := range steps {
		if out, err := exec.CommandContext(ctx, args[0], args[1:]...).CombinedOutput(); err != nil {
			return nil, "", fmt.Errorf("%s: %w\n%s", args[0], err, out)
		}
	}
	return drivers, program, nil
}

// installed reports whether a language's program is there, and prints what is not measured without it.
func installed(language, program, what string) bool {
	_, err := exec.LookPath(program)
	if err != nil {
		fmt.Fprintf(os.Stderr, "bench: %s is left out: %v; %s\n", language, err, what)
	}
	return err == nil
}

// table prints medians, and ratios to the first driver.
func table(drivers []driver, got map[string][]figures) {
	fmt.Println("| case | client | orders/s | ratio | p50 µs | ratio | p99 µs | ratio |")
	fmt.Println("|---|---|---|---|---|---|---|---|")
	for _, c := range cases {
		base := got[c.name+drivers[0].name]
		for _, d := range drivers {
			own := got[c.name+d.name]
			fmt.Printf("| %s | %s |", c.name, d.name)
			for _, of := range []func(figures) float64{
				func(f figures) float64 { return f.OrdersPerSecond },
				func(f figures) float64 { return f.P50us },
				func(f figures) float64 { return f.P99us },
			} {
				fmt.Printf(" %.0f | %.2f |", median(own, func(i int) float64 { return of(own[i]) }), median(own, func(i int) float64 { return of(own[i]) / of(base[i]) }))
			}
			fmt.Println()
		}
	}
}

// median of a value of each round.
func median(rounds []figures, of func(round int) float64) float64 {
	var v []float64
	for i := range rounds {
		v = append(v, of(i))
	}
	slices.Sort(v)
	return v[len(v)/2]
}
