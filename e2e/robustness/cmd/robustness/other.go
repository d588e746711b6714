package main

import (
	"errors"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ordergrid/ordergrid/e2e/robustness"
	"github.com/ordergrid/ordergrid/probe/drill/history"
	"github.com/ordergrid/ordergrid/probe/report"
)

func listCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "list",
		Short: "List the scenarios, where they run and what they demand",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			t := report.NewList("NAME", "TARGETS", "REPEAT", "WHAT", "GOALS")
			for _, s := range robustness.Scenarios() {
				t.Add(s.Name, strings.Join(s.Targets, ", "), s.Repeat, s.Short, s.Goals)
			}
			return t.Text(cmd.OutOrStdout())
		},
	}
}

func validateCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "validate FILE...",
		Short: "Judge saved histories again, without a grid",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return usage(errors.New("validate: name the history.gz of a run, or several"))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, files []string) error {
			worst := 0
			for _, file := range files {
				h, err := history.Load(file)
				if err != nil {
					return environment(err)
				}
				r, _, err := robustness.NewReport(h)
				if err != nil {
					return environment(err)
				}
				show := r.WriteText
				if asJSON {
					show = r.WriteJSON
				}
				if err := show(cmd.OutOrStdout()); err != nil {
					return environment(err)
				}
				if code := r.ExitCode(); worst == 0 || code == robustness.ExitViolated {
					worst = code
				}
			}
			if worst != 0 {
				return &exitError{worst, errVerdict}
			}
			return nil
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the report as JSON")
	return cmd
}

// write makes a file of what show prints.
func write[W io.Writer](path string, show func(W) error) (err error) {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	return show(any(f).(W))
}
