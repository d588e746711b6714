package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"github.com/ordergrid/ordergrid/api/v1alpha1"
)

// exitNotDone means that the grid did not do what was requested, or not in time.
const exitNotDone = 1

// pollEvery is the polling interval of commands that wait for a partition.
const pollEvery = 100 * time.Millisecond

// onePartition checks the argument of the commands about a partition.
func onePartition(cmd *cobra.Command, args []string) error {
	if len(args) != 1 || args[0] == "" {
		return usageError{fmt.Errorf("%d arguments, allowed: the name of one GridPartition, such as trades-p1; see %s --help", len(args), cmd.CommandPath())}
	}
	return nil
}

func (c *cluster) partition(ctx context.Context, name string) (*v1alpha1.GridPartition, error) {
	var p v1alpha1.GridPartition
	err := c.own.Get().Namespace(c.namespace).Resource("gridpartitions").Name(name).Do(ctx).Into(&p)
	if apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("gridpartition %s/%s does not exist; kubectl get gp -A lists them: %w", c.namespace, name, err)
	}
	return &p, err
}

// annotate sets an annotation of a partition; an empty value removes it.
func (c *cluster) annotate(ctx context.Context, name, annotation, value string) error {
	return c.annotateObject(ctx, "gridpartitions", name, annotation, value, "-operate")
}

// annotateObject sets an annotation; role is the chart's role that grants it.
func (c *cluster) annotateObject(ctx context.Context, resource, name, annotation, value, role string) error {
	var v any // null removes
	if value != "" {
		v = value
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": map[string]any{annotation: v}}})
	if err != nil {
		return err
	}
	err = c.own.Patch(types.MergePatchType).Namespace(c.namespace).Resource(resource).Name(name).
		Param("fieldManager", "kubectl-ordergrid").Body(patch).Do(ctx).Error()
	if apierrors.IsForbidden(err) {
		return fmt.Errorf("%w; the chart's ClusterRole ending in %s grants it", err, role)
	}
	return err
}

// await polls the partition until done is true. It returns the last state of the partition.
func (c *cluster) await(ctx context.Context, name string, done func(*v1alpha1.GridPartition) bool) (last *v1alpha1.GridPartition, err error) {
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	for {
		p, err := c.partition(ctx, name)
		switch {
		case err == nil:
			if last = p; done(p) {
				return last, nil
			}
		case ctx.Err() == nil && apierrors.IsNotFound(err):
			return last, err
		}
		select { // other errors are transient: the API server may be briefly unavailable
		case <-tick.C:
		case <-ctx.Done():
			return last, errors.Join(ctx.Err(), err)
		}
	}
}

// shardPods are the pods of the partition's shard.
func shardPods(p *v1alpha1.GridPartition) (pods []string) {
	for ordinal := range p.Spec.Replicas {
		pods = append(pods, v1alpha1.PodName(p.Spec.GridRef.Name, p.Spec.Shard, ordinal))
	}
	return pods
}

func primaryPod(p *v1alpha1.GridPartition) string {
	if p.Status.Primary == nil {
		return ""
	}
	return p.Status.Primary.PodName
}

func inSyncPods(p *v1alpha1.GridPartition) (pods []string) {
	for _, m := range p.Status.InSync {
		pods = append(pods, m.PodName)
	}
	return pods
}

// describe formats a partition as one line.
func describe(p *v1alpha1.GridPartition) string {
	primary := primaryPod(p)
	if primary == "" {
		return fmt.Sprintf("%s: not claimed yet", p.Name)
	}
	return fmt.Sprintf("%s: primary %s, epoch %d, lineage %d, in sync: %s", p.Name, primary, p.Status.Epoch, p.Status.Lineage, strings.Join(inSyncPods(p), ", "))
}
