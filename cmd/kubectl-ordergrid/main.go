// Command kubectl-ordergrid is the kubectl plugin of OrderGrid: kubectl ordergrid.
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

// Exit codes in addition to those of a command's own result.
const (
	exitUsage  = 2
	exitFailed = 4
)

// exitError ends the program with a code; its message was printed already.
type exitError int

func (e exitError) Error() string { return fmt.Sprintf("exit code %d", int(e)) }

// usageError marks an error of the command line.
type usageError struct{ error }

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := rootCommand().ExecuteContext(ctx)
	stop()
	var code exitError
	var usage usageError
	switch {
	case err == nil:
		return
	case errors.As(err, &code):
		os.Exit(int(code))
	}
	fmt.Fprintln(os.Stderr, "kubectl ordergrid:", err)
	if errors.As(err, &usage) {
		os.Exit(exitUsage)
	}
	os.Exit(exitFailed)
}

func rootCommand() *cobra.Command {
	var k kubeFlags
	root := &cobra.Command{
		Use:           "kubectl-ordergrid",
		Short:         "Inspect, verify and operate OrderGrids",
		Annotations:   map[string]string{cobra.CommandDisplayNameAnnotation: "kubectl ordergrid"},
		SilenceUsage:  true,
		SilenceErrors: true,
		Version:       version.String(),
	}
	k.register(root.PersistentFlags())
	root.SetFlagErrorFunc(func(c *cobra.Command, err error) error {
		return usageError{fmt.Errorf("%w; see %s --help", err, c.CommandPath())}
	})
	root.PersistentFlags().Bool(colorless, false, "no colours on a terminal; the environment variable NO_COLOR does the same")
	root.CompletionOptions.DisableDefaultCmd = true // kubectl completes plugins, see completionCommand
	root.AddCommand(statusCommand(&k), historyCommand(&k), loadCommand(&k), partitionsCommand(&k), topCommand(&k), getCommand(&k), tailCommand(&k), tradesCommand(&k), bookCommand(&k), marketCommand(&k), queryCommand(&k), verifyCommand(&k),
		limitsCommand(&k), killCommand(&k, true), killCommand(&k, false), handoverCommand(&k), drainCommand(&k), recoverCommand(&k), sitesCommand(&k), demoteCommand(&k), promoteCommand(&k), orphansCommand(&k), rebalanceCommand(&k),
		regionCommand(&k),
		drillCommand(&k), probeCommand(&k), archiveCommand(), functionCommand(&k), reportCommand(&k), completionCommand())
	completions(root, &k)
	return root
}

// oneGrid checks the argument of most commands.
func oneGrid(cmd *cobra.Command, args []string) error {
	if len(args) != 1 || args[0] == "" {
		return usageError{fmt.Errorf("%d arguments, allowed: the name of one OrderGrid; see %s --help", len(args), cmd.CommandPath())}
	}
	return nil
}
