// Package ordergrid reconciles OrderGrids: it builds the objects of a grid and observes its state.
//
// It is never on the path of an order and never chooses a primary: grid nodes do that among themselves through their
// GridPartition objects, which this package creates and then only reads.
package ordergrid

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	ctrlevent "sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	api "github.com/ordergrid/ordergrid/api/v1alpha1"
	"github.com/ordergrid/ordergrid/controllers/allow"
	"github.com/ordergrid/ordergrid/controllers/apply"
	"github.com/ordergrid/ordergrid/controllers/messages"
	"github.com/ordergrid/ordergrid/controllers/objects"
)

// leavingRetry is the interval to check whether an object in the way has been deleted.
const leavingRetry = 2 * time.Second

// Defaults of OrderGrids, set by the operator's flags.
type Defaults struct {
	// Image of the grid node.
	Image string
	// SinkImage is that of the pods of sinks: grid-sink.
	SinkImage string
	// ImagePullPolicy of the grid node; empty leaves it to Kubernetes.
	ImagePullPolicy corev1.PullPolicy
	// OperatorNamespace is the namespace of the operator's pods, which query grid nodes.
	OperatorNamespace string
	// APIServerPorts are those at which pods reach the API server: that of its Service and that of the servers behind
	// it, because networks differ in which of them a NetworkPolicy sees. Without any, no egress to it is allowed.
	APIServerPorts []int32
	// PodTemplates is what spec.podTemplate may have beyond a restricted pod; see CheckPodFeature.
	PodTemplates allow.List
}

// Reconciler reconciles the objects of an OrderGrid with its spec, and its status with them.
type Reconciler struct {
	// Client reads from the cache and writes to the API server.
	Client client.Client
	// Live reads from the API server, for the decisions that are dangerous with old data.
	Live client.Reader
	// Recorder of events.
	Recorder events.EventRecorder
	// Clock for the times in conditions.
	Clock clock.PassiveClock
	// KubeNodes lists Kubernetes nodes; nil if the operator may not read them.
	KubeNodes client.Reader
	// Nodes queries grid nodes; see NewNodeClient.
	Nodes *http.Client
	// Defaults of omitted fields.
	Defaults Defaults

	memory  memory
	rooms   rooms
	indexed bool // the cache finds objects by their grid
}

// SetupWithManager registers the controller and its watches.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager, workers int) error {
	if err := r.index(mgr.GetFieldIndexer()); err != nil {
		return err
	}
	r.Recorder = audited{r.Recorder, &r.memory}
	if err := mgr.Add(manager.RunnableFunc(r.watchRooms)); err != nil {
		return err
	}
	r.rooms.wake = make(chan ctrlevent.GenericEvent, 1024)
	return setup(mgr, workers, hurried{apply.RetryLimiter(), &r.memory}, r, func(b *builder.Builder) {
		b.WatchesRawSource(source.Channel(r.rooms.wake, &handler.EnqueueRequestForObject{}))
		b.Watches(&api.InstrumentSet{}, handler.EnqueueRequestsFromMapFunc(r.gridsOfInstruments), builder.WithPredicates(predicate.GenerationChangedPredicate{}))
		b.Watches(&api.GridFunction{}, handler.EnqueueRequestsFromMapFunc(r.gridsOfFunction)) // their status, too
		b.Watches(&api.RiskProfile{}, handler.EnqueueRequestsFromMapFunc(r.gridsOfProfile), builder.WithPredicates(predicate.GenerationChangedPredicate{}))
		b.Watches(&api.GridRegion{}, handler.EnqueueRequestsFromMapFunc(r.gridsOfRegion), builder.WithPredicates(predicate.GenerationChangedPredicate{}))
		if r.KubeNodes != nil {
			b.Watches(&corev1.Node{}, handler.EnqueueRequestsFromMapFunc(r.gridsOfNode), builder.WithPredicates(nodeMatters))
		}
	})
}

