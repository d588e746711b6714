// Command cluster brings up, breaks, inspects and removes the Kubernetes
// cluster the suites and the demonstration run on.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/ordergrid/ordergrid/e2e/cluster/local"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	err := newRoot().ExecuteContext(ctx)
	var exit *exec.ExitError
	switch {
	case err == nil:
	case errors.As(err, &exit): // a command run on a node, whose code is the answer
		os.Exit(exit.ExitCode())
	default:
		fmt.Fprintln(os.Stderr, "cluster:", err)
		os.Exit(1)
	}
}

func newRoot() *cobra.Command {
	a := &app{}
	root := &cobra.Command{
		Use:           "cluster",
		Short:         "A Kubernetes cluster for tests and demonstrations, on any machine",
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	root.PersistentFlags().StringVar(&a.asked, "cluster", os.Getenv("CLUSTER"),
		"current, kind or local; empty lets this machine decide (default is the CLUSTER variable)")
	root.AddCommand(a.up(), a.down(), a.status(), a.kubeconfig(), a.load(), a.node(), a.exec(), a.outside(), a.fabric(), a.binaries(), imageCommand(), a.executor(), supervise())
	return root
}

// supervise is what the machines of a local cluster run; people do not.
func supervise() *cobra.Command {
	return &cobra.Command{
		Use:    "supervise",
		Hidden: true,
		Args:   cobra.NoArgs,
		RunE:   func(*cobra.Command, []string) error { return local.Supervise(os.Stdin) },
	}
}
