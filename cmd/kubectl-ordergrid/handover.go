package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/ordergrid/ordergrid/api/v1alpha1"
)

type handoverFlags struct {
	to          string
	reset, wait bool
	timeout     time.Duration
}

func handoverCommand(k *kubeFlags) *cobra.Command {
	var f handoverFlags
	cmd := &cobra.Command{
		Use:   "handover PARTITION",
		Short: "Make another pod the primary of a partition, without a failed order",
		Long: `Moves the primary of a partition to another pod of its shard. The present primary stops
admission for some milliseconds, lets the other member catch up, hands over and redirects
clients; no order fails. It happens once the other pod has been in sync for
spec.timing.handOverDelay of the OrderGrid (5s by default).

PARTITION is the name of a GridPartition; "kubectl get gp" lists them. Without --to the
in-sync pod is taken that is primary of the fewest partitions.

The choice stays, also after a failover: it is the annotation ` + v1alpha1.AnnotationPreferredPod + `
of the GridPartition, until the partition moves to another shard. --reset removes it, and the operator
spreads the primaries of the shard over its pods again; which partition changes then is its choice.

Exit codes: 0 the pod is primary, or --reset is done, 1 not done or not in time, 2 wrong usage, 4 failed.`,
		Example: `  kubectl ordergrid handover trades-p0 -n trading
  kubectl ordergrid handover trades-p0 --to trades-s0-1 --timeout 30s
  kubectl ordergrid handover trades-p0 --reset`,
		Args: onePartition,
		RunE: func(cmd *cobra.Command, args []string) error {
			if f.reset && f.to != "" {
				return usageError{fmt.Errorf("--reset and --to %s exclude each other: --reset leaves the choice to the operator", f.to)}
			}
			cluster, err := k.connect()
			if err != nil {
				return err
			}
			return f.run(cmd.Context(), cluster, args[0], cmd.OutOrStdout())
		},
	}
	fl := cmd.Flags()
	fl.StringVar(&f.to, "to", "", "pod that should be primary (default: the in-sync pod with the fewest)")
	fl.BoolVar(&f.reset, "reset", false, "return the choice to the operator")
	fl.BoolVar(&f.wait, "wait", true, "wait until it has happened, and print how long it took")
	fl.DurationVar(&f.timeout, "timeout", time.Minute, "how long to wait")
	return cmd
}

func (f *handoverFlags) run(ctx context.Context, c *cluster, name string, out io.Writer) error {
	p, err := c.partition(ctx, name)
	if err != nil {
		return err
	}
	if primaryPod(p) == "" {
		return fmt.Errorf("gridpartition %s/%s has no primary that could hand over; see kubectl ordergrid status %s", c.namespace, name, p.Spec.GridRef.Name)
	}
	if f.reset {
		if err := c.annotate(ctx, name, v1alpha1.AnnotationPreferredPod, ""); err != nil {
			return err
		}
		fmt.Fprintf(out, "%s: its primary may be on any pod of shard %d again; the operator moves it if a pod has too many\n", describe(p), p.Spec.Shard)
		return nil
	}
	target, err := f.target(ctx, c, p)
	if err != nil {
		return err
	}
	fmt.Fprintln(out, describe(p))
	if err := c.annotate(ctx, name, v1alpha1.AnnotationPreferredPod, target); err != nil {
		return err
	}
	if !slices.Contains(inSyncPods(p), target) {
		fmt.Fprintf(out, "%s: %s is not in sync yet; it becomes primary once it has been for a while\n", name, target)
	}
	if !f.wait {
		return nil
	}
	return f.await(ctx, c, name, target, out)
}

// target is the requested primary.
func (f *handoverFlags) target(ctx context.Context, c *cluster, p *v1alpha1.GridPartition) (string, error) {
	if f.to != "" {
		if pods := shardPods(p); !slices.Contains(pods, f.to) {
			return "", usageError{fmt.Errorf("--to: value %q, allowed: %v, the pods of the partition's shard", f.to, pods)}
		}
		return f.to, nil
	}
	parts, err := c.partitions(ctx, p.Spec.GridRef.Name)
	if err != nil {
		return "", err
	}
	primaries := map[string]int{}
	for i := range parts {
		primaries[primaryPod(&parts[i])]++
	}
	best := ""
	for _, pod := range inSyncPods(p) {
		if pod != primaryPod(p) && (best == "" || primaries[pod] < primaries[best]) {
			best = pod
		}
	}
	if best == "" {
		return "", fmt.Errorf("%s: no other pod is in sync, so there is none to hand over to; kubectl ordergrid status %s shows which is missing", p.Name, p.Spec.GridRef.Name)
	}
	return best, nil
}

func (f *handoverFlags) await(ctx context.Context, c *cluster, name, target string, out io.Writer) error {
	ctx, cancel := context.WithTimeout(ctx, f.timeout)
	defer cancel()
	began := time.Now()
	refused := false
	p, err := c.await(ctx, name, func(p *v1alpha1.GridPartition) bool {
		refused = p.Annotations[v1alpha1.AnnotationPreferredPod] != target
		return primaryPod(p) == target || refused
	})
	switch {
	case p != nil && primaryPod(p) == target:
		fmt.Fprintf(out, "%s, after %.1fs\n", describe(p), time.Since(began).Seconds())
		return nil
	case p == nil:
		return err
	case refused:
		fmt.Fprintf(out, "%s: the annotation %s was changed or refused; see kubectl describe gridpartition %s\n", name, v1alpha1.AnnotationPreferredPod, name)
	case p.Spec.PreferredPod != target:
		fmt.Fprintf(out, "%s: after %v the operator has not applied it (spec.preferredPod is %s); is it running?\n", name, f.timeout, p.Spec.PreferredPod)
	default:
		fmt.Fprintf(out, "%s, after %v: %s is not primary; it has to be in sync for spec.timing.handOverDelay, and not about to stop. The annotation stays; --reset removes it\n",
			describe(p), f.timeout, target)
	}
	return exitError(exitNotDone)
}