func setup(mgr ctrl.Manager, workers int, limiter workqueue.TypedRateLimiter[reconcile.Request], r reconcile.Reconciler, more ...func(*builder.Builder)) error {
	b := ctrl.NewControllerManagedBy(mgr).
		Named("ordergrid").
		WithOptions(controller.Options{MaxConcurrentReconciles: workers, RateLimiter: limiter}).
		// Annotations request new certificates.
		For(&api.OrderGrid{}, builder.WithPredicates(predicate.Or(predicate.GenerationChangedPredicate{}, predicate.AnnotationChangedPredicate{}))).
		Owns(&api.GridPartition{}).
		Owns(&appsv1.StatefulSet{}).
		Owns(&appsv1.Deployment{}).
		Owns(&corev1.Service{}).
		Owns(&corev1.ServiceAccount{}).
		Owns(&rbacv1.Role{}).
		Owns(&rbacv1.RoleBinding{}).
		Owns(&policyv1.PodDisruptionBudget{}).
		Owns(&networkingv1.NetworkPolicy{}).
		Watches(&batchv1.Job{}, handler.EnqueueRequestsFromMapFunc(gridOfJob)).
		Watches(&corev1.Pod{}, handler.EnqueueRequestsFromMapFunc(gridOfPod)).
		Watches(&api.OrderGateway{}, handler.EnqueueRequestsFromMapFunc(gridOfGateway), builder.WithPredicates(predicate.GenerationChangedPredicate{}))
	for _, add := range more {
		add(b)
	}
	return b.Complete(r)
}

// gridOfPod maps a pod to its grid. Pods are owned by StatefulSets, so the label is used.
func gridOfPod(_ context.Context, pod client.Object) []reconcile.Request {
	grid := pod.GetLabels()[api.LabelGrid]
	if grid == "" || pod.GetLabels()[objects.LabelComponent] != objects.GridNode {
		return nil
	}
	return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: pod.GetNamespace(), Name: grid}}}
}

// gridOfJob maps the Job of a sink, which the sink's Deployment owns, or of a restore to its grid.
func gridOfJob(_ context.Context, job client.Object) []reconcile.Request {
	l := job.GetLabels()
	if l[api.LabelGrid] == "" || l[objects.LabelComponent] != objects.Sink && l[objects.LabelComponent] != objects.RestoreJob {
		return nil
	}
	return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: job.GetNamespace(), Name: l[api.LabelGrid]}}}
}

// Reconcile makes one pass: its steps, then status, regardless of failures.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	grid := &api.OrderGrid{}
	if err := r.Client.Get(ctx, req.NamespacedName, grid); err != nil {
		if apierrors.IsNotFound(err) {
			forget(req.NamespacedName)
			r.memory.forget(req.NamespacedName)
			r.rooms.forget(req.NamespacedName)
			return ctrl.Result{}, nil
		}
		return ctrl.Result{}, err
	}
	if grid.DeletionTimestamp != nil {
		// All objects of a grid have an owner reference; the garbage collector does the rest.
		return ctrl.Result{}, nil
	}

	o := &observation{grid: grid, readsNodes: r.KubeNodes != nil}
	if err := r.read(ctx, r.Client, o); err != nil {
		return ctrl.Result{}, err // nothing is known for status
	}
	if record := o.layoutBefore(); record != "" {
		return ctrl.Result{}, r.refuseLayout(ctx, grid, record)
	}
	o.scale = *planScale(grid, o.partitions)
	o.grid = o.scale.working(grid)
	run := &run{Reconciler: r, observation: o, remembered: r.memory.of(req.NamespacedName), applier: apply.Applier{Client: r.Client, Live: r.Live, OnWrite: countWrite}, succeeded: map[string]bool{}, broken: map[int32]bool{}}
	failed, held := run.pass(ctx, run.plan())
	o.notInquired = !run.succeeded[stepInquiry]
	// Status describes the state after the pass. If that cannot be read, the state before it.
	if err := r.read(ctx, r.Client, o); err != nil {
		failed = append(failed, &failure{"status", err})
	}
	var again retry
	o.stall, again = classify(failed, held)
	stepErr := errors.Join(failed...)
	run.lookWithin(o.judgeLate(&run.remembered.scale, r.Clock.Now()))
	run.remembered.again = run.again
	o.networkMissing = r.checkNetwork(ctx, o)
	r.followRoom(o)
	if err := r.writeStatus(ctx, o); err != nil {
		if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
			// The cache was behind, or the grid has just been deleted.
			return ctrl.Result{RequeueAfter: leavingRetry}, nil
		}
		return ctrl.Result{}, errors.Join(stepErr, err)
	}
	switch again {
	case retryBackoff:
		return ctrl.Result{}, stepErr
	case retrySoon:
		run.again = leavingRetry
	case retryNever:
	}
	return ctrl.Result{RequeueAfter: run.again}, nil
}

