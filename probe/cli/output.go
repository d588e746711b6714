package cli

import (
	"fmt"
	"io"
	"os"

	"github.com/spf13/pflag"
	"golang.org/x/term"

	"github.com/ordergrid/ordergrid/probe/report"
)

// printFlags select how a report is printed.
type printFlags struct {
	format          string
	noColor, perRun bool
}

func (f *printFlags) register(set *pflag.FlagSet) {
	set.StringVar(&f.format, "format", "table", "table, json or csv")
	set.BoolVar(&f.noColor, "no-color", false, "no colour even on a terminal (the environment variable NO_COLOR does the same)")
	set.BoolVar(&f.perRun, "per-run", false, "also the mean and median of every probe and run")
}

func (f *printFlags) check() error {
	switch f.format {
	case "table", "json", "csv":
		return nil
	}
	return fmt.Errorf("--format %q: there are table, json and csv", f.format)
}

func (f *printFlags) color(w io.Writer) bool {
	return !f.noColor && os.Getenv("NO_COLOR") == "" && isTerminal(w)
}

func (f *printFlags) print(w io.Writer, rep *report.Report) error {
	switch f.format {
	case "json":
		return rep.JSON(w)
	case "csv":
		return rep.CSV(w)
	}
	return rep.Text(w, report.TextOptions{Color: f.color(w), PerRun: f.perRun})
}

func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// costOf is the cost of replication, when there are reports of both kinds.
func costOf(reports map[string]*report.Report) []report.Cost {
	single, pair := reports["stac-single"], reports["stac-pair"]
	if single == nil || pair == nil {
		return nil
	}
	return report.ReplicationCost(single, pair)
}

// cost prints it below the tables.
func (f *printFlags) cost(w io.Writer, costs []report.Cost) error {
	if len(costs) == 0 || f.format != "table" {
		return nil
	}
	if _, err := fmt.Fprintln(w); err != nil {
		return err
	}
	return report.CostText(w, costs, f.color(w))
}
