package ordergateway

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	api "github.com/ordergrid/ordergrid/api/v1alpha1"
	"github.com/ordergrid/ordergrid/controllers/apply"
	"github.com/ordergrid/ordergrid/controllers/workload"
)

const (
	lookSoon = 5 * time.Second  // interval of a gateway with trouble
	lookLate = 15 * time.Second // of another one
)

// Defaults of OrderGateways, set by the operator's flags.
type Defaults struct {
	// Image of the pods: order-gateway.
	Image string
	// ImagePullPolicy of it; empty leaves it to Kubernetes.
	ImagePullPolicy corev1.PullPolicy
}

// Reconciler carries out OrderGateways.
type Reconciler struct {
	// Client reads from the cache and writes to the API server.
	Client client.Client
	// Live reads from the API server.
	Live client.Reader
	// Recorder of events.
	Recorder events.EventRecorder
	// Clock for the times in conditions.
	Clock clock.PassiveClock
	// Pods queries the pods of gateways.
	Pods *http.Client
	// Defaults of all gateways.
	Defaults Defaults
}

// SetupWithManager registers the controller and its watches.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager, workers int) error {
	return ctrl.NewControllerManagedBy(mgr).
		Named("ordergateway").
		WithOptions(controller.Options{MaxConcurrentReconciles: workers, RateLimiter: apply.RetryLimiter()}).
		For(&api.OrderGateway{}, builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Owns(&appsv1.Deployment{}).
		Owns(&corev1.Service{}).
		Owns(&corev1.ServiceAccount{}).
		Owns(&policyv1.PodDisruptionBudget{}).
		Owns(&networkingv1.NetworkPolicy{}).
		Watches(&corev1.Pod{}, handler.EnqueueRequestsFromMapFunc(workload.OfPod(api.LabelGateway))).
		// The status of a grid has whether all of its nodes take TLS.
		Watches(&api.OrderGrid{}, handler.EnqueueRequestsFromMapFunc(r.gatewaysOf), builder.WithPredicates(predicate.Or(predicate.GenerationChangedPredicate{}, tlsChanged))).
		Complete(r)
}

// tlsChanged lets through changes of what a gateway goes by.
var tlsChanged = predicate.NewPredicateFuncs(func(o client.Object) bool {
	g, is := o.(*api.OrderGrid)
	return is && g.Status.TLS != nil && g.Status.TLS.Transition != ""
})

// gatewaysOf maps a grid to its gateways.
func (r *Reconciler) gatewaysOf(ctx context.Context, grid client.Object) (requests []reconcile.Request) {
	var list api.OrderGatewayList
	if err := r.Client.List(ctx, &list, client.InNamespace(grid.GetNamespace())); err != nil {
		return nil // the cache is gone: the operator is stopping
	}
	for i := range list.Items {
		if g := &list.Items[i]; g.Spec.GridRef.Name == grid.GetName() {
			requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(g)})
		}
	}
	return requests
}

// Reconcile makes the objects of a gateway, asks its pods, and writes status.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	g := &api.OrderGateway{}
	if err := r.Client.Get(ctx, req.NamespacedName, g); err != nil {
		if apierrors.IsNotFound(err) {
			kindMetrics.Forget(req.NamespacedName)
		}
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if g.DeletionTimestamp != nil { // what it owns goes with it
		kindMetrics.Forget(req.NamespacedName)
		return ctrl.Result{}, nil
	}
	o := &observation{gateway: g}
	applyErr := r.apply(ctx, o)
	var foreign *apply.ForeignError
	switch {
	case errors.As(applyErr, &foreign):
		o.problem = problem{reasonNameTaken, foreign.Error()}
	case apierrors.IsInvalid(applyErr), apierrors.IsForbidden(applyErr):
		o.problem = problem{reasonApplyRefused, applyErr.Error()}
	}
	if err := r.observe(ctx, o); err != nil {
		return ctrl.Result{}, errors.Join(applyErr, err)
	}
	before := g.DeepCopy()
	changed := setStatus(o, metav1.NewTime(r.Clock.Now()))
	stale, err := reports.Write(ctx, r.Client, r.Recorder, &workload.Status{
		Before: before, After: g, ConditionsBefore: before.Status.Conditions, ConditionsAfter: g.Status.Conditions, Changed: changed,
	})
	switch {
	case err != nil:
		return ctrl.Result{}, errors.Join(applyErr, err)
	case stale:
		return ctrl.Result{RequeueAfter: time.Second}, nil
	}
	if applyErr != nil {
		return ctrl.Result{}, applyErr
	}
	if o.problem.reason == reasonGridNotFound && len(o.pods) == 0 {
		return ctrl.Result{}, nil // grids are watched, and no pod is to be asked
	}
	if reports.AllGood(g.Status.Conditions) {
		return ctrl.Result{RequeueAfter: lookLate}, nil
	}
	return ctrl.Result{RequeueAfter: lookSoon}, nil
}

// apply makes the objects. A gateway that cannot run keeps the pods that it has.
func (r *Reconciler) apply(ctx context.Context, o *observation) error {
	g := o.gateway
	grid, err := workload.Find(ctx, r.Client, g.Namespace, g.Spec.GridRef.Name, &api.OrderGrid{})
	if err != nil {
		return fmt.Errorf("read OrderGrid %s: %w", g.Spec.GridRef.Name, err)
	}
	end, bad := resolve(g, grid)
	if o.problem = bad; bad.reason != "" {
		return nil
	}
	objects := []client.Object{serviceAccount(g), service(g), disruptionBudget(g)}
	if peers(g) {
		objects = append(objects, peersService(g))
	}
	policy, err := workload.Policy(ctx, r.Client, g, networkPolicy(g), g.Spec.NetworkPolicy != api.NetworkPolicyNone, api.LabelGateway)
	if err != nil {
		return err
	}
	if policy != nil {
		objects = append(objects, policy)
	}
	applier := apply.Applier{Client: r.Client, Live: r.Live, OnWrite: kindMetrics.CountWrite}
	for _, object := range append(objects, deployment(g, end, r.Defaults)) {
		if _, err := applier.Apply(ctx, g, object); err != nil {
			return err
		}
	}
	return nil
}

// observe reads the Deployment and asks the pods.
func (r *Reconciler) observe(ctx context.Context, o *observation) error {
	g := o.gateway
	d, err := workload.Find(ctx, r.Client, g.Namespace, api.GatewayName(g.Name), &appsv1.Deployment{})
	if err != nil {
		return fmt.Errorf("read Deployment %s: %w", api.GatewayName(g.Name), err)
	}
	if d != nil && metav1.IsControlledBy(d, g) {
		o.deployment = d
	}
	var pods corev1.PodList
	if err := r.Client.List(ctx, &pods, client.InNamespace(g.Namespace), client.MatchingLabels(selector(g))); err != nil {
		return fmt.Errorf("list Pods: %w", err)
	}
	o.pods = pods.Items
	slices.SortFunc(o.pods, func(a, b corev1.Pod) int { return strings.Compare(a.Name, b.Name) })
	o.said = askAll(ctx, r.Pods, g, o.pods)
	return nil
}
