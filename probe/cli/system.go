package cli

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ordergrid/ordergrid/probe/htmlreport"
	"github.com/ordergrid/ordergrid/probe/published"
	"github.com/ordergrid/ordergrid/probe/scenario"
	"github.com/ordergrid/ordergrid/probe/system"
)

// isSystem reports whether the scenarios named are those about a system of processes, which are run one at a time.
func (f *runFlags) isSystem() (bool, error) {
	n := 0
	for _, name := range f.scenarios {
		if slices.Contains(published.SystemScenarios(), name) {
			n++
		}
	}
	switch {
	case n == 0:
		return false, nil
	case len(f.scenarios) > 1:
		return true, fmt.Errorf("--scenario %s: %s are run one by one", strings.Join(f.scenarios, ","), strings.Join(published.SystemScenarios(), ", "))
	case !f.dev || len(f.grid.endpoint) > 0:
		return true, fmt.Errorf("--scenario %s: it starts and breaks grids of its own: give --dev, and no --endpoint", f.scenarios[0])
	case f.through.door == throughFIX:
		return true, fmt.Errorf("--through fix: scenario %s has doors of its own; allowed: %s", f.scenarios[0], throughNative)
	case f.print.format != "table" && f.print.format != "json" && f.print.format != "csv":
		return true, fmt.Errorf("--format %q: of %s there are table, json and csv", f.print.format, f.scenarios[0])
	}
	return true, nil
}

// system runs one of them.
func (f *runFlags) system(cmd *cobra.Command, d *published.Data) error {
	mode, err := f.plan.mode()
	if err != nil {
		return usage(err)
	}
	rep, err := system.Run(cmd.Context(), d, f.scenarios[0], f.systemOptions(cmd, mode, f.out))
	if err != nil {
		fmt.Fprintln(cmd.ErrOrStderr(), "order-probe:", err)
		return &codeError{code: ExitFailed}
	}
	write, ok := map[string]func(io.Writer) error{"json": rep.WriteJSON, "csv": rep.WriteCSV}[f.print.format]
	if !ok {
		write = rep.WriteText
	}
	if err := write(cmd.OutOrStdout()); err != nil {
		return err
	}
	if f.out != "" {
		if err := saveSystem(f.out, rep); err != nil {
			return err
		}
	}
	return systemOutcome(rep)
}

func (f *runFlags) systemOptions(cmd *cobra.Command, mode scenario.Mode, dir string) system.Options {
	return system.Options{Mode: mode, GridNode: f.gridNode, Plugin: f.plugin, Link: f.link, Gateway: f.gateway, Dir: dir, Say: func(format string, args ...any) {
		fmt.Fprintf(cmd.ErrOrStderr(), format+"\n", args...)
	}}
}

// systemOutcome is the exit code that goes with a report.
func systemOutcome(rep *system.Report) error {
	switch rep.Verdict {
	case system.Wrong:
		return &codeError{code: ExitIncorrect}
	case system.Invalid:
		return &codeError{code: ExitInvalid}
	case system.Fail:
		return &codeError{code: ExitJudged}
	}
	return nil
}

// saveSystem writes table, results and page into a directory.
func saveSystem(dir string, rep *system.Report) (err error) {
	for name, write := range map[string]func(io.Writer) error{
		"table.txt": rep.WriteText, "results.json": rep.WriteJSON, "results.csv": rep.WriteCSV,
		"report.html": func(w io.Writer) error {
			return htmlreport.WriteSystem(w, rep.Outcome().Run, rep.Shows, rep.Table(), rep.Charts())
		},
	} {
		err = errors.Join(err, writeFile(filepath.Join(dir, name), write))
	}
	return err
}

// listSystem prints what the scenarios of a system of processes are.
func listSystem(d *published.Data, say func(format string, args ...any)) {
	for _, name := range published.SystemScenarios() {
		s, _ := d.Scenario(name)
		say("%s\n  %s\n  published tables %s\n  judged by        %s\n  with --dev; modes %s, %s and %s\n", name, s.Reproduces, strings.Join(s.PublishedTables, ", "), s.Verdict, scenario.Exact, scenario.Scaled, scenario.Quick)
	}
}
