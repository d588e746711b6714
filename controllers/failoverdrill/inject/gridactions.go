package inject

import (
	"context"
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/ordergrid/ordergrid/api/v1alpha1"
)

// annotationRestart in the pods' template replaces them all, as kubectl rollout restart does. Its value is the step.
const annotationRestart = "ordergrid.dev/drill-restart"

// roll requests a rolling update: the template and the mark change in one request.
func (g *Grid) roll(ctx context.Context, f *Fault) error {
	grid, err := g.grid(ctx, f)
	switch {
	case err != nil:
		return err
	case grid == nil:
		return permanent("OrderGrid %s is gone", f.Grid.Name)
	case grid.Annotations[f.markKey()] != "":
		return nil
	}
	template := map[string]any{"podTemplate": map[string]any{"metadata": map[string]any{"annotations": map[string]any{annotationRestart: f.mark()}}}}
	return g.annotate(ctx, grid, map[string]any{f.markKey(): string(f.Spec.Type)}, map[string]any{"spec": template})
}

func (g *Grid) rollState(ctx context.Context, f *Fault) (State, error) {
	grid, err := g.grid(ctx, f)
	if err != nil {
		return State{}, err
	}
	if grid == nil || grid.Annotations[f.markKey()] == "" {
		return State{Phase: Gone, Message: "no rolling update of this step is under way"}, nil
	}
	if grid.Status.ObservedGeneration < grid.Generation {
		return State{Phase: Pending, Message: "the operator has not seen the new template yet"}, nil
	}
	_, message := over(grid)
	return State{Phase: Injected, Message: message}, nil
}

// over reports whether a rolling update has ended, successfully or not.
func over(grid *api.OrderGrid) (bool, string) {
	want := grid.Spec.Shards * grid.Spec.Replicas
	progressing := meta.FindStatusCondition(grid.Status.Conditions, api.ConditionProgressing)
	stalled := meta.IsStatusConditionTrue(grid.Status.Conditions, api.ConditionStalled)
	message := fmt.Sprintf("%d of %d pods of OrderGrid %s have the new template", grid.Status.UpdatedPods, want, grid.Name)
	if progressing != nil {
		message += ": " + clip(progressing.Message, 300)
	}
	if grid.Status.ObservedGeneration < grid.Generation {
		return false, message
	}
	done := grid.Status.UpdatedPods == want && progressing != nil && progressing.Status == metav1.ConditionFalse
	return done || stalled, message
}

// rolled reverts nothing, which would be another rolling update: the step is over when the update is.
func (g *Grid) rolled(ctx context.Context, f *Fault) error {
	grid, err := g.grid(ctx, f)
	if err != nil || grid == nil || grid.Annotations[f.markKey()] == "" {
		return err
	}
	if done, _ := over(grid); !done {
		return nil
	}
	return client.IgnoreNotFound(g.annotate(ctx, grid, map[string]any{f.markKey(): nil}, nil))
}

// deletePods deletes exactly the selected pods, with their grace period. The mark is set last: an interrupted step is
// repeated, and finds the pods gone or terminating.
func (g *Grid) deletePods(ctx context.Context, f *Fault) error {
	if len(f.Pods) == 0 {
		return permanent("PodDelete hits no pod")
	}
	for i := range f.Pods {
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: f.Pods[i].Namespace, Name: f.Pods[i].Name}}
		err := g.Client.Delete(ctx, p, client.Preconditions{UID: ptr.To(f.Pods[i].UID)})
		if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
			return fmt.Errorf("delete pod %s: %w", p.Name, err)
		}
	}
	grid, err := g.grid(ctx, f)
	if err != nil || grid == nil {
		return err
	}
	return g.annotate(ctx, grid, map[string]any{f.markKey(): string(f.Spec.Type)}, nil)
}

func (g *Grid) deleteState(ctx context.Context, f *Fault) (State, error) {
	grid, err := g.grid(ctx, f)
	if err != nil {
		return State{}, err
	}
	if grid == nil || grid.Annotations[f.markKey()] == "" {
		return State{Phase: Gone, Message: "no pod was deleted by this step, or the step is over"}, nil
	}
	return State{Phase: Injected, Message: fmt.Sprintf("%d pods are deleted", len(f.Pods))}, nil
}

func (g *Grid) deleted(ctx context.Context, f *Fault) error {
	grid, err := g.grid(ctx, f)
	if err != nil || grid == nil || grid.Annotations[f.markKey()] == "" {
		return err
	}
	return client.IgnoreNotFound(g.annotate(ctx, grid, map[string]any{f.markKey(): nil}, nil))
}

