package main

import (
	"context"
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ordergrid/ordergrid/api/v1alpha1"
)

type recoverFlags struct {
	acceptLoss int64
	reassert   string
	wait       bool
	timeout    time.Duration
}

func recoverCommand(k *kubeFlags) *cobra.Command {
	var f recoverFlags
	cmd := &cobra.Command{
		Use:   "recover PARTITION",
		Short: "Explain a partition that requires a decision, and carry it out",
		Long: `Shows whether a partition waits for a decision that is not taken automatically, and which:

  DataLossSuspected       every process that held all orders of the partition is gone.
                          No process is promoted automatically. If none of them can be brought
                          back, --accept-data-loss EPOCH gives up what only they held: a
                          grid node goes on with what it has, in a new lineage.
  ConfigurationRegressed  the record shows an older configuration than the grid nodes, as
                          after etcd was restored from a backup. --reassert CHANGEID has
                          the configuration with that change id written again.

The operator checks before it acts: an epoch that is not the present one, or a member that
is alive, is refused, and nothing happens. PARTITION is the name of a GridPartition.

Exit codes: 0 nothing to decide, or done; 1 waits for a decision, refused, or not in time;
2 wrong usage; 4 failed.`,
		Example: `  kubectl ordergrid recover trades-p0 -n trading
  kubectl ordergrid recover trades-p0 --accept-data-loss 7`,
		Args: onePartition,
		RunE: func(cmd *cobra.Command, args []string) error {
			if cmd.Flags().Changed("accept-data-loss") && f.acceptLoss < 1 {
				return usageError{fmt.Errorf("--accept-data-loss: value %d, allowed: the partition's present epoch, at least 1", f.acceptLoss)}
			}
			if f.acceptLoss > 0 && f.reassert != "" {
				return usageError{fmt.Errorf("--accept-data-loss and --reassert exclude each other: one gives up a configuration, the other restores one")}
			}
			cluster, err := k.connect()
			if err != nil {
				return err
			}
			return f.run(cmd.Context(), cluster, args[0], cmd.OutOrStdout())
		},
	}
	fl := cmd.Flags()
	fl.Int64Var(&f.acceptLoss, "accept-data-loss", 0, "give up what only the in-sync members of this epoch, the present one, held")
	fl.StringVar(&f.reassert, "reassert", "", "change id of the authoritative configuration")
	fl.BoolVar(&f.wait, "wait", true, "wait until it has happened")
	fl.DurationVar(&f.timeout, "timeout", 2*time.Minute, "how long to wait")
	return cmd
}

func (f *recoverFlags) run(ctx context.Context, c *cluster, name string, out io.Writer) error {
	p, err := c.partition(ctx, name)
	if err != nil {
		return err
	}
	fmt.Fprintln(out, describe(p))
	switch {
	case f.acceptLoss > 0 && f.acceptLoss != p.Status.Epoch:
		return usageError{fmt.Errorf("--accept-data-loss: value %d, allowed: %d, the present epoch; check the in-sync members again before you accept", f.acceptLoss, p.Status.Epoch)}
	case f.acceptLoss > 0:
		return f.ask(ctx, c, p, v1alpha1.AnnotationAcceptDataLoss, strconv.FormatInt(f.acceptLoss, 10), out)
	case f.reassert != "" && f.reassert == p.Status.ChangeID:
		return usageError{fmt.Errorf("--reassert: value %s is already the one in the record; to keep the record as it stands: kubectl annotate -n %s gridpartition %s %s=%s",
			f.reassert, c.namespace, name, v1alpha1.AnnotationReassert, f.reassert)}
	case f.reassert != "":
		return f.ask(ctx, c, p, v1alpha1.AnnotationReassert, f.reassert, out)
	}
	return explain(ctx, c, p, out)
}

// explain prints what the operator knows about the partition.
func explain(ctx context.Context, c *cluster, p *v1alpha1.GridPartition, out io.Writer) error {
	grid, err := c.grid(ctx, p.Spec.GridRef.Name)
	if err != nil {
		return err
	}
	problem := ""
	for _, s := range grid.Status.Partitions {
		if s.Name == p.Name {
			problem = s.Problem
		}
	}
	switch problem {
	case v1alpha1.ConditionDataLossSuspected, v1alpha1.ConditionConfigurationRegressed:
		printCondition(out, grid, problem)
		return exitError(exitNotDone)
	case "":
		fmt.Fprintf(out, "%s: no decision pending, the partition is healthy\n", p.Name)
	default:
		fmt.Fprintf(out, "%s: %s; no decision pending\n", p.Name, problem)
		if c := meta.FindStatusCondition(grid.Status.Conditions, v1alpha1.ConditionDataLossSuspected); c != nil && c.Status == metav1.ConditionUnknown {
			printCondition(out, grid, c.Type)
		}
	}
	return nil
}

func printCondition(out io.Writer, grid *v1alpha1.OrderGrid, kind string) {
	if c := meta.FindStatusCondition(grid.Status.Conditions, kind); c != nil {
		fmt.Fprintf(out, "%s is %s (%s): %s\n", c.Type, c.Status, c.Reason, c.Message)
	}
}

// ask sets the annotation and waits for the operator to remove it, which it does when the matter is settled.
func (f *recoverFlags) ask(ctx context.Context, c *cluster, before *v1alpha1.GridPartition, annotation, value string, out io.Writer) error {
	if err := c.annotate(ctx, before.Name, annotation, value); err != nil {
		return err
	}
	if !f.wait {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, f.timeout)
	defer cancel()
	began := time.Now()
	settled := false
	p, err := c.await(ctx, before.Name, func(p *v1alpha1.GridPartition) bool {
		_, there := p.Annotations[annotation]
		settled = !there
		return settled
	})
	if p == nil {
		return err
	}
	fmt.Fprintf(out, "%s, after %.1fs\n", describe(p), time.Since(began).Seconds())
	// A new epoch shows that a grid node acted; a refusal changes nothing.
	if settled && p.Status.Epoch > before.Status.Epoch {
		return nil
	}
	if settled {
		fmt.Fprintf(out, "%s: not done; see kubectl describe gridpartition %s\n", p.Name, p.Name)
	} else {
		fmt.Fprintf(out, "%s: not settled after %v; the annotation %s stays until it is, or until you remove it\n", p.Name, f.timeout, annotation)
	}
	if grid, err := c.grid(context.WithoutCancel(ctx), p.Spec.GridRef.Name); err == nil {
		printCondition(out, grid, conditionOf[annotation])
	}
	return exitError(exitNotDone)
}

// conditionOf an annotation is the condition in which the operator reports the result.
var conditionOf = map[string]string{
	v1alpha1.AnnotationAcceptDataLoss: v1alpha1.ConditionDataLossSuspected,
	v1alpha1.AnnotationReassert:       v1alpha1.ConditionConfigurationRegressed,
}
