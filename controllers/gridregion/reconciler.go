// Package gridregion checks GridRegions as grid nodes do, and reports which grids have them.
//
// It gives nothing to a grid: controllers/ordergrid does. ADR 80 has the decisions.
package gridregion

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	api "github.com/ordergrid/ordergrid/api/v1alpha1"
	"github.com/ordergrid/ordergrid/controllers/apply"
	"github.com/ordergrid/ordergrid/controllers/workload"
	"github.com/ordergrid/ordergrid/grid-node/region"
	"github.com/ordergrid/ordergrid/internal/regionfile"
)

const maxGrids = 64

// Reconciler writes the status of GridRegions.
type Reconciler struct {
	// Client reads from the cache and writes to the API server.
	Client client.Client
	// Recorder of events.
	Recorder events.EventRecorder
	// Clock for the times in conditions.
	Clock clock.PassiveClock
}

// SetupWithManager registers the controller and its watches.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager) error {
	return ctrl.NewControllerManagedBy(mgr).
		Named("gridregion").
		WithOptions(controller.Options{MaxConcurrentReconciles: 1, RateLimiter: apply.RetryLimiter()}).
		For(&api.GridRegion{}, builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Watches(&api.OrderGrid{}, handler.EnqueueRequestsFromMapFunc(regionsOf), builder.WithPredicates(namesOthers)).
		Complete(r)
}

// namesOthers lets through changes of the regions of a grid, of whether they are loaded, and of what they have.
var namesOthers = predicate.Funcs{
	UpdateFunc: func(e event.UpdateEvent) bool {
		before, a := e.ObjectOld.(*api.OrderGrid)
		after, b := e.ObjectNew.(*api.OrderGrid)
		return a && b && (!equality.Semantic.DeepEqual(before.Spec.Regions, after.Spec.Regions) || loaded(before) != loaded(after) ||
			!slices.Equal(before.Status.Regions, after.Status.Regions))
	},
}

// regionsOf maps a grid to the GridRegions that it names. For an update it is called with the object before and the one
// after it.
func regionsOf(_ context.Context, object client.Object) (requests []reconcile.Request) {
	grid, is := object.(*api.OrderGrid)
	if !is {
		return nil
	}
	for _, name := range grid.Spec.Regions.Names() {
		requests = append(requests, reconcile.Request{NamespacedName: types.NamespacedName{Namespace: grid.Namespace, Name: name}})
	}
	return requests
}

// loaded reports whether the logs of a grid have the regions that it names now.
func loaded(grid *api.OrderGrid) metav1.ConditionStatus {
	c := meta.FindStatusCondition(grid.Status.Conditions, api.ConditionRegionsLoaded)
	if c == nil || c.ObservedGeneration != grid.Generation {
		return metav1.ConditionUnknown
	}
	return c.Status
}

// Of is a region as the file of grid nodes has it.
func Of(g *api.GridRegion) regionfile.Region {
	x := regionfile.Region{Name: g.RegionName()}
	if g.Spec.MaxBytes != nil {
		x.MaxBytes = g.Spec.MaxBytes.Value()
	}
	if g.Spec.Life != nil {
		x.Life = g.Spec.Life.Duration
	}
	return x
}

// Reconcile writes status.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	g := &api.GridRegion{}
	if err := r.Client.Get(ctx, req.NamespacedName, g); err != nil {
		if apierrors.IsNotFound(err) {
			kindMetrics.Forget(req.NamespacedName)
		}
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if g.DeletionTimestamp != nil {
		kindMetrics.Forget(req.NamespacedName)
		return ctrl.Result{}, nil
	}
	before := g.DeepCopy()
	var err error
	var refusing []string
	if g.Status.Grids, refusing, err = r.grids(ctx, g); err != nil {
		return ctrl.Result{}, err
	}
	g.Status.Entries, g.Status.Bytes = 0, 0
	for _, x := range g.Status.Grids {
		g.Status.Entries, g.Status.Bytes = g.Status.Entries+x.Entries, g.Status.Bytes+x.Bytes
	}
	changed := workload.Set(&g.Status.Conditions, g.Generation, metav1.NewTime(r.Clock.Now()), valid(g), inUse(g.Status.Grids), acceptsWrites(g.Status.Grids, refusing))
	g.Status.ObservedGeneration = g.Generation
	stale, err := reports.Write(ctx, r.Client, r.Recorder, &workload.Status{
		Before: before, After: g, ConditionsBefore: before.Status.Conditions, ConditionsAfter: g.Status.Conditions, Changed: changed,
	})
	if err == nil && stale {
		return ctrl.Result{RequeueAfter: time.Second}, nil
	}
	return ctrl.Result{}, err
}

