package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/ordergrid/ordergrid/api/v1alpha1"
)

type drainFlags struct {
	undo    bool
	timeout time.Duration
}

func drainCommand(k *kubeFlags) *cobra.Command {
	var f drainFlags
	cmd := &cobra.Command{
		Use:   "drain NODE|POD",
		Short: "Hand over every primary on a Kubernetes node or a pod, without a failed order",
		Long: `Moves the primary of every partition away from a grid pod, or from all grid pods of the namespace on a Kubernetes
node: before maintenance, or to inspect a slow machine without orders on it. Each partition is handed over to another
in-sync pod, as "kubectl ordergrid handover" does, and the command waits until no primary is left there. Pods go on as
backups; none is deleted. "kubectl drain" needs no such preparation (a pod hands over when it is stopped), but ends the
copies too; cordon the node first if new pods should stay away.

The choice stays: it is the annotation ` + api.AnnotationPreferredPod + ` of each GridPartition. --undo removes it from
the partitions of the shards of those pods, also where a handover had set it, and the operator spreads their primaries
again.

It can be run again at any time, without further effect.

Exit codes: 0 no primary is left there, 1 some are left after --timeout, or cannot move (they are listed with the reason),
2 wrong usage, 4 failed.`,
		Example: `  kubectl ordergrid drain worker-3 -n trading
  kubectl ordergrid drain trades-s0-1 -n trading --timeout 30s
  kubectl ordergrid drain worker-3 -n trading --undo`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) != 1 || args[0] == "" {
				return usageError{fmt.Errorf("%d arguments, allowed: the name of one Kubernetes node or grid pod; see %s --help", len(args), cmd.CommandPath())}
			}
			return nil
		},
		ValidArgsFunction: first(k.names(drainable)),
		RunE: func(cmd *cobra.Command, args []string) error {
			if f.timeout <= 0 {
				return usageError{fmt.Errorf("--timeout: value %v, allowed: more than 0s", f.timeout)}
			}
			cluster, err := k.connect()
			if err != nil {
				return err
			}
			pods, err := cluster.podsAt(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			d := &drainer{cluster: cluster, what: args[0], pods: pods, out: cmd.OutOrStdout(), requested: map[string]string{}, printed: map[string]string{}}
			if f.undo {
				return d.undo(cmd.Context())
			}
			return d.run(cmd.Context(), f.timeout)
		},
	}
	cmd.Flags().BoolVar(&f.undo, "undo", false, "let the operator spread the primaries of their shards again")
	cmd.Flags().DurationVar(&f.timeout, "timeout", 2*time.Minute, "how long to wait")
	return cmd
}

// gridNodePods are the pods of all grids of the namespace, in whatever phase.
func (c *cluster) gridNodePods(ctx context.Context) ([]corev1.Pod, error) {
	var list corev1.PodList
	err := c.core.Get().Namespace(c.namespace).Resource("pods").
		VersionedParams(&metav1.ListOptions{LabelSelector: api.LabelGrid + ",app.kubernetes.io/component=grid-node"}, c.params).Do(ctx).Into(&list)
	return list.Items, err
}

// podsAt are the names of the grid pods selected by a name: a pod of that name, or those on the Kubernetes node of that
// name.
func (c *cluster) podsAt(ctx context.Context, name string) (names []string, err error) {
	pods, err := c.gridNodePods(ctx)
	if err != nil {
		return nil, err
	}
	for i := range pods {
		if pods[i].Name == name {
			return []string{name}, nil
		}
		if pods[i].Spec.NodeName == name {
			names = append(names, pods[i].Name)
		}
	}
	if len(names) > 0 {
		return names, nil
	}
	err = c.core.Get().Resource("nodes").Name(name).Do(ctx).Error()
	if apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("%q is neither a grid pod of namespace %s nor a Kubernetes node; kubectl get pods -A -l %s -o wide lists both", name, c.namespace, api.LabelGrid)
	}
	if err != nil && !apierrors.IsForbidden(err) {
		return nil, err
	}
	if err != nil {
		return nil, fmt.Errorf("no grid pod of namespace %s is called %q or runs on a node of that name, and Kubernetes nodes cannot be listed: %w", c.namespace, name, err)
	}
	return nil, nil
}

func drainable(ctx context.Context, c *cluster) (names []string, err error) {
	pods, err := c.gridNodePods(ctx)
	for i := range pods {
		names = append(names, pods[i].Name)
		if n := pods[i].Spec.NodeName; n != "" && !slices.Contains(names, n) {
			names = append(names, n)
		}
	}
	return names, err
}

// drainer moves primaries away from a set of pods.
type drainer struct {
	cluster   *cluster
	what      string
	pods      []string
	out       io.Writer
	requested map[string]string // requested pod, by partition
	printed   map[string]string // last line printed about a partition
}

func (d *drainer) there(pod string) bool { return slices.Contains(d.pods, pod) }

func (d *drainer) line(partition, format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	if d.printed[partition] != text {
		fmt.Fprintf(d.out, "%s: %s\n", partition, text)
	}
	d.printed[partition] = text
}

// obstacle is why a partition has not moved.
type obstacle struct {
	text  string
	final bool // waiting does not help
}

