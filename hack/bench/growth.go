package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/ordergrid/ordergrid/hack/bench/results"
)

const growthHelp = `usage: go run ./hack/bench growth [flags of bench]
       go run ./hack/bench growth --from out/bench/bench.json

Measures the growth cases (--cases growth/held for some; one round each unless --rounds
says more), prints one table per curve, plots each curve (growth-NAME.svg in --out) and
judges whether the cost of an order grows worse than with the logarithm of the orders
held. --from draws and judges a run that is there already.

Exit status: 0 no curve is worse than logarithmic, 1 one is, or something failed.

Flags:
`

var errGrowth = errors.New("the cost of an order grows worse than with the logarithm of the orders held")

func growthCommand(ctx context.Context, args []string, out io.Writer) error {
	if len(args) == 2 && args[0] == "--from" {
		rows, err := results.ReadJSON(args[1])
		if err != nil {
			return fmt.Errorf("%w: %w", errUsage, err)
		}
		return drawGrowth(out, filepath.Dir(args[1]), rows)
	}
	b := &bench{w: out, begin: time.Now(), run: results.Run{Command: "go run ./hack/bench growth " + quoted(args)}}
	if _, err := b.parse("growth", growthHelp, append([]string{"--cases", "^growth/", "--rounds", "1"}, args...), out); errors.Is(err, flag.ErrHelp) {
		return nil
	} else if err != nil {
		return err
	}
	measured := b.runAll(ctx)
	if measured != nil && !errors.Is(measured, errEnvironment) {
		return measured
	}
	rows, err := results.ReadJSON(filepath.Join(b.out, "bench.json"))
	if err != nil {
		return errors.Join(measured, err)
	}
	return errors.Join(drawGrowth(out, b.out, rows), measured)
}

// drawGrowth prints tables and verdicts and writes the plots into dir.
func drawGrowth(out io.Writer, dir string, rows []results.Row) error {
	curves := results.Curves(rows)
	if len(curves) == 0 {
		return fmt.Errorf("%w: no growth case was measured in this run", errUsage)
	}
	var failed error
	var tables bytes.Buffer
	w := io.MultiWriter(out, &tables)
	for i := range curves {
		c := &curves[i]
		if err := c.Table(w); err != nil {
			return err
		}
		verdicts, err := c.Verdicts()
		if err != nil {
			fmt.Fprintf(w, "\nNo verdict: %v\n", err)
		}
		for _, system := range slices.Sorted(maps.Keys(verdicts)) {
			if v := verdicts[system]; err == nil {
				fmt.Fprintf(w, "\n%s %s.\n", system, v)
				if v.Worse {
					failed = errGrowth
				}
			}
		}
		var svg bytes.Buffer
		if err := c.SVG(&svg); err != nil {
			return err
		}
		path := filepath.Join(dir, "growth-"+c.Name+".svg")
		if err := os.WriteFile(path, svg.Bytes(), 0o644); err != nil { //nolint:gosec // for everyone to read
			return err
		}
		fmt.Fprintf(out, "plot: %s\n", path)
	}
	return errors.Join(failed, os.WriteFile(filepath.Join(dir, "growth.md"), tables.Bytes(), 0o644)) //nolint:gosec // for everyone to read
}
