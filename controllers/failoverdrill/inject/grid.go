package inject

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/ordergrid/ordergrid/api/v1alpha1"
)

// Grid makes faults with the means of the grid and Kubernetes: a hand-over, a rolling update, the deletion of a pod. An
// annotation of the changed object marks a step until it is recovered.
type Grid struct {
	// Client reads and writes without a cache.
	Client client.Client
}

var _ Injector = (*Grid)(nil)

// action is one type of fault of the grid.
type action struct {
	inject  func(context.Context, *Fault) error
	state   func(context.Context, *Fault) (State, error)
	recover func(context.Context, *Fault) error
}

func (g *Grid) action(t api.DrillFaultType) (action, error) {
	if of := faultTypes[t].grid; of != nil {
		return of(g), nil
	}
	return action{}, permanent("the operator itself does not support faults of type %s", t)
}

// Provider implements Injector.
func (g *Grid) Provider() Provider { return ProviderGrid }

// Supports implements Injector.
func (g *Grid) Supports(_ context.Context, scope *Scope) (map[api.DrillFaultType]Answer, error) {
	out := map[api.DrillFaultType]Answer{}
	for i := range scope.Faults {
		t := scope.Faults[i].Type
		switch _, err := g.action(t); {
		case err != nil:
			out[t] = Answer{No, err.Error()}
		case t == api.FaultHandOver && scope.Grid != nil && scope.Grid.Spec.Replicas < 2:
			out[t] = Answer{No, fmt.Sprintf("OrderGrid %s has replicas: %d, so there is no backup to hand over to", scope.Grid.Name, scope.Grid.Spec.Replicas)}
		default:
			out[t] = Answer{Verdict: Yes}
		}
	}
	return out, nil
}

// Inject implements Injector.
func (g *Grid) Inject(ctx context.Context, f *Fault) error {
	a, err := g.action(f.Spec.Type)
	if err != nil {
		return err
	}
	return a.inject(ctx, f)
}

// State implements Injector.
func (g *Grid) State(ctx context.Context, f *Fault) (State, error) {
	a, err := g.action(f.Spec.Type)
	if err != nil {
		return State{}, err
	}
	return a.state(ctx, f)
}

// Recover implements Injector.
func (g *Grid) Recover(ctx context.Context, f *Fault) error {
	a, err := g.action(f.Spec.Type)
	if err != nil {
		return err
	}
	return a.recover(ctx, f)
}

// markKey is the annotation of an OrderGrid that marks a step as made. Its value is the type of the fault.
func (f *Fault) markKey() string { return fmt.Sprintf("%s%d", f.Drill.markPrefix(), f.Step) }

// markPrefix begins the keys of all steps of a drill.
func (d Drill) markPrefix() string { return "ordergrid.dev/drill-" + d.short() + "-" }

// grid reads the OrderGrid of a fault; nil: it is gone.
func (g *Grid) grid(ctx context.Context, f *Fault) (*api.OrderGrid, error) {
	grid := &api.OrderGrid{}
	err := g.Client.Get(ctx, client.ObjectKeyFromObject(f.Grid), grid)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	return grid, err
}

// annotate changes annotations of an object, and more of it; a nil value removes.
func (g *Grid) annotate(ctx context.Context, o client.Object, annotations map[string]any, more map[string]any) error {
	metadata := map[string]any{"annotations": annotations}
	if _, theirs := annotations[api.AnnotationPreferredPod]; theirs {
		metadata["resourceVersion"] = o.GetResourceVersion() // not over a change made meanwhile
	}
	patch := map[string]any{"metadata": metadata}
	for k, v := range more {
		patch[k] = v
	}
	content, err := json.Marshal(patch)
	if err != nil {
		return err
	}
	return g.Client.Patch(ctx, o, client.RawPatch(types.MergePatchType, content), client.FieldOwner("failoverdrill"))
}

// marked are the objects of a drill's namespace that carry its annotations, with the keys.
func (g *Grid) marked(ctx context.Context, d Drill) (grids []api.OrderGrid, partitions []api.GridPartition, err error) {
	var gl api.OrderGridList
	var pl api.GridPartitionList
	if err := g.Client.List(ctx, &gl, client.InNamespace(d.Namespace)); err != nil {
		return nil, nil, err
	}
	if err := g.Client.List(ctx, &pl, client.InNamespace(d.Namespace)); err != nil {
		return nil, nil, err
	}
	for i := range gl.Items {
		if len(d.marks(&gl.Items[i])) > 0 {
			grids = append(grids, gl.Items[i])
		}
	}
	for i := range pl.Items {
		if strings.HasPrefix(pl.Items[i].Annotations[annotationHandOver], string(d.UID)+"/") {
			partitions = append(partitions, pl.Items[i])
		}
	}
	return grids, partitions, nil
}

func (d Drill) marks(o metav1.Object) (keys []string) {
	for key := range o.GetAnnotations() {
		if strings.HasPrefix(key, d.markPrefix()) {
			keys = append(keys, key)
		}
	}
	return keys
}

// Leftovers implements Injector. A rolling update that the drill began is not one: it ends by itself, and is never
// undone.
func (g *Grid) Leftovers(ctx context.Context, d Drill) ([]string, error) {
	grids, partitions, err := g.marked(ctx, d)
	var out []string
	for i := range grids {
		out = append(out, fmt.Sprintf("annotations %s of OrderGrid %s", strings.Join(d.marks(&grids[i]), ", "), grids[i].Name))
	}
	for i := range partitions {
		out = append(out, fmt.Sprintf("annotation %s=%s of GridPartition %s", api.AnnotationPreferredPod, partitions[i].Annotations[api.AnnotationPreferredPod], partitions[i].Name))
	}
	return out, err
}

// RecoverAll implements Injector.
func (g *Grid) RecoverAll(ctx context.Context, d Drill) error {
	grids, partitions, err := g.marked(ctx, d)
	for i := range grids {
		remove := map[string]any{}
		for _, key := range d.marks(&grids[i]) {
			remove[key] = nil
		}
		err = errors.Join(err, client.IgnoreNotFound(g.annotate(ctx, &grids[i], remove, nil)))
	}
	for i := range partitions {
		err = errors.Join(err, g.restore(ctx, &partitions[i]))
	}
	return err
}
