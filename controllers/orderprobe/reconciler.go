// Package orderprobe reconciles OrderProbes: it runs one pod per probe as a Job, lets them begin together, and copies
// their measurements into status.
package orderprobe

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"

	api "github.com/ordergrid/ordergrid/api/v1alpha1"
	"github.com/ordergrid/ordergrid/controllers/apply"
	"github.com/ordergrid/ordergrid/controllers/certificates"
	"github.com/ordergrid/ordergrid/controllers/messages"
	"github.com/ordergrid/ordergrid/controllers/objects"
	"github.com/ordergrid/ordergrid/controllers/workload"
	"github.com/ordergrid/ordergrid/probe/published"
)

const (
	// startDelay is how long after the last pod became ready all begin: time for each to see the start time.
	startDelay = 3 * time.Second
	// conflictRetry is the delay after the cache was behind.
	conflictRetry = time.Second
	// recordingRetry is the interval to look for a missing recording.
	recordingRetry = 5 * time.Second
)

// Defaults of OrderProbes, set by the operator's flags.
type Defaults struct {
	// Image of the probe.
	Image string
	// ImagePullPolicy of the probe; empty leaves it to Kubernetes.
	ImagePullPolicy corev1.PullPolicy
}

// Reconciler carries out OrderProbes.
type Reconciler struct {
	// Client reads from the cache and writes to the API server.
	Client client.Client
	// Live reads from the API server.
	Live client.Reader
	// Recorder of events.
	Recorder events.EventRecorder
	// Clock for start, end and conditions.
	Clock clock.PassiveClock
	// Published figures and scenarios; nil uses the embedded ones.
	Published *published.Data
	// Defaults of omitted fields.
	Defaults Defaults
}

// SetupWithManager registers the controller and its watches.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager, workers int) error {
	return setup(mgr, workers, r)
}

func setup(mgr ctrl.Manager, workers int, r *Reconciler) error {
	return ctrl.NewControllerManagedBy(mgr).
		Named("orderprobe").
		WithOptions(controller.Options{MaxConcurrentReconciles: workers, RateLimiter: apply.RetryLimiter()}).
		For(&api.OrderProbe{}).
		Owns(&api.OrderProbe{}).
		Owns(&batchv1.Job{}).
		Owns(&corev1.ConfigMap{}).
		Owns(&corev1.ServiceAccount{}).
		Owns(&rbacv1.Role{}).
		Owns(&rbacv1.RoleBinding{}).
		Watches(&corev1.Pod{}, handler.EnqueueRequestsFromMapFunc(workload.OfPod(api.LabelProbe))).
		Watches(&api.OrderGrid{}, handler.EnqueueRequestsFromMapFunc(workload.OfGrid(r.Client, &api.OrderProbeList{},
			func(p *api.OrderProbe) (string, bool) { return p.Spec.GridRef.Name, done(p) }))).
		Complete(r)
}

// Reconcile observes the run, decides its phase, acts on it, and writes status.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	probe := &api.OrderProbe{}
	if err := r.Client.Get(ctx, req.NamespacedName, probe); err != nil {
		if apierrors.IsNotFound(err) {
			forget(req.NamespacedName)
		}
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if probe.DeletionTimestamp != nil {
		forget(req.NamespacedName)
		return ctrl.Result{}, nil
	}
	if probe.Spec.Schedule != nil {
		return r.series(ctx, probe)
	}
	o, err := r.observe(ctx, probe)
	if err != nil {
		return ctrl.Result{}, err
	}
	d := decide(o)
	if d.phase == phaseFinished {
		record(probe)
		return ctrl.Result{}, nil
	}
	before := probe.DeepCopy()
	actErr := r.act(ctx, o, &d)
	var foreign *apply.ForeignError
	if errors.As(actErr, &foreign) {
		d = decision{phaseWaiting, reasonNameTaken, foreign.Error()}
	}
	setConditions(&probe.Status, d, probe.Generation, metav1.NewTime(r.Clock.Now()))
	if err := r.writeStatus(ctx, before, probe); err != nil {
		if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
			return ctrl.Result{RequeueAfter: conflictRetry}, nil
		}
		return ctrl.Result{}, errors.Join(actErr, err)
	}
	record(probe)
	if d.reason == reasonNoRecording {
		return ctrl.Result{RequeueAfter: recordingRetry}, actErr // foreign ConfigMaps are not watched
	}
	return ctrl.Result{}, actErr
}

// act carries out the phase. It may change the decision, when its action ended the run.
func (r *Reconciler) act(ctx context.Context, o *observation, d *decision) error {
	switch d.phase {
	case phaseStarting:
		return r.launch(ctx, o)
	case phaseReady:
		return r.start(ctx, o)
	case phaseMeasuring:
		// Set by start, unless that was interrupted after it had released the pods.
		if at, err := time.Parse(time.RFC3339Nano, o.startAt()); err == nil && o.probe.Status.StartTime == nil {
			started := metav1.NewTime(at.Truncate(time.Second))
			o.probe.Status.StartTime = &started
		}
	case phaseMeasured:
		return r.collect(ctx, o, d)
	case phaseImpossible, phaseBroken:
		now := metav1.NewTime(r.Clock.Now())
		o.probe.Status.CompletionTime = &now
		return workload.Stop(ctx, r.Client, o.job)
	}
	return nil
}