// described names changed conditions, for the log.
func described(changed []metav1.Condition) []string {
	list := []string{}
	for _, c := range changed {
		list = append(list, fmt.Sprintf("%s=%s %s", c.Type, c.Status, c.Reason))
	}
	return list
}

// reference is a GridPartition for an event about it.
func reference(namespace, partition string) *api.GridPartition {
	return &api.GridPartition{
		TypeMeta:   metav1.TypeMeta{APIVersion: api.GroupVersion.String(), Kind: "GridPartition"},
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: partition},
	}
}

// setReference is the StatefulSet of a shard for an event about it.
func setReference(grid *api.OrderGrid, shard int32) *appsv1.StatefulSet {
	return &appsv1.StatefulSet{
		TypeMeta:   metav1.TypeMeta{APIVersion: appsv1.SchemeGroupVersion.String(), Kind: "StatefulSet"},
		ObjectMeta: metav1.ObjectMeta{Namespace: grid.Namespace, Name: api.ShardName(grid.Name, shard)},
	}
}

// writeStatus rebuilds status from the observation and writes it if it changed.
func (r *Reconciler) writeStatus(ctx context.Context, o *observation) error {
	before := o.grid.DeepCopy()
	status := &o.grid.Status
	changed := setConditions(o, status, metav1.NewTime(r.Clock.Now()))
	status.ObservedGeneration = o.grid.Generation
	status.Shards = int32(len(o.statefulSets))
	status.ReadyShards = o.readyShards()
	o.rebalanceStatus(status, &r.memory.of(client.ObjectKeyFromObject(o.grid)).scale, r.Clock.Now())
	status.Leaving = o.leaving()
	status.Selector = metav1.FormatLabelSelector(&metav1.LabelSelector{MatchLabels: gridSelector(o.grid)})
	status.Pods = int32(len(o.pods))
	status.UpdatedPods = status.Pods - int32(len(o.outdatedPods()))
	status.Endpoint = endpoint(o.grid)
	switch {
	case o.grid.Spec.ExternalAccess == nil:
		status.ExternalAddresses = nil
	case o.external != nil:
		status.ExternalAddresses = o.external.addresses
	}
	status.TLS = o.tlsStatus(before.Status.TLS)
	o.sinkStatus(status)
	status.Site = o.siteStatus()
	status.Restore = o.restoreStatus(before.Status.Restore, r.Clock.Now())
	if o.roomAsked {
		status.Memory = o.room.status()
		status.Regions = o.regionUse()
	}
	status.Functions = o.functionStatus(before.Status.Functions)
	status.Partitions = o.summaries(before.Status.Partitions)
	o.tellFunctions(status.Partitions)
	remembered := r.memory.of(client.ObjectKeyFromObject(o.grid))
	decided := slices.Clone(remembered.trail)
	status.History = history(before.Status.History, append(decided, lineages(before.Status.Partitions, status.Partitions)...), metav1.NewTime(r.Clock.Now()))
	remembered.logWaits(ctx, o.waits())
	record(o, status.Conditions)
	if equality.Semantic.DeepEqual(before.Status, *status) {
		return nil
	}
	if err := apply.Status(ctx, r.Client, before, o.grid); err != nil {
		return err
	}
	writesTotal.WithLabelValues("OrderGrid", "status").Inc()
	remembered.trail = remembered.trail[len(decided):]
	wrote(ctx, "status", "OrderGrid", o.grid.Name, "conditions", described(changed))
	for _, e := range slices.Concat(conditionEvents(before.Status.Conditions, changed, o.planned()), partitionEvents(before.Status.Partitions, status.Partitions),
		moveEvents(o.grid.Name, before.Status.Moves, status.Moves, status.Partitions)) {
		var related runtime.Object
		if e.partition != "" {
			related = reference(o.grid.Namespace, e.partition)
		}
		r.Recorder.Eventf(o.grid, related, e.kind, e.reason, e.action, "%s", messages.Cut(e.note, messages.MaxNote))
	}
	return nil
}
