package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/ordergrid/ordergrid/probe/scenario"
	"github.com/ordergrid/ordergrid/probe/selftest"
)

func selftestCommand() *cobra.Command {
	var measure time.Duration
	var overload float64
	var format string
	cmd := &cobra.Command{
		Use:   "selftest",
		Short: "Measure a server whose latency is known, and compare with the computed figures",
		Long: `Measure a server whose latency is known, with the probe as it is: the same creator,
sessions, records, statistics and ledger. The server answers after 200 us and stalls for
50 ms once a second; then it is offered more orders than it answers. Every figure is printed
beside its expected value. Run it on an idle machine.

Exit codes: 0 every figure is within its tolerance, 3 one is not, 4 could not run.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if format != "table" && format != "json" {
				return usage(fmt.Errorf("--format %q: there are table and json", format))
			}
			if measure < 2*time.Second || measure%time.Second != 0 || measure > time.Hour || overload <= 0 || overload > 1 {
				return usage(fmt.Errorf("--measure %v --overload %v: must be whole seconds from 2s to 1h, and more than 0 up to 1", measure, overload))
			}
			show := newProgress(cmd.ErrOrStderr(), scenario.Plan{Scenario: "selftest", Steps: make([]scenario.Step, 1), Measure: measure.Milliseconds()})
			out, err := selftest.Run(cmd.Context(), selftest.Options{Measure: measure, Overload: overload, Progress: show})
			show.close()
			if err != nil {
				return err
			}
			if format == "json" {
				err = json.NewEncoder(cmd.OutOrStdout()).Encode(out)
			} else {
				err = out.Text(cmd.OutOrStdout())
			}
			if err == nil && !out.OK() {
				return &codeError{ExitInvalid, errors.New("self-test: a figure differs from its expected value; is the machine busy?")}
			}
			return err
		},
	}
	cmd.Flags().DurationVar(&measure, "measure", 10*time.Second, "how long each of the two parts is measured, whole seconds")
	cmd.Flags().Float64Var(&overload, "overload", 0.01, "by how much the offered rate exceeds the server's rate")
	cmd.Flags().StringVar(&format, "format", "table", "table or json")
	return cmd
}