const (
	// annotationHandOver of a GridPartition names the step that moves it.
	annotationHandOver = "ordergrid.dev/drill-hand-over"
	// annotationBefore keeps the user's annotation.
	annotationBefore = "ordergrid.dev/drill-preferred-pod-before"
)

// handOver requests another primary by the annotation that users set.
func (g *Grid) handOver(ctx context.Context, f *Fault) error {
	if len(f.Partitions) == 0 {
		return permanent("HandOver moves no partition")
	}
	var err error
	for _, name := range f.Partitions {
		err = errors.Join(err, g.prefer(ctx, f, name))
	}
	return err
}

func (g *Grid) prefer(ctx context.Context, f *Fault, name string) error {
	p := &api.GridPartition{}
	if err := g.Client.Get(ctx, client.ObjectKey{Namespace: f.Grid.Namespace, Name: name}, p); err != nil {
		return fmt.Errorf("GridPartition %s: %w", name, err)
	}
	switch p.Annotations[annotationHandOver] {
	case f.mark():
		return nil
	case "":
	default:
		return fmt.Errorf("GridPartition %s is being moved by another step, %s", name, p.Annotations[annotationHandOver])
	}
	to, err := successor(p, f.Peers)
	if err != nil {
		return err
	}
	change := map[string]any{annotationHandOver: f.mark(), api.AnnotationPreferredPod: to}
	if before, there := p.Annotations[api.AnnotationPreferredPod]; there {
		change[annotationBefore] = before
	}
	return g.annotate(ctx, p, change, nil)
}

// successor is the requested pod, or the first that is in sync and not the primary.
func successor(p *api.GridPartition, asked []corev1.Pod) (string, error) {
	if p.Status.Primary == nil {
		return "", fmt.Errorf("GridPartition %s has no primary that could hand over", p.Name)
	}
	var able []string
	for _, m := range p.Status.InSync {
		if m.PodName != p.Status.Primary.PodName {
			able = append(able, m.PodName)
		}
	}
	slices.Sort(able)
	switch {
	case len(able) == 0:
		return "", fmt.Errorf("no backup of GridPartition %s is in sync", p.Name)
	case len(asked) == 0:
		return able[0], nil
	case slices.Contains(able, asked[0].Name):
		return asked[0].Name, nil
	}
	return "", fmt.Errorf("pod %s is not an in-sync backup of GridPartition %s; those are %v", asked[0].Name, p.Name, able)
}

func (g *Grid) handOverState(ctx context.Context, f *Fault) (State, error) {
	out := State{Phase: Gone, Message: "no partition is being moved"}
	for _, name := range f.Partitions {
		p := &api.GridPartition{}
		if err := g.Client.Get(ctx, client.ObjectKey{Namespace: f.Grid.Namespace, Name: name}, p); err != nil {
			if apierrors.IsNotFound(err) {
				continue
			}
			return State{}, err
		}
		want := p.Annotations[api.AnnotationPreferredPod]
		switch {
		case p.Annotations[annotationHandOver] != f.mark():
		case p.Status.Primary != nil && p.Status.Primary.PodName == want:
			if out.Phase == Gone {
				out = State{Phase: Injected, Message: fmt.Sprintf("%s is primary of %s", want, name)}
			}
		default:
			out = State{Phase: Pending, Message: fmt.Sprintf("%s is not primary of %s yet", want, name)}
		}
	}
	return out, nil
}

// handBack leaves the choice and the time of the primary to the grid again.
func (g *Grid) handBack(ctx context.Context, f *Fault) (err error) {
	for _, name := range f.Partitions {
		p := &api.GridPartition{}
		if e := g.Client.Get(ctx, client.ObjectKey{Namespace: f.Grid.Namespace, Name: name}, p); e != nil {
			err = errors.Join(err, client.IgnoreNotFound(e))
			continue
		}
		if p.Annotations[annotationHandOver] == f.mark() {
			err = errors.Join(err, g.restore(ctx, p))
		}
	}
	return err
}

// restore restores the annotations of a partition.
func (g *Grid) restore(ctx context.Context, p *api.GridPartition) error {
	change := map[string]any{annotationHandOver: nil, annotationBefore: nil, api.AnnotationPreferredPod: nil}
	if before, there := p.Annotations[annotationBefore]; there {
		change[api.AnnotationPreferredPod] = before
	}
	return client.IgnoreNotFound(g.annotate(ctx, p, change, nil))
}
