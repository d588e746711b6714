package main

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/ordergrid/ordergrid/controllers/manager"
)

// checkCommand is what `helm test` runs.
func checkCommand() *cobra.Command {
	var (
		o      manager.CheckOptions
		within time.Duration
	)
	cmd := &cobra.Command{
		Use:   "check",
		Short: "Check an installation",
		Long: "check verifies that the API server serves OrderGrid's kinds, that an operator runs in the namespace, and\n" +
			"that its Service answers. It writes nothing to the cluster. `helm test` runs it in a pod.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if o.Namespace == "" {
				return fmt.Errorf("--namespace: empty; give the namespace the operator runs in")
			}
			cfg, err := ctrl.GetConfig()
			if err != nil {
				return fmt.Errorf("no cluster: %w; run in one, or set KUBECONFIG", err)
			}
			ctx, cancel := context.WithTimeout(cmd.Context(), within)
			defer cancel()
			o.Out = cmd.OutOrStdout()
			return manager.Check(ctx, cfg, o)
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.Namespace, "namespace", "", "namespace the operator runs in")
	f.StringVar(&o.URL, "url", "", "metrics of the operator, by its Service (default: not checked)")
	f.DurationVar(&within, "within", 2*time.Minute, "how long to wait until all checks pass")
	return cmd
}
