// Command model checks the replication protocol exhaustively within bounds:
// docs/model.md. Exit code 0: every invariant holds (with -mutants: every mutant
// is caught). 1: a counterexample was found (a mutant escaped). 2: wrong usage, or
// the search was not finished.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strconv"
	"time"

	"golang.org/x/term"

	"github.com/ordergrid/ordergrid/grid-node/model"
)

const (
	exitHolds   = 0
	exitBroken  = 1
	exitUnknown = 2
)

func main() { os.Exit(run(os.Args[1:], os.Stdout, os.Stderr)) }

type options struct {
	bounds  model.Bounds
	single  bool // one search within the bounds, instead of the plan
	mutant  model.Mutant
	mutants bool
	memory  int // GiB
	except  model.Invariant
}

func run(args []string, out, errs io.Writer) int {
	o, err := parse(args, errs)
	if err != nil {
		if !errors.Is(err, errSaid) {
			fmt.Fprintln(errs, err)
		}
		return exitUnknown
	}
	switch {
	case o.mutants:
		return table(o, out, errs)
	case o.single:
		return check(o, &model.Spec{Bounds: o.bounds, Mutant: o.mutant}, out, errs)
	}
	for _, spec := range model.Plan {
		o.except = spec.Mutant.Except()
		if code := check(o, &spec, out, errs); code != exitHolds {
			return code
		}
		fmt.Fprintln(out)
	}
	return exitHolds
}

// errSaid is wrong usage that package flag has already reported.
var errSaid = errors.New("wrong usage")

func parse(args []string, errs io.Writer) (*options, error) {
	o := &options{mutant: model.Correct}
	f := flag.NewFlagSet("model", flag.ContinueOnError)
	f.SetOutput(errs)
	f.Usage = func() {
		fmt.Fprintln(errs, "usage: model [flags]: without any bound, the plan of docs/model.md; with one, a single search within these")
		f.PrintDefaults()
	}
	small := func(to *uint8, name string, def uint8, text string) {
		*to = def
		f.Func(name, fmt.Sprintf("%s (default %d)", text, def), func(s string) error {
			v, err := strconv.ParseUint(s, 10, 8)
			*to = uint8(v)
			return err
		})
	}
	small(&o.bounds.Members, "members", 2, "members of the partition, 2..3")
	small(&o.bounds.Orders, "orders", 3, "orders taken in all, 0..3")
	small(&o.bounds.Faults, "faults", 2, "crashes, replaced pods and false suspicions in all, 0..3")
	small(&o.bounds.HandOvers, "hand-overs", 1, "hand-overs proposed in all, 0..3")
	small(&o.bounds.Retires, "retires", 1, "retirements proposed in all, 0..3")
	small(&o.bounds.Moves, "moves", 0, "changes of the pods that hold a copy, 0..3: one fewer than members; with -hand-overs 0 -retires 0")
	f.BoolVar(&o.bounds.Replace, "replace", false, "a fault may be a pod replaced while its old process keeps running")
	f.IntVar(&o.memory, "memory", 6, "GiB the search may take before it stops")
	except := f.String("except", "", "skip this invariant, such as I6")
	mutant := f.String("mutant", "", "check this wrong protocol instead")
	f.BoolVar(&o.mutants, "mutants", false, "check every wrong protocol, and print which invariant catches it")
	if err := f.Parse(args); err != nil {
		return nil, errSaid
	}
	if f.NArg() > 0 {
		return nil, fmt.Errorf("argument %q: none are allowed beside flags", f.Arg(0))
	}
	bounded := false
	f.Visit(func(f *flag.Flag) {
		bounded = bounded || f.Name != "memory" && f.Name != "mutant" && f.Name != "mutants"
	})
	o.single = bounded || *mutant != ""
	if err := o.settle(*except, *mutant); err != nil {
		return nil, err
	}
	if !bounded && (o.mutants || o.single) {
		o.bounds = o.mutant.Bounds()
	}
	return o, nil
}

