// Command prometheus builds the real Prometheus that rules and dashboards are
// tried with.
//
//	prometheus binaries [--dir]   build prometheus and promtool into the cache unless they are there, print the directory
package main

import (
	"context"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/ordergrid/ordergrid/e2e/prometheus"
	"github.com/ordergrid/ordergrid/internal/checkout"
	"github.com/ordergrid/ordergrid/internal/command"
)

func main() {
	root := &cobra.Command{Use: "prometheus", Short: "A real Prometheus for tests", SilenceUsage: true, SilenceErrors: true}
	root.AddCommand(binaries())
	command.Main(root)
}

func binaries() *cobra.Command {
	var where bool
	cmd := &cobra.Command{
		Use:   "binaries",
		Short: "Build prometheus and promtool into the cache, unless they are there, and print their directory",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			root, err := checkout.Root()
			if err != nil {
				return err
			}
			find := prometheus.Dir
			if !where {
				find = func(ctx context.Context, root string) (string, error) {
					return prometheus.Ensure(ctx, root, command.NewSteps(os.Stderr).Say)
				}
			}
			dir, err := find(cmd.Context(), root)
			if err != nil {
				return err
			}
			fmt.Fprintln(cmd.OutOrStdout(), dir)
			return nil
		},
	}
	cmd.Flags().BoolVar(&where, "dir", false, "print where they are, or will be, and build nothing")
	return cmd
}
