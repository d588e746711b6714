// Command robustness breaks a grid while orders flow, and reports the effect.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/ordergrid/ordergrid/e2e/robustness"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	go func() {
		<-ctx.Done()
		stop() // the first signal ends the run in order, the second the process
	}()
	os.Exit(run(ctx, os.Args[1:]))
}

// exitError carries the exit code of what went wrong.
type exitError struct {
	code int
	err  error
}

func (e *exitError) Error() string { return e.err.Error() }

func (e *exitError) Unwrap() error { return e.err }

func usage(err error) error { return &exitError{robustness.ExitUsage, err} }

func environment(err error) error { return &exitError{robustness.ExitEnvironment, err} }

var errVerdict = errors.New("")

func run(ctx context.Context, args []string) int {
	root := &cobra.Command{
		Use:   "robustness",
		Short: "Break a grid while orders flow, and report the effect",
		Long: `Break a grid while orders flow, and report the effect.

  robustness list                                      what there is
  robustness run --scenario kill-primary               20 kills of a grid of processes on this machine
  robustness run --scenario all --target cluster       every scenario on the Kubernetes of this checkout
  robustness validate out/robustness/.../history.gz    judge a saved run again, without a grid

Every run keeps its text, JSON and history below --out. The verdict is
  PASS      nothing was broken and the goals were met
  VIOLATED  an acknowledged order was lost, or something else that must never happen did
  MISSED    nothing was broken, but it took longer than promised, or orders failed
  INVALID   the machine was too busy with other things to say, or not everything could be read

Exit codes: 0 pass, 1 violated or missed, 2 wrong usage, 3 invalid, or no environment to run in.`,
		SilenceErrors: true, SilenceUsage: true,
	}
	root.AddCommand(runCommand(), listCommand(), validateCommand())
	root.SetArgs(args)
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return usage(err) })
	err := root.ExecuteContext(ctx)
	var exit *exitError
	switch {
	case err == nil:
		return robustness.ExitPass
	case !errors.As(err, &exit):
		exit = &exitError{robustness.ExitUsage, err} // cobra's own: an unknown command
	}
	if !errors.Is(exit.err, errVerdict) {
		fmt.Fprintln(os.Stderr, "robustness:", exit.err)
	}
	return exit.code
}
