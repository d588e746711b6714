// Command order-gateway is a FIX acceptor before a grid: it takes orders of FIX sessions
// and reports each once the grid has replicated it.
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
	fmt.Fprintln(os.Stderr, "order-gateway:", err)
	var usage usageError
	if errors.As(err, &usage) {
		os.Exit(exitUsage)
	}
	os.Exit(exitFailed)
}

func rootCommand() *cobra.Command {
	f := &flags{}
	root := &cobra.Command{
		Use:   "order-gateway",
		Short: "FIX sessions before an OrderGrid",
		Long: `order-gateway accepts FIX sessions (FIX 4.2, FIX 4.4), submits their orders to a grid, and
reports each with an ExecutionReport once all in-sync copies of the grid hold it.

The numbers of the sessions are in the memory of this process: when it ends, counterparties
reset their sessions (ResetSeqNumFlag=Y), and ask the grid for orders without a report.

Who may log on is in the file of --sessions. Passwords are taken over TLS only.`,
		SilenceUsage:  true,
		SilenceErrors: true,
		Version:       version.String(),
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return usageError{fmt.Errorf("argument %.40q, allowed: flags only; see %s --help", args[0], cmd.CommandPath())}
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, _ []string) error { return f.run(cmd.Context(), cmd.ErrOrStderr()) },
	}
	root.SetFlagErrorFunc(func(c *cobra.Command, err error) error {
		return usageError{fmt.Errorf("%w; see %s --help", err, c.CommandPath())}
	})
	root.CompletionOptions.DisableDefaultCmd = true
	f.add(root.Flags())
	return root
}