// settle checks what package flag cannot.
func (o *options) settle(except, mutant string) (err error) {
	if err := o.bounds.Check(); err != nil {
		return err
	}
	if except != "" {
		if o.except, err = model.ParseInvariant(except); err != nil {
			return err
		}
	}
	if mutant != "" {
		if o.mutant, err = model.ParseMutant(mutant); err != nil {
			return err
		}
	}
	return nil
}

func check(o *options, spec *model.Spec, out, errs io.Writer) int {
	fmt.Fprintf(out, "%s: %s\n", spec.Mutant.Text(), spec.Bounds)
	res, err := model.Search(spec, model.Options{MaxBytes: int64(o.memory) << 30, Healthy: true, Except: o.except, Progress: progress(out)})
	if err != nil {
		fmt.Fprintf(errs, "not finished: %v\n", err)
		return exitUnknown
	}
	fmt.Fprintf(out, "%d states, %d transitions, depth %d, %s, %d MiB\n", res.States, res.Transitions, res.Depth, res.Took.Round(10*time.Millisecond), res.Bytes>>20)
	fmt.Fprintf(out, "%d states without a live in-sync member, which need an administrator\n", res.AllGone)
	if res.Broken != model.Holds {
		fmt.Fprintf(out, "broken: %s, %s\n", res.Broken, res.Broken.Text())
		for i, s := range res.Trace {
			fmt.Fprintf(out, "%3d  %s\n", i+1, s.Text)
		}
		return exitBroken
	}
	fmt.Fprint(out, "holds:")
	for _, v := range model.Invariants {
		if v != o.except {
			fmt.Fprint(out, " ", v)
		}
	}
	fmt.Fprintln(out)
	return exitHolds
}

// table checks every mutant, each of which must be caught, and every variant that must not
// be.
func table(o *options, out, errs io.Writer) int {
	fmt.Fprintf(out, "%s\n\n%-22s  %-6s  %5s  %9s  %s\n", o.bounds, "mutant", "broken", "steps", "states", "what is wrong with it")
	code := exitHolds
	for _, m := range append(model.Mutants(), model.Variants()...) {
		bounds := o.bounds
		if bounds == model.MutantBounds {
			bounds = m.Bounds()
		}
		res, err := model.Search(&model.Spec{Bounds: bounds, Mutant: m}, model.Options{MaxBytes: int64(o.memory) << 30, Healthy: true})
		if err != nil {
			fmt.Fprintf(errs, "%s: not finished: %v\n", m, err)
			return exitUnknown
		}
		fmt.Fprintf(out, "%-22s  %-6s  %5d  %9d  %s\n", m, res.Broken, len(res.Trace), res.States, m.Text())
		if v := m.Except(); v != model.Holds && res.Broken == v {
			if res, err = model.Search(&model.Spec{Bounds: bounds, Mutant: m}, model.Options{MaxBytes: int64(o.memory) << 30, Healthy: true, Except: v}); err != nil {
				fmt.Fprintf(errs, "%s without %s: not finished: %v\n", m, v, err)
				return exitUnknown
			}
			fmt.Fprintf(out, "%-22s  %-6s  %5d  %9d  the others, without %s\n", "", res.Broken, len(res.Trace), res.States, v)
		}
		if (res.Broken == model.Holds) != m.Harmless() {
			code = exitBroken
		}
	}
	if code != exitHolds {
		fmt.Fprintln(out, "\na mutant was not caught, or a harmless variant was")
	}
	return code
}

// progress rewrites one line on a terminal, and prints one every ten seconds
// elsewhere.
func progress(out io.Writer) func(model.Result) {
	file, ok := out.(*os.File)
	tty := ok && term.IsTerminal(int(file.Fd()))
	every, end := 10*time.Second, "\n"
	if tty {
		every, end = 200*time.Millisecond, "\r"
	}
	last := time.Duration(0)
	return func(r model.Result) {
		if r.Took-last < every {
			return
		}
		last = r.Took
		fmt.Fprintf(out, "%s  %d states, %d transitions, depth %d, %d MiB%s", r.Took.Round(time.Second), r.States, r.Transitions, r.Depth, r.Bytes>>20, end)
	}
}