// launch creates the objects of a run, the Job last.
func (r *Reconciler) launch(ctx context.Context, o *observation) error {
	applier := r.applier()
	list := []client.Object{serviceAccount(o.probe), role(o.probe, o.plan.Processes()), roleBinding(o.probe)}
	for index := range o.plan.Processes() {
		list = append(list, channel(o.probe, index))
	}
	if o.startAt() == "" {
		list = append(list, barrier(o.probe, time.Time{}))
	}
	// A Job is immutable: an operator that was upgraded meanwhile leaves it unchanged.
	if o.job == nil {
		messages.LogAuthor(ctx, r.Live, o.probe, apply.FieldOwner)
		run := job(o.probe, o.plan, r.Defaults)
		objects.AttachNetwork(&run.Spec.Template, o.grid)
		certificates.Attach(&run.Spec.Template, o.grid)
		list = append(list, run)
	}
	for _, object := range list {
		if _, err := applier.Apply(ctx, o.probe, object); err != nil {
			return err
		}
	}
	return nil
}

// start lets all pods begin at the same moment.
func (r *Reconciler) start(ctx context.Context, o *observation) error {
	at := r.Clock.Now().Add(startDelay)
	if _, err := r.applier().Apply(ctx, o.probe, barrier(o.probe, at)); err != nil {
		return err
	}
	started := metav1.NewTime(at.Truncate(time.Second))
	o.probe.Status.StartTime = &started
	return nil
}

// collect merges the results and ends the run.
func (r *Reconciler) collect(ctx context.Context, o *observation, d *decision) error {
	data, err := r.published()
	if err != nil {
		return err
	}
	now := metav1.NewTime(r.Clock.Now())
	content, into, err := assemble(data, o)
	if err != nil { // a retry would not help
		*d = decision{phaseBroken, reasonResultInvalid, err.Error()}
		o.probe.Status.CompletionTime = &now
		return nil
	}
	if _, err := r.applier().Apply(ctx, o.probe, reportMap(o.probe, content)); err != nil {
		return err
	}
	into(&o.probe.Status)
	o.probe.Status.ReportConfigMap = reportName(o.probe)
	o.probe.Status.CompletionTime = &now
	d.reason, d.message = reasonCompleted, fmt.Sprintf("%s: %s", o.probe.Status.Verdict, o.probe.Status.VerdictReason)
	return nil
}

func (r *Reconciler) applier() *apply.Applier {
	return &apply.Applier{Client: r.Client, Live: r.Live, OnWrite: countWrite}
}

func (r *Reconciler) published() (*published.Data, error) {
	if r.Published != nil {
		return r.Published, nil
	}
	return published.Load()
}

// observe reads the state of the run.
func (r *Reconciler) observe(ctx context.Context, probe *api.OrderProbe) (*observation, error) {
	o := &observation{probe: probe}
	data, err := r.published()
	if err != nil {
		return nil, err
	}
	if !probe.Spec.Scenario.OwnGrids() {
		if o.grid, err = workload.Find(ctx, r.Client, probe.Namespace, probe.Spec.GridRef.Name, &api.OrderGrid{}); err != nil {
			return nil, err
		}
	}
	o.plan, o.planErr = planOf(data, probe, o.grid)
	if o.job, err = workload.Find(ctx, r.Client, probe.Namespace, probe.Name, &batchv1.Job{}); err != nil {
		return nil, err
	}
	if o.job != nil && !metav1.IsControlledBy(o.job, probe) {
		o.job = nil
	}
	if o.barrier, err = r.ownConfigMap(ctx, probe, runName(probe)); err != nil {
		return nil, err
	}
	if o.job == nil && !done(probe) {
		if o.noRecording, err = r.recordingMissing(ctx, probe); err != nil {
			return nil, err
		}
	}
	o.channels = make([]*corev1.ConfigMap, o.plan.Processes())
	for index := range o.channels {
		if o.channels[index], err = r.ownConfigMap(ctx, probe, channelName(probe, index)); err != nil {
			return nil, err
		}
	}
	var pods corev1.PodList
	if err := r.Client.List(ctx, &pods, client.InNamespace(probe.Namespace), client.MatchingLabels{api.LabelProbe: probe.Name}); err != nil {
		return nil, err
	}
	o.pods = pods.Items
	slices.SortFunc(o.pods, func(a, b corev1.Pod) int { return cmp.Compare(a.Name, b.Name) })
	return o, nil
}

// ownConfigMap reads a ConfigMap of this probe. One left behind by a deleted probe of the same name does not count: it
// may hold another run's result.
func (r *Reconciler) ownConfigMap(ctx context.Context, probe *api.OrderProbe, name string) (*corev1.ConfigMap, error) {
	m, err := workload.Find(ctx, r.Client, probe.Namespace, name, &corev1.ConfigMap{})
	if m != nil && !metav1.IsControlledBy(m, probe) {
		m = nil
	}
	return m, err
}

// writeStatus writes status if it has changed, and sends events.
func (r *Reconciler) writeStatus(ctx context.Context, before, probe *api.OrderProbe) error {
	if equality.Semantic.DeepEqual(before.Status, probe.Status) {
		return nil
	}
	if err := apply.Status(ctx, r.Client, before, probe); err != nil {
		return err
	}
	messages.Send(r.Recorder, probe, conditionEvents(before.Status.Conditions, probe.Status.Conditions))
	return nil
}
