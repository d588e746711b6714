// Package failoverdrill reconciles FailoverDrills: it lets a recorder send orders to a grid, injects faults into the
// grid step by step, recovers them whatever happens, and copies the recorder's certificate into status.
//
// The operator keeps no state of a drill. Status has the state of every step, and is written before a fault is
// requested, so that a restarted operator knows of every fault that was made.
package failoverdrill

import (
	"context"
	"errors"
	"sync"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"

	api "github.com/ordergrid/ordergrid/api/v1alpha1"
	"github.com/ordergrid/ordergrid/controllers/allow"
	"github.com/ordergrid/ordergrid/controllers/apply"
	"github.com/ordergrid/ordergrid/controllers/failoverdrill/inject"
	"github.com/ordergrid/ordergrid/controllers/failoverdrill/witness"
	"github.com/ordergrid/ordergrid/controllers/messages"
	"github.com/ordergrid/ordergrid/controllers/workload"
)

// conflictRetry is when to reconcile again after a conflict.
const conflictRetry = 200 * time.Millisecond

// Defaults of FailoverDrills, set by the operator's flags.
type Defaults struct {
	// Image of the recorder, which is the probe's.
	Image string
	// ImagePullPolicy of the recorder; empty leaves it to Kubernetes.
	ImagePullPolicy corev1.PullPolicy
	// Namespaces in which drills may run; none: nowhere, AllNamespaces: everywhere.
	Namespaces []string
	// Allowed are, by namespace, the types of faults that drills may make there although they affect more than the
	// grid; see CheckFaultType.
	Allowed allow.List
}

// Reconciler carries out FailoverDrills.
type Reconciler struct {
	// Client reads from the cache and writes to the API server.
	Client client.Client
	// Live reads from the API server. While a drill is under way all input of decisions about a fault is read from it.
	Live client.Reader
	// Recorder of events.
	Recorder events.EventRecorder
	// Clock for times in status.
	Clock clock.PassiveClock
	// Injectors, in order of preference.
	Injectors []inject.Injector
	// Witness observes the faults.
	Witness witness.Witness
	// Memories returns the memory that grids have for the orders of drills; nil: unknown.
	Memories Memories
	// Keys makes the tokens of recorders.
	Keys Keys
	// RecorderURL returns the URL of the recorder in a pod; nil: the pod's address.
	RecorderURL func(pod *corev1.Pod) string
	// Versions of the components, for the certificate.
	Versions func(ctx context.Context) map[string]string
	// Defaults of omitted fields.
	Defaults Defaults

	claim sync.Mutex // held from the check for other drills on a grid until status has the claim
	heard heard
	plans plans
	links links
}

// SetupWithManager registers the controller and its watches. Kinds of Chaos Mesh are not watched: they may not be
// installed.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager, workers int) error {
	return ctrl.NewControllerManagedBy(mgr).
		Named("failoverdrill").
		WithOptions(controller.Options{MaxConcurrentReconciles: workers, RateLimiter: apply.RetryLimiter()}).
		For(&api.FailoverDrill{}).
		Owns(&batchv1.Job{}).
		Watches(&corev1.Pod{}, handler.EnqueueRequestsFromMapFunc(workload.OfPod(api.LabelDrill))).
		Watches(&api.OrderGrid{}, handler.EnqueueRequestsFromMapFunc(workload.OfGrid(r.Client, &api.FailoverDrillList{},
			func(d *api.FailoverDrill) (string, bool) { return d.Spec.GridRef.Name, over(d) }))).
		Complete(r)
}

// over: the drill has ended.
func over(d *api.FailoverDrill) bool {
	at := phaseOf(&d.Status)
	return at == phaseComplete || at == phaseFailed
}

// Reconcile observes the drill, decides what comes next, carries it out, and writes status.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	d := &api.FailoverDrill{}
	// Not from the cache: an old status would repeat a step.
	if err := r.Live.Get(ctx, req.NamespacedName, d); err != nil {
		if apierrors.IsNotFound(err) {
			forget(req.NamespacedName)
		}
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if over(d) && d.DeletionTimestamp == nil {
		r.dismiss(d)
		record(d)
		return ctrl.Result{}, nil
	}
	o, err := r.observe(ctx, d)
	if err != nil {
		return ctrl.Result{}, err
	}
	next := decide(o)
	before := d.DeepCopy()
	if next.do == doClaim {
		r.claim.Lock()
		defer r.claim.Unlock()
	}
	actErr := r.act(ctx, o, &next)
	var foreign *apply.ForeignError
	if errors.As(actErr, &foreign) {
		next.reason, next.message = reasonNameTaken, foreign.Error()
	}
	if next.do == doRelease && actErr == nil {
		r.dismiss(d)
		forget(req.NamespacedName)
		return ctrl.Result{}, nil
	}
	if actErr != nil {
		next.step, next.ending = nil, nil // it is retried
		if next.phase == phaseComplete || next.phase == phaseFailed {
			next.phase, next.reason = phaseFinishing, reasonFinishing
		}
	}
	r.apply(o, &next)
	if err := r.writeStatus(ctx, before, d); err != nil {
		if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
			return ctrl.Result{RequeueAfter: conflictRetry}, nil
		}
		return ctrl.Result{}, errors.Join(actErr, err)
	}
	record(d)
	if actErr != nil {
		return ctrl.Result{}, actErr
	}
	return ctrl.Result{RequeueAfter: next.again}, nil
}

// dismiss drops the cached state of a drill that is over.
func (r *Reconciler) dismiss(d *api.FailoverDrill) {
	r.heard.forget(d.UID)
	r.plans.forget(d.UID)
	r.links.forget(d.UID)
}

func (r *Reconciler) applier() *apply.Applier {
	return &apply.Applier{Client: r.Client, Live: r.Live, OnWrite: countWrite}
}

// writeStatus writes status if it has changed, and sends events.
func (r *Reconciler) writeStatus(ctx context.Context, before, d *api.FailoverDrill) error {
	if equality.Semantic.DeepEqual(before.Status, d.Status) {
		return nil
	}
	after := d.DeepCopy() // the response to the patch has the stored spec, without the suite's part
	if err := apply.Status(ctx, r.Client, before, d); err != nil {
		return err
	}
	countSteps(before, after)
	messages.Send(r.Recorder, d, eventsOf(before, after))
	return nil
}
