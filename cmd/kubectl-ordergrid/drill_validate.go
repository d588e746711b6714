package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/ordergrid/ordergrid/probe/drill/certificate"
)

func drillValidateCommand() *cobra.Command {
	var output string
	cmd := &cobra.Command{
		Use:   "validate FILE|DIR",
		Short: "Judge the saved history of a drill again, without a cluster",
		Long: `Judges a history that "drill run --out" or "drill history" has saved, with this program, and prints the
certificate. A certificate and SHA256SUMS beside it must agree with it: a modified
history or certificate does not.

Exit codes: 0 Pass, 1 Violated or Missed, 2 wrong usage, 3 Invalid, 4 it cannot be judged, or does not agree.`,
		Example: `  kubectl ordergrid drill validate certificate/
  kubectl ordergrid drill validate history.gz -o json`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) != 1 {
				return usageError{fmt.Errorf("%d arguments, allowed: a history, or the folder it is in; see %s --help", len(args), cmd.CommandPath())}
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if _, ok := forms[output]; !ok {
				return usageError{fmt.Errorf("--output: value %q, allowed: text, json, html", output)}
			}
			return validate(cmd, args[0], forms[output])
		},
	}
	cmd.Flags().StringVarP(&output, "output", "o", "text", "text, json, html")
	return cmd
}

func validate(cmd *cobra.Command, path, form string) error {
	check, err := certificate.Verify(path)
	if err != nil {
		return err
	}
	canonical, text, page, err := certificate.Render(check.Certificate)
	if err != nil {
		return err
	}
	shown := map[string][]byte{certificate.TextFile: text, certificate.JSONFile: canonical, certificate.PageFile: page}[form]
	if _, err := cmd.OutOrStdout().Write(shown); err != nil {
		return err
	}
	notes := cmd.ErrOrStderr()
	switch {
	case len(check.Trouble) > 0:
		for _, t := range check.Trouble {
			fmt.Fprintf(notes, "%s: %s\n", path, t)
		}
		return exitError(exitFailed)
	case check.Certified == nil:
		fmt.Fprintf(notes, "%s: no %s beside the history: nothing to compare with\n", path, certificate.JSONFile)
	default:
		fmt.Fprintln(notes, "history, certificate and check sums agree")
	}
	if code := verdictCode(string(check.Certificate.Verdict)); code != 0 {
		return exitError(code)
	}
	return nil
}
