// Package command is what the command lines of OrderGrid's programs have in common: signals, exit codes, how a wrong
// command line is refused, and lines about the steps of a long one.
package command

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

// Exit codes. A program may have others: an error with a method ExitCode() int ends it with that.
const (
	Failed = 1
	Usage  = 2
)

type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }

func (usageError) ExitCode() int { return Usage }

// BadUsage marks an error of the command line, which ends the program with Usage.
func BadUsage(err error) error { return usageError{err} }

// Main runs a command line until it is done, or SIGINT or SIGTERM ends its context, and ends the program. An error is
// printed to standard error.
func Main(root *cobra.Command) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := root.ExecuteContext(ctx)
	stop()
	if err == nil {
		return
	}
	fmt.Fprintf(os.Stderr, "%s: %v\n", root.Name(), err)
	os.Exit(ExitCode(err))
}

// ExitCode returns the code that a program ends with after an error.
func ExitCode(err error) int {
	var coded interface{ ExitCode() int }
	if errors.As(err, &coded) {
		return coded.ExitCode()
	}
	return Failed
}

// Root completes the command that a program's others are below: its version, and errors that Main prints.
func Root(c *cobra.Command) *cobra.Command {
	c.SilenceUsage, c.SilenceErrors, c.Version = true, true, version.String()
	c.SetFlagErrorFunc(func(c *cobra.Command, err error) error {
		return BadUsage(fmt.Errorf("%w; see %s --help", err, c.CommandPath()))
	})
	return c
}

// NoArgs refuses arguments that are not flags.
func NoArgs(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return BadUsage(fmt.Errorf("argument %.40q, allowed: flags only; see %s --help", args[0], cmd.CommandPath()))
	}
	return nil
}

// Version is the command that prints the version of a program.
func Version(program string) *cobra.Command {
	return &cobra.Command{
		Use: "version", Short: "Print the version", Args: NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, err := fmt.Fprintln(cmd.OutOrStdout(), version.Line(program))
			return err
		},
	}
}
