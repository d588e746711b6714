// Command scale measures the operator beside many OrderGrids; docs/scale.md has the figures.
//
//	go run ./e2e/scale/cmd/scale --grids 10,100,1000
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/ordergrid/ordergrid/e2e/scale"
	"github.com/ordergrid/ordergrid/e2e/testgrid"
	"github.com/ordergrid/ordergrid/internal/checkout"
	"github.com/ordergrid/ordergrid/internal/command"
	"github.com/ordergrid/ordergrid/probe/host"
)

func main() { command.Main(root()) }

type flags struct {
	grids          []int
	out, from, bin string
	rest           time.Duration
}

func root() *cobra.Command {
	var f flags
	cmd := &cobra.Command{
		Use: "scale", Short: "Measure the operator beside many OrderGrids, on a real API server with KWOK's nodes",
		Args: cobra.NoArgs, SilenceUsage: true, SilenceErrors: true,
		RunE: func(cmd *cobra.Command, _ []string) error { return f.run(cmd.Context()) },
	}
	cmd.Flags().IntSliceVar(&f.grids, "grids", []int{10, 100, 1000}, "numbers of OrderGrids, one run each")
	cmd.Flags().StringVar(&f.out, "out", "out/scale", "directory of results, plots and logs")
	cmd.Flags().StringVar(&f.from, "from", "", "directory with results of earlier runs: draw them, measure nothing")
	cmd.Flags().StringVar(&f.bin, "operator", "", "program to measure (default: built from this checkout)")
	cmd.Flags().DurationVar(&f.rest, "rest", 3*time.Minute, "how long to look on while nothing happens")
	return cmd
}

func (f *flags) run(ctx context.Context) error {
	if f.from != "" {
		results, err := load(f.from)
		if err != nil {
			return err
		}
		return draw(f.from, results)
	}
	for _, n := range f.grids {
		if n < 1 || n > 2000 {
			return fmt.Errorf("--grids: %d is out of range, allowed are 1 to 2000", n)
		}
	}
	say := command.NewSteps(os.Stderr).Say
	o, err := f.prepare(ctx, say)
	if err != nil {
		return err
	}
	var results []*scale.Result
	for _, n := range f.grids {
		o.Dir = filepath.Join(f.out, fmt.Sprintf("%d-grids", n))
		if err := os.RemoveAll(o.Dir); err != nil {
			return err
		}
		r, err := scale.Run(ctx, o, n)
		if err != nil {
			return err
		}
		results = append(results, r)
		text, err := json.MarshalIndent(r, "", "  ")
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(f.out, fmt.Sprintf("%d.json", n)), text, 0o644); err != nil {
			return err
		}
	}
	return draw(f.out, results)
}

// prepare builds what is measured and what it runs beside.
func (f *flags) prepare(ctx context.Context, say func(string, ...any)) (o scale.Options, err error) {
	o = scale.Options{Rest: f.rest, Say: say, Operator: f.bin}
	if o.Root, err = checkout.Root(); err != nil {
		return o, err
	}
	if f.out, err = filepath.Abs(f.out); err != nil {
		return o, err
	}
	if o.KWOK, err = scale.EnsureKWOK(ctx, o.Root, say); err != nil {
		return o, err
	}
	if o.Operator != "" {
		return o, nil
	}
	o.Operator, err = testgrid.Build(ctx, "operator")
	return o, err
}

func load(dir string) (results []*scale.Result, err error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.json"))
	if err == nil && len(files) == 0 {
		err = errors.New("no result in " + dir)
	}
	for _, file := range files {
		text, readErr := os.ReadFile(file)
		r := &scale.Result{}
		if e := errors.Join(readErr, json.Unmarshal(text, r)); e != nil {
			return nil, fmt.Errorf("%s: %w", file, e)
		}
		results = append(results, r)
	}
	slices.SortFunc(results, func(a, b *scale.Result) int { return a.Grids - b.Grids })
	return results, err
}

// draw prints the table and writes it and the plots.
func draw(dir string, results []*scale.Result) error {
	var text strings.Builder
	m := host.Manifest()
	fmt.Fprintf(&text, "%d cores (%s), %d MiB, Linux %s, %s\n\n", m.Cores, m.CPU, m.MemoryMiB, m.Kernel, m.GoVersion)
	if err := scale.Table(&text, results); err != nil {
		return err
	}
	fmt.Print(text.String())
	if err := os.WriteFile(filepath.Join(dir, "table.md"), []byte(text.String()), 0o644); err != nil {
		return err
	}
	for name, chart := range scale.Plots(results) {
		file, err := os.Create(filepath.Join(dir, name))
		if err != nil {
			return err
		}
		if err := errors.Join(chart.SVG(file), file.Close()); err != nil {
			return err
		}
	}
	return nil
}
