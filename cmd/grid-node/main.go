// Command grid-node is the data plane of OrderGrid: one process per pod, or a
// whole grid of processes on one machine (grid-node dev).
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/ordergrid/ordergrid/internal/version"
)

// Exit codes; verify has its own, see client/verify.
const (
	exitFailed = 1
	exitUsage  = 2
)

// usageError marks an error of the command line.
type usageError struct{ error }

func (u usageError) Unwrap() error { return u.error }

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	err := rootCommand().ExecuteContext(ctx)
	if err == nil {
		return
	}
	fmt.Fprintln(os.Stderr, "grid-node:", err)
	var usage usageError
	var exit exitError
	switch {
	case errors.As(err, &usage):
		os.Exit(exitUsage)
	case errors.As(err, &exit):
		os.Exit(exit.code)
	}
	os.Exit(exitFailed)
}

func rootCommand() *cobra.Command {
	root := &cobra.Command{
		Use:   "grid-node",
		Short: "A node of an OrderGrid: keeps orders in memory, replicated and in sequence",
		Long: `grid-node keeps financial orders in memory, in sequence, in more than one process.

On a laptop, a whole grid and a first order:
  grid-node dev
  grid-node submit --endpoint 127.0.0.1:7400

In a cluster the operator starts "grid-node serve" in every pod.`,
		SilenceUsage:  true,
		SilenceErrors: true,
		Version:       version.String(),
	}
	root.SetFlagErrorFunc(func(c *cobra.Command, err error) error {
		return usageError{fmt.Errorf("%w; see %s --help", err, c.CommandPath())}
	})
	root.AddCommand(serveCommand(), devCommand(), submitCommand(), getCommand(), verifyCommand(), versionCommand())
	return root
}

// noArgs refuses arguments that are not flags.
func noArgs(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return usageError{fmt.Errorf("argument %q: %s takes flags only; see %s --help", args[0], cmd.CommandPath(), cmd.CommandPath())}
	}
	return nil
}

func versionCommand() *cobra.Command {
	return &cobra.Command{
		Use: "version", Short: "Print the version", Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, err := fmt.Fprintln(cmd.OutOrStdout(), version.Line("grid-node"))
			return err
		},
	}
}
