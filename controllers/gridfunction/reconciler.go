// Package gridfunction checks the modules of GridFunctions as grid nodes do, and reports which grids use them.
//
// It gives nothing to a grid: controllers/ordergrid does, and only what is Valid. ADR 64 has the decisions.
package gridfunction

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
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
	"github.com/ordergrid/ordergrid/controllers/allow"
	"github.com/ordergrid/ordergrid/controllers/apply"
	"github.com/ordergrid/ordergrid/controllers/workload"
)

const (
	// lookAgain is the interval to read a file that is missing or another one: ConfigMaps of users are not watched.
	lookAgain = 10 * time.Second
	maxGrids  = 64
)

// Reconciler checks GridFunctions.
type Reconciler struct {
	// Client reads from the cache and writes to the API server.
	Client client.Client
	// Live reads ConfigMaps of users, which the cache does not have.
	Live client.Reader
	// Recorder of events.
	Recorder events.EventRecorder
	// Clock for the times in conditions, and of fetches.
	Clock clock.PassiveClock
	// Sources are the hosts, as fetch.CheckHost takes them, that modules may be fetched from, by namespace.
	Sources allow.List

	fetches   fetches
	compiling sync.Mutex // one module at a time: the memory for it is the operator's
}

// SetupWithManager registers the controller and its watches.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager) error {
	return ctrl.NewControllerManagedBy(mgr).
		Named("gridfunction").
		WithOptions(controller.Options{MaxConcurrentReconciles: workers, RateLimiter: apply.RetryLimiter()}).
		For(&api.GridFunction{}, builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Owns(&corev1.ConfigMap{}, builder.WithPredicates(gone)).
		Watches(&api.OrderGrid{}, handler.EnqueueRequestsFromMapFunc(functionsOf), builder.WithPredicates(callsOthers)).
		Complete(r)
}

// gone lets through that a module that was fetched is there no more.
var gone = predicate.Funcs{
	CreateFunc: func(event.CreateEvent) bool { return false },
	UpdateFunc: func(event.UpdateEvent) bool { return false },
}

// callsOthers lets through changes of the functions of a grid. A function that a grid no longer calls is among those of
// the object before.
var callsOthers = predicate.Funcs{
	UpdateFunc: func(e event.UpdateEvent) bool {
		before, a := e.ObjectOld.(*api.OrderGrid)
		after, b := e.ObjectNew.(*api.OrderGrid)
		return a && b && (!equality.Semantic.DeepEqual(before.Spec.Callbacks, after.Spec.Callbacks) || !equality.Semantic.DeepEqual(before.Status.Functions, after.Status.Functions))
	},
}

// functionsOf maps a grid to the functions that it names or calls. For an update it is called with the object before
// and the one after it.
func functionsOf(_ context.Context, object client.Object) (requests []reconcile.Request) {
	grid, is := object.(*api.OrderGrid)
	if !is {
		return nil
	}
	names := grid.Spec.Callbacks.AllNames()
	for i := range grid.Status.Functions {
		names = append(names, grid.Status.Functions[i].Name)
	}
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		requests = append(requests, reconcile.Request{NamespacedName: types.NamespacedName{Namespace: grid.Namespace, Name: name}})
	}
	return requests
}

// Reconcile checks the module of a function, if that was not done for its spec, and writes status.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	f := &api.GridFunction{}
	if err := r.Client.Get(ctx, req.NamespacedName, f); err != nil {
		if apierrors.IsNotFound(err) {
			r.forget(req.NamespacedName)
		}
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if f.DeletionTimestamp != nil {
		r.forget(req.NamespacedName)
		return ctrl.Result{}, nil
	}
	before := f.DeepCopy()
	problem, err := r.look(ctx, f)
	if errors.Is(err, errBusy) {
		return ctrl.Result{RequeueAfter: fetchBusy}, nil
	}
	if err != nil {
		return ctrl.Result{}, err
	}
	if f.Status.Grids, err = r.grids(ctx, f); err != nil {
		return ctrl.Result{}, err
	}
	conditions := []metav1.Condition{inUse(f.Status.Grids)}
	if problem != nil || f.Status.Module != nil {
		conditions = append(conditions, valid(&f.Spec, f.Status.Module, problem))
	}
	changed := workload.Set(&f.Status.Conditions, f.Generation, metav1.NewTime(r.Clock.Now()), conditions...)
	f.Status.ObservedGeneration = f.Generation
	stale, err := reports.Write(ctx, r.Client, r.Recorder, &workload.Status{
		Before: before, After: f, ConditionsBefore: before.Status.Conditions, ConditionsAfter: f.Status.Conditions, Changed: changed,
	})
	switch {
	case err != nil:
		return ctrl.Result{}, err
	case stale:
		return ctrl.Result{RequeueAfter: time.Second}, nil
	case problem != nil && problem.Passing:
		return ctrl.Result{RequeueAfter: cmp.Or(problem.Again, lookAgain)}, nil
	case problem != nil:
		return ctrl.Result{}, nil
	}
	return ctrl.Result{}, r.drop(ctx, f)
}

func (r *Reconciler) forget(name types.NamespacedName) {
	kindMetrics.Forget(name)
	r.fetches.forget(name)
}

// Checked reports whether the operator has loaded the module that spec names. A digest pins the content, so what was
// found for a generation holds for it, wherever the module comes from: nothing is fetched to see whether it has changed.
func Checked(f *api.GridFunction) bool {
	c := meta.FindStatusCondition(f.Status.Conditions, api.ConditionValid)
	return c != nil && c.Status == metav1.ConditionTrue && c.ObservedGeneration == f.Generation && f.Status.Module != nil && f.Status.Module.SHA256 == f.Spec.Module.SHA256
}

// look sets what is known of the module, or returns why it cannot be given to a grid.
func (r *Reconciler) look(ctx context.Context, f *api.GridFunction) (*Problem, error) {
	var problem *Problem
	err := r.fetched(ctx, f)
	if err == nil && Checked(f) {
		return nil, nil
	}
	f.Status.Module = nil
	if err == nil {
		err = r.load(ctx, f)
	}
	if errors.As(err, &problem) {
		return problem, nil
	}
	return nil, err
}

// load reads the module and loads it as a grid node does.
func (r *Reconciler) load(ctx context.Context, f *api.GridFunction) error {
	files, err := Read(ctx, r.Live, f)
	if err != nil {
		return err
	}
	r.compiling.Lock()
	defer r.compiling.Unlock()
	found, err := check(ctx, &f.Spec, files)
	if err == nil {
		f.Status.Module = found
	}
	return err
}

// grids are those that name the function, or call it still.
func (r *Reconciler) grids(ctx context.Context, f *api.GridFunction) (list []api.FunctionGrid, err error) {
	var grids api.OrderGridList
	if err := r.Client.List(ctx, &grids, client.InNamespace(f.Namespace)); err != nil {
		return nil, err
	}
	for i := range grids.Items {
		g := &grids.Items[i]
		given := slices.IndexFunc(g.Status.Functions, func(s api.GridFunctionUse) bool { return s.Kind == f.Spec.Kind && s.Name == f.Name })
		use := api.FunctionGrid{Name: g.Name}
		if given >= 0 {
			use.SHA256 = g.Status.Functions[given].SHA256
		}
		if given >= 0 || slices.Contains(g.Spec.Callbacks.Names(f.Spec.Kind), f.Name) {
			list = append(list, use)
		}
	}
	slices.SortFunc(list, func(a, b api.FunctionGrid) int { return strings.Compare(a.Name, b.Name) })
	return list[:min(len(list), maxGrids)], nil
}