// grids are those that name the region, and why some of them refuse its changes.
func (r *Reconciler) grids(ctx context.Context, g *api.GridRegion) (list []api.RegionGrid, refusing []string, err error) {
	var grids api.OrderGridList
	if err := r.Client.List(ctx, &grids, client.InNamespace(g.Namespace)); err != nil {
		return nil, nil, err
	}
	for i := range grids.Items {
		if grid := &grids.Items[i]; slices.Contains(grid.Spec.Regions.Names(), g.Name) {
			x := api.RegionGrid{Name: grid.Name, RegionsLoaded: loaded(grid), Writes: api.RegionWritesUnknown}
			if at := slices.IndexFunc(grid.Status.Regions, func(u api.RegionUse) bool { return u.Name == g.RegionName() }); at >= 0 {
				u := &grid.Status.Regions[at]
				x.Entries, x.Bytes, x.Writes = u.Entries, u.Bytes, u.Writes
				if u.Writes == api.RegionWritesRefused {
					refusing = append(refusing, fmt.Sprintf("OrderGrid %s: %s", grid.Name, u.Message))
				}
			}
			list = append(list, x)
		}
	}
	slices.SortFunc(list, func(a, b api.RegionGrid) int { return strings.Compare(a.Name, b.Name) })
	slices.Sort(refusing)
	return list[:min(len(list), maxGrids)], refusing, nil
}

// Reasons of the conditions.
const (
	reasonAccepted = "Accepted"
	reasonRefused  = "Refused"
	reasonInUse    = "InUse"
	reasonUnused   = "Unused"
	reasonFull     = "Full"
	reasonTaken    = "Taken"
	reasonUnknown  = "NotReported"
)

// reports is how the conditions are reported: that a region is in use is no trouble, and that it is not neither.
var reports = workload.Kind{
	Good: []workload.Good{
		{Condition: api.ConditionValid, Status: metav1.ConditionTrue},
		{Condition: api.ConditionInUse, Status: metav1.ConditionTrue},
		{Condition: api.ConditionAcceptsWrites, Status: metav1.ConditionTrue},
	},
	Quiet:   []string{reasonAccepted, reasonInUse, reasonUnused, reasonTaken, reasonUnknown},
	Metrics: kindMetrics,
}

// valid is condition Valid: the check is that of a grid node.
func valid(g *api.GridRegion) metav1.Condition {
	x := Of(g)
	if err := region.CheckSpecs([]region.Spec{{Name: x.Name, MaxBytes: x.MaxBytes, LifeNs: int64(x.Life)}}); err != nil {
		return metav1.Condition{Type: api.ConditionValid, Status: metav1.ConditionFalse, Reason: reasonRefused, Message: err.Error() + ". Grids go on with what their logs have"}
	}
	return metav1.Condition{Type: api.ConditionValid, Status: metav1.ConditionTrue, Reason: reasonAccepted, Message: fmt.Sprintf("grid nodes take it as region %s", x.Name)}
}

// inUse is condition InUse.
func inUse(grids []api.RegionGrid) metav1.Condition {
	if len(grids) == 0 {
		return metav1.Condition{Type: api.ConditionInUse, Status: metav1.ConditionFalse, Reason: reasonUnused, Message: "no OrderGrid of the namespace names it in spec.regions.gridRegions"}
	}
	const few = 4
	var names []string
	for i := range grids[:min(few, len(grids))] {
		names = append(names, grids[i].Name)
	}
	more := ""
	if n := len(grids) - few; n > 0 {
		more = fmt.Sprintf(" and %d more", n)
	}
	return metav1.Condition{Type: api.ConditionInUse, Status: metav1.ConditionTrue, Reason: reasonInUse,
		Message: fmt.Sprintf("OrderGrids name it: %s%s. They keep its entries and its bounds if it is deleted", strings.Join(names, ", "), more)}
}

// acceptsWrites is condition AcceptsWrites.
func acceptsWrites(grids []api.RegionGrid, refusing []string) metav1.Condition {
	c := metav1.Condition{Type: api.ConditionAcceptsWrites, Status: metav1.ConditionUnknown}
	unknown := slices.IndexFunc(grids, func(x api.RegionGrid) bool { return x.Writes != api.RegionWritesTaken })
	switch {
	case len(grids) == 0:
		c.Reason, c.Message = reasonUnused, "no OrderGrid of the namespace names it"
	case len(refusing) > 0:
		c.Status, c.Reason, c.Message = metav1.ConditionFalse, reasonFull, "changes are refused. "+strings.Join(refusing[:min(len(refusing), 4)], ". ")
	case unknown >= 0:
		c.Reason, c.Message = reasonUnknown, fmt.Sprintf("not every partition of OrderGrid %s has reported on the region", grids[unknown].Name)
	default:
		c.Status, c.Reason, c.Message = metav1.ConditionTrue, reasonTaken, "no partition refuses a change for want of memory"
	}
	return c
}
