// Command grid-link carries the committed log of a grid to a standby of it in another cluster, and reports what a site
// that was replaced holds alone.
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
	fmt.Fprintln(os.Stderr, "grid-link:", err)
	var usage usageError
	if errors.As(err, &usage) {
		os.Exit(exitUsage)
	}
	os.Exit(exitFailed)
}

func rootCommand() *cobra.Command {
	root := &cobra.Command{
		Use:   "grid-link",
		Short: "Carries the log of an OrderGrid to a standby in another cluster",
		Long: `grid-link follows the committed log of every partition of a grid, the source, and sends its
entries, as they are, to a standby of it in another cluster, the target. It keeps nothing:
where it goes on is the end of the standby's log.

Both grids need a sink of type External of one name: spec.sinks in an OrderGrid,
--external-sink of grid-node.`,
		SilenceUsage:  true,
		SilenceErrors: true,
		Version:       version.String(),
	}
	root.SetFlagErrorFunc(func(c *cobra.Command, err error) error {
		return usageError{fmt.Errorf("%w; see %s --help", err, c.CommandPath())}
	})
	root.CompletionOptions.DisableDefaultCmd = true
	root.AddCommand(runCommand(), sitesCommand(), orphansCommand(), versionCommand())
	return root
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
		Run: func(cmd *cobra.Command, _ []string) { fmt.Fprintln(cmd.OutOrStdout(), version.Line("grid-link")) },
	}
}
