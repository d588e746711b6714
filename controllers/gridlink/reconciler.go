// Package gridlink reconciles GridLinks: it runs grid-link as a Deployment and reports in status how far the standby is
// behind. It decides nothing about sites: promotions and demotions are in the records of the partitions.
package gridlink

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
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
	lookSoon = 5 * time.Second  // interval of a link that is not connected, or lags
	lookLate = 15 * time.Second // of another one
)

// Defaults of GridLinks, set by the operator's flags.
type Defaults struct {
	// Image of the link: grid-link.
	Image string
	// ImagePullPolicy of it; empty leaves it to Kubernetes.
	ImagePullPolicy corev1.PullPolicy
}

// Reconciler carries out GridLinks.
type Reconciler struct {
	// Client reads from the cache and writes to the API server.
	Client client.Client
	// Live reads from the API server.
	Live client.Reader
	// Recorder of events.
	Recorder events.EventRecorder
	// Clock for the times in conditions.
	Clock clock.PassiveClock
	// Links queries the pods of links.
	Links *http.Client
	// Defaults of all links.
	Defaults Defaults
}

// SetupWithManager registers the controller and its watches.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager, workers int) error {
	return ctrl.NewControllerManagedBy(mgr).
		Named("gridlink").
		WithOptions(controller.Options{MaxConcurrentReconciles: workers, RateLimiter: apply.RetryLimiter()}).
		For(&api.GridLink{}, builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Owns(&appsv1.Deployment{}).
		Owns(&corev1.ServiceAccount{}).
		Owns(&networkingv1.NetworkPolicy{}).
		Watches(&corev1.Pod{}, handler.EnqueueRequestsFromMapFunc(workload.OfPod(api.LabelLink))).
		Watches(&api.OrderGrid{}, handler.EnqueueRequestsFromMapFunc(r.linksOf), builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Complete(r)
}

// linksOf maps a grid to the links from and to it.
func (r *Reconciler) linksOf(ctx context.Context, grid client.Object) (requests []reconcile.Request) {
	var list api.GridLinkList
	if err := r.Client.List(ctx, &list, client.InNamespace(grid.GetNamespace())); err != nil {
		return nil // the cache is gone: the operator is stopping
	}
	for i := range list.Items {
		l := &list.Items[i]
		for _, e := range []*api.LinkEnd{&l.Spec.From, &l.Spec.To} {
			if e.GridRef != nil && e.GridRef.Name == grid.GetName() {
				requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(l)})
			}
		}
	}
	return slices.Compact(requests)
}

// ofGrids are the problems that a change of a grid's spec ends.
var ofGrids = []string{reasonGridNotFound, reasonReaderMissing, reasonPartitionsDiffer}

// Reconcile makes the objects of a link, asks its pod, and writes status.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	link := &api.GridLink{}
	if err := r.Client.Get(ctx, req.NamespacedName, link); err != nil {
		if apierrors.IsNotFound(err) {
			kindMetrics.Forget(req.NamespacedName)
		}
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if link.DeletionTimestamp != nil { // what it owns goes with it
		kindMetrics.Forget(req.NamespacedName)
		return ctrl.Result{}, nil
	}
	o := &observation{link: link}
	applyErr := r.apply(ctx, o)
	var foreign *apply.ForeignError
	if errors.As(applyErr, &foreign) {
		o.problem = problem{reasonNameTaken, foreign.Error()}
	}
	if err := r.observe(ctx, o); err != nil {
		return ctrl.Result{}, errors.Join(applyErr, err)
	}
	before := link.DeepCopy()
	changed := setStatus(o, metav1.NewTime(r.Clock.Now()))
	stale, err := reports.Write(ctx, r.Client, r.Recorder, &workload.Status{
		Before: before, After: link, ConditionsBefore: before.Status.Conditions, ConditionsAfter: link.Status.Conditions, Changed: changed,
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
	if len(o.pods) == 0 && slices.Contains(ofGrids, o.problem.reason) {
		return ctrl.Result{}, nil // grids are watched, and no pod is to be asked
	}
	if reports.AllGood(link.Status.Conditions) {
		return ctrl.Result{RequeueAfter: lookLate}, nil
	}
	return ctrl.Result{RequeueAfter: lookSoon}, nil
}

// apply makes the objects. A link that cannot run keeps the pod that it has.
func (r *Reconciler) apply(ctx context.Context, o *observation) error {
	from, bad, err := r.end(ctx, o.link, "source", &o.link.Spec.From)
	if o.problem = bad; err != nil || bad.reason != "" {
		return err
	}
	to, bad, err := r.end(ctx, o.link, "target", &o.link.Spec.To)
	if o.problem = bad; err != nil || bad.reason != "" {
		return err
	}
	if o.problem = agree(from, to); o.problem.reason != "" {
		return nil
	}
	objects := []client.Object{serviceAccount(o.link)}
	policy, err := workload.Policy(ctx, r.Client, o.link, networkPolicy(o.link, from, to), o.link.Spec.NetworkPolicy != api.NetworkPolicyNone, api.LabelLink)
	if err != nil {
		return err
	}
	if policy != nil {
		objects = append(objects, policy)
	}
	applier := apply.Applier{Client: r.Client, Live: r.Live, OnWrite: kindMetrics.CountWrite}
	for _, object := range append(objects, deployment(o.link, from, to, r.Defaults)) {
		if _, err := applier.Apply(ctx, o.link, object); err != nil {
			return err
		}
	}
	return nil
}

func (r *Reconciler) end(ctx context.Context, link *api.GridLink, role string, spec *api.LinkEnd) (*end, problem, error) {
	var grid *api.OrderGrid
	if spec.GridRef != nil {
		var err error
		if grid, err = workload.Find(ctx, r.Client, link.Namespace, spec.GridRef.Name, &api.OrderGrid{}); err != nil {
			return nil, problem{}, fmt.Errorf("read OrderGrid %s: %w", spec.GridRef.Name, err)
		}
	}
	e, bad := resolve(link, role, spec, grid)
	return e, bad, nil
}

// observe asks the pod. An older one may exist beside it for a moment.
func (r *Reconciler) observe(ctx context.Context, o *observation) error {
	var pods corev1.PodList
	if err := r.Client.List(ctx, &pods, client.InNamespace(o.link.Namespace), client.MatchingLabels(selector(o.link))); err != nil {
		return fmt.Errorf("list Pods: %w", err)
	}
	o.pods = pods.Items
	for i := range o.pods {
		p := &o.pods[i]
		if p.DeletionTimestamp != nil || p.Status.PodIP == "" || p.Status.Phase != corev1.PodRunning {
			continue
		}
		if o.answer, o.silent = ask(ctx, r.Links, p, o.link); o.answer != nil {
			return nil
		}
	}
	return nil
}