// run requests the hand-overs and checks again, until nothing is left: a failover meanwhile changes the targets.
func (d *drainer) run(ctx context.Context, timeout time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	began := time.Now()
	var left map[string]obstacle
	for {
		now, err := d.step(ctx)
		switch {
		case err == nil && len(now) == 0:
			fmt.Fprintf(d.out, "%s: no primary is left on %s, after %.1fs\n", d.what, podsText(d.pods), time.Since(began).Seconds())
			return nil
		case err == nil:
			left = now
			if allFinal(left) {
				return d.report(left, "")
			}
		case ctx.Err() == nil && !mayPass(err):
			return err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			if left == nil {
				return errors.Join(ctx.Err(), err)
			}
			return d.report(left, fmt.Sprintf(" after %v", timeout))
		}
	}
}

func podsText(pods []string) string {
	if len(pods) == 0 {
		return "it: no grid pod of the namespace runs there"
	}
	return strings.Join(pods, ", ")
}

func allFinal(left map[string]obstacle) bool {
	for _, o := range left {
		if !o.final {
			return false
		}
	}
	return true
}

func (d *drainer) report(left map[string]obstacle, when string) error {
	names := make([]string, 0, len(left))
	for name := range left {
		names = append(names, name)
	}
	slices.Sort(names)
	fmt.Fprintf(d.out, "%s: %d left%s:\n", d.what, len(left), when)
	for _, name := range names {
		fmt.Fprintf(d.out, "  %s: %s\n", name, left[name].text)
	}
	return exitError(exitNotDone)
}

// step requests every missing hand-over, and returns what is left.
func (d *drainer) step(ctx context.Context) (map[string]obstacle, error) {
	parts, err := d.cluster.allPartitions(ctx)
	if err != nil {
		return nil, err
	}
	load := map[string]int{} // future number of primaries of each pod
	for i := range parts {
		if pod := primaryPod(&parts[i]); !d.there(pod) {
			load[pod]++
		}
	}
	left := map[string]obstacle{}
	for i := range parts {
		p := &parts[i]
		if !d.there(primaryPod(p)) && !d.there(p.Spec.PreferredPod) {
			if target := d.requested[p.Name]; target != "" && primaryPod(p) == target {
				d.line(p.Name, "primary is %s, epoch %d", target, p.Status.Epoch)
			}
			continue
		}
		o, err := d.move(ctx, p, load)
		if err != nil {
			return nil, err
		}
		left[p.Name] = o
	}
	return left, nil
}

// move requests one hand-over, once; it returns why the partition has not moved.
func (d *drainer) move(ctx context.Context, p *api.GridPartition, load map[string]int) (obstacle, error) {
	set := p.Annotations[api.AnnotationPreferredPod]
	if target := d.requested[p.Name]; target != "" && set != target {
		return obstacle{fmt.Sprintf("the annotation %s was changed or refused; see kubectl describe gridpartition %s", api.AnnotationPreferredPod, p.Name), true}, nil
	}
	if set != "" && !d.there(set) && slices.Contains(inSyncPods(p), set) {
		d.requested[p.Name] = set // by an earlier drain or a hand-over; it is still pending
		if p.Spec.PreferredPod != set {
			return obstacle{fmt.Sprintf("the operator has not applied %s (spec.preferredPod is %s); is it running?", set, p.Spec.PreferredPod), false}, nil
		}
		return obstacle{fmt.Sprintf("%s is still primary; %s has to be in sync for spec.timing.handOverDelay, and not about to stop", primaryPod(p), set), false}, nil
	}
	target := d.target(p, load)
	if target == "" {
		if p.Spec.Replicas == 1 {
			return obstacle{fmt.Sprintf("its only copy is on %s (spec.replicas is 1)", primaryPod(p)), true}, nil
		}
		return obstacle{fmt.Sprintf("no other pod is in sync; kubectl ordergrid status %s shows which is missing", p.Spec.GridRef.Name), false}, nil
	}
	if err := d.cluster.annotate(ctx, p.Name, api.AnnotationPreferredPod, target); err != nil {
		return obstacle{}, err
	}
	load[target]++
	d.requested[p.Name] = target
	d.line(p.Name, "from %s to %s, requested", orDash(primaryPod(p)), target)
	return obstacle{"just asked", false}, nil
}

// target is the in-sync pod elsewhere with the fewest primaries; the present primary, if it is elsewhere.
func (d *drainer) target(p *api.GridPartition, load map[string]int) (best string) {
	if pod := primaryPod(p); pod != "" && !d.there(pod) {
		return pod
	}
	for _, pod := range inSyncPods(p) {
		if !d.there(pod) && (best == "" || load[pod] < load[best]) {
			best = pod
		}
	}
	return best
}

func (d *drainer) undo(ctx context.Context) error {
	parts, err := d.cluster.allPartitions(ctx)
	if err != nil {
		return err
	}
	n := 0
	for i := range parts {
		p := &parts[i]
		if !slices.ContainsFunc(shardPods(p), d.there) || p.Annotations[api.AnnotationPreferredPod] == "" {
			continue
		}
		if err := d.cluster.annotate(ctx, p.Name, api.AnnotationPreferredPod, ""); err != nil {
			return err
		}
		n++
		fmt.Fprintf(d.out, "%s: its primary may be on any pod of shard %d again\n", p.Name, p.Spec.Shard)
	}
	fmt.Fprintf(d.out, "%s: %d annotations removed; primaries are spread again once the pods have been in sync for spec.timing.handOverDelay\n", d.what, n)
	return nil
}
