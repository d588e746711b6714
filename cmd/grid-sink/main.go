// Command grid-sink follows the committed log of a grid and writes it to a system outside: each subcommand is one kind
// of target. It is a process of its own because the clients of these systems cost time and garbage that have no place
// beside the data loop of a node.
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

// Exit codes.
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
	fmt.Fprintln(os.Stderr, "grid-sink:", err)
	var usage usageError
	if errors.As(err, &usage) {
		os.Exit(exitUsage)
	}
	var refused refusedError
	if errors.As(err, &refused) {
		os.Exit(exitRefused)
	}
	os.Exit(exitFailed)
}

func rootCommand() *cobra.Command {
	root := &cobra.Command{
		Use:   "grid-sink",
		Short: "Writes the committed log of an OrderGrid to a system outside, each entry exactly once",
		Long: `grid-sink follows the committed log of every partition of a grid and writes it to a system
outside. The position is kept there, in the transaction of the orders, so that nothing is
lost and nothing is there twice, through any failure of the grid, the target or grid-sink.

The grid needs a sink of type External: spec.sinks in an OrderGrid, --external-sink of grid-node.`,
		SilenceUsage:  true,
		SilenceErrors: true,
		Version:       version.String(),
	}
	root.SetFlagErrorFunc(func(c *cobra.Command, err error) error {
		return usageError{fmt.Errorf("%w; see %s --help", err, c.CommandPath())}
	})
	root.CompletionOptions.DisableDefaultCmd = true
	root.AddCommand(commands()...)
	return root
}

// commands has a line for each kind of target, and for version.
func commands() []*cobra.Command {
	return []*cobra.Command{
		archiveCommand(),
		kafkaCommand(),
		postgresCommand(),
		versionCommand(),
	}
}

// noArgs refuses arguments that are not flags.
func noArgs(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return usageError{fmt.Errorf("argument %.40q, allowed: flags only; see %s --help", args[0], cmd.CommandPath())}
	}
	return nil
}

func versionCommand() *cobra.Command {
	return &cobra.Command{
		Use: "version", Short: "Print the version", Args: noArgs,
		Run: func(cmd *cobra.Command, _ []string) { fmt.Fprintln(cmd.OutOrStdout(), version.Line("grid-sink")) },
	}
}
