// Package cli is the command line of order-probe.
package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/ordergrid/ordergrid/internal/version"
	"github.com/ordergrid/ordergrid/probe/report"
)

// Exit codes.
const (
	ExitOK        = 0 // a valid run, every order right
	ExitIncorrect = 1 // orders lost, duplicated, out of sequence ...
	ExitUsage     = 2 // the command line is wrong
	ExitInvalid   = 3 // every order right, but the machine disturbed the figures
	ExitFailed    = 4 // the run could not be carried out
	ExitJudged    = 5 // valid and every order right, but a verdict of the scenario is FAIL
)

// codeError ends the program with a code. Its error, if any, is printed.
type codeError struct {
	code int
	err  error
}

func (e *codeError) Error() string {
	if e.err == nil {
		return fmt.Sprintf("exit code %d", e.code)
	}
	return e.err.Error()
}

func (e *codeError) Unwrap() error { return e.err }

func usage(err error) error { return &codeError{ExitUsage, err} }

// outcome is the result of a command that made a report.
func outcome(r *report.Report) error {
	switch r.Verdict {
	case report.ReportIncorrect:
		return &codeError{code: ExitIncorrect}
	case report.ReportInvalid:
		return &codeError{code: ExitInvalid}
	}
	if len(r.Failed()) > 0 {
		return &codeError{code: ExitJudged}
	}
	return nil
}

// worse of two outcomes: incorrect, failed, invalid, judged, ok.
func worse(a, b error) error {
	rank := map[int]int{ExitOK: 0, ExitJudged: 1, ExitInvalid: 2, ExitFailed: 3, ExitIncorrect: 4}
	if rank[codeOf(b)] > rank[codeOf(a)] {
		return b
	}
	return a
}

func codeOf(err error) int {
	var c *codeError
	switch {
	case err == nil:
		return ExitOK
	case errors.As(err, &c):
		return c.code
	}
	return ExitFailed
}

// Main runs a command and returns its exit code. SIGINT and SIGTERM end a run
// in order; a second one ends the program at once.
func Main(args []string, stdout, stderr io.Writer) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop)
	root := rootCommand()
	root.SetArgs(args)
	root.SetOut(stdout)
	root.SetErr(stderr)
	err := root.ExecuteContext(ctx)
	var c *codeError
	if err != nil && (!errors.As(err, &c) || c.err != nil) {
		fmt.Fprintln(stderr, "order-probe:", err)
	}
	return codeOf(err)
}

func rootCommand() *cobra.Command {
	root := &cobra.Command{
		Use:   "order-probe",
		Short: "Send a steady stream of FIX orders to a grid and measure it reliably",
		Long: `Send a stream of FIX orders to a grid, steady as in the published tests, in bursts or
replayed from a recording, measure every order from when it
was intended, created and sent, read the grid's logs back to verify that nothing
acknowledged was lost, and print published figures beside those measured here.

Exit codes: 0 valid and correct, 1 orders lost, duplicated or out of sequence,
2 wrong command line, 3 correct but the machine disturbed the figures, 4 could not run,
5 correct and valid, but not within the limits of the scenario (SHAPE, SLO, LAB, LAB-ABS).`,
		Version:       version.String(),
		SilenceUsage:  true,
		SilenceErrors: true,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return usage(fmt.Errorf("command %q: there are run, suite, list, report, ledger, selftest, drill, certify, node-features and pod; see order-probe --help", args[0]))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.SetVersionTemplate(version.Line("order-probe") + "\n")
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return usage(err) })
	root.AddCommand(runCommand(), suiteCommand(), listCommand(), reportCommand(), ledgerCommand(), podCommand(), selftestCommand(), drillCommand(), certifyCommand(), nodeFeaturesCommand())
	for _, c := range root.Commands() {
		if check := c.Args; check != nil {
			c.Args = func(cmd *cobra.Command, args []string) error {
				if err := check(cmd, args); err != nil {
					return usage(err)
				}
				return nil
			}
		}
	}
	return root
}
