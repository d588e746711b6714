package failoverdrill

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	api "github.com/ordergrid/ordergrid/api/v1alpha1"
	"github.com/ordergrid/ordergrid/controllers/failoverdrill/inject"
	"github.com/ordergrid/ordergrid/controllers/failoverdrill/plan"
	"github.com/ordergrid/ordergrid/controllers/workload"
	recorder "github.com/ordergrid/ordergrid/probe/drill/api"
)

// askLimit bounds one call to a recorder, an injector or a witness, so that a hanging one delays nothing else.
const askLimit = 5 * time.Second

// guarded reports whether the finalizer is set.
func guarded(d *api.FailoverDrill) bool {
	return controllerutil.ContainsFinalizer(d, api.FinalizerFaults)
}

// observe reads what the phase needs. It replaces spec by the one completed by the suite.
func (r *Reconciler) observe(ctx context.Context, d *api.FailoverDrill) (*observation, error) {
	o := &observation{drill: d, now: r.Clock.Now()}
	var err error
	if o.grid, err = workload.Find(ctx, r.Client, d.Namespace, d.Spec.GridRef.Name, &api.OrderGrid{}); err != nil {
		return nil, err
	}
	r.addPlan(o)
	at := phaseOf(&d.Status)
	if d.Status.Ending != nil || d.DeletionTimestamp != nil || at >= phaseStarting {
		return o, r.observeRun(ctx, o, at)
	}
	if o.grid == nil || d.Spec.State == api.DrillAbort || d.Status.Seed == 0 {
		return o, nil
	}
	if o.other, err = r.otherDrill(ctx, d); err != nil || o.other != "" || o.planErr != nil {
		return o, err
	}
	var pods corev1.PodList
	if err := r.Client.List(ctx, &pods, inGrid(d)...); err != nil {
		return nil, err
	}
	o.check = check(ctx, o, pods.Items, &r.Defaults, r.Injectors, r.Memories)
	return o, nil
}

// addPlan completes the spec and plans. Without a grid only the step under way is recovered.
func (r *Reconciler) addPlan(o *observation) {
	d := o.drill
	key := planKey{seed: d.Status.Seed, skipped: len(d.Status.Skipped)}
	if o.grid != nil {
		key.shape = plan.ShapeOf(o.grid)
	}
	k, there := r.plans.get(d.UID, key)
	if !there {
		k = known{from: key}
		if k.spec, o.planErr = plan.ResolveSuite(&d.Spec); o.planErr != nil {
			return
		}
		if o.grid != nil {
			if k.steps, o.planErr = plan.Steps(k.spec, plan.ShapeOf(o.grid), d.Status.Seed); o.planErr != nil {
				return
			}
			k.steps = plan.Without(k.steps, d.Status.Skipped)
		}
		r.plans.put(d.UID, k)
	}
	state := d.Spec.State
	d.Spec, o.plan = *k.spec.DeepCopy(), k.steps
	d.Spec.State = state // the one field that changes
}

// observeRun reads the objects of a drill that has begun.
func (r *Reconciler) observeRun(ctx context.Context, o *observation, at phase) error {
	d := o.drill
	var err error
	if o.job, err = workload.Find(ctx, r.Client, d.Namespace, recorderName(d), &batchv1.Job{}); err != nil {
		return err
	}
	if o.job == nil { // a cache may not have what was just created
		if o.job, err = workload.Find(ctx, r.Live, d.Namespace, recorderName(d), &batchv1.Job{}); err != nil {
			return err
		}
	}
	if o.job != nil && !metav1.IsControlledBy(o.job, d) {
		o.job = nil
	}
	if o.pod, err = r.recorderPod(ctx, o); err != nil {
		return err
	}
	if d.DeletionTimestamp == nil {
		r.askRecorder(ctx, o)
	}
	if d.Status.Ending != nil || d.DeletionTimestamp != nil {
		o.left = r.leftovers(ctx, o)
		return nil
	}
	if at == phaseBaseline || at == phaseStep {
		r.look(ctx, o)
	}
	return nil
}

// recorderPod is the pod of the recorder's Job, the one in status if it is there.
func (r *Reconciler) recorderPod(ctx context.Context, o *observation) (*corev1.Pod, error) {
	if o.job == nil {
		return nil, nil
	}
	var pods corev1.PodList
	if err := r.Client.List(ctx, &pods, client.InNamespace(o.drill.Namespace), client.MatchingLabels{batchv1.ControllerUidLabel: string(o.job.UID)}); err != nil {
		return nil, err
	}
	known := recorderOf(o.drill).PodUID
	for i := range pods.Items {
		if p := &pods.Items[i]; known == "" || string(p.UID) == known {
			return p, nil
		}
	}
	return nil, nil
}

// askRecorder reads the status of the recorder, if it can answer.
func (r *Reconciler) askRecorder(ctx context.Context, o *observation) {
	c, err := r.recorder(ctx, o)
	if err == nil {
		ask, cancel := context.WithTimeout(ctx, askLimit)
		defer cancel()
		var s *recorder.State
		if s, err = c.State(ask); err == nil {
			o.recorder = s
			r.heard.now(o.drill.UID, o.now)
			return
		}
	}
	o.silent = r.heard.silent(o.drill.UID, o.now)
}

// recorder is a client of the drill's recorder.
func (r *Reconciler) recorder(ctx context.Context, o *observation) (*recorder.Client, error) {
	if o.pod == nil || podEnded(o.pod) || o.pod.Status.PodIP == "" {
		return nil, fmt.Errorf("the recorder of FailoverDrill %s has no running pod", client.ObjectKeyFromObject(o.drill))
	}
	key, err := r.Keys.Key(ctx)
	if err != nil {
		return nil, err
	}
	return r.links.get(o.drill, r.recorderURL(o.pod), key)
}

func (r *Reconciler) recorderURL(pod *corev1.Pod) string {
	if r.RecorderURL != nil {
		return r.RecorderURL(pod)
	}
	return "https://" + net.JoinHostPort(pod.Status.PodIP, strconv.Itoa(recorder.Port))
}

// look observes the fault of the step under way, as far as its state needs it.
func (r *Reconciler) look(ctx context.Context, o *observation) {
	s := current(o.drill)
	if s == nil || int(s.Index) >= len(o.plan) {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, 2*askLimit)
	defer cancel()
	f := faultOf(o, s)
	switch s.State {
	case api.StepInjecting, api.StepWitnessing, api.StepHolding, api.StepRecovering:
		in, err := r.injector(s.Provider)
		if err == nil {
			o.step.fault, err = in.State(ctx, f)
		}
		o.step.faultErr = err
	}
	switch s.State {
	case api.StepWitnessing:
		f.Reported = o.step.fault
		o.step.look, o.step.lookErr = r.Witness.Look(ctx, f, json.RawMessage(s.Baseline))
		o.step.record = r.recordOf(ctx, o, s)
	case api.StepHolding, api.StepSettling:
		o.step.record = r.recordOf(ctx, o, s)
	}
}

// recordOf is the recorder's record of a step; nil if it does not answer.
func (r *Reconciler) recordOf(ctx context.Context, o *observation, s *api.DrillStep) *recorder.Record {
	if o.recorder == nil {
		return nil
	}
	c, err := r.recorder(ctx, o)
	if err != nil {
		return nil
	}
	rec, err := c.Step(ctx, int(s.Index))
	if err != nil {
		return nil
	}
	return rec
}

func (r *Reconciler) injector(provider string) (inject.Injector, error) {
	for _, in := range r.Injectors {
		if string(in.Provider()) == provider {
			return in, nil
		}
	}
	return nil, fmt.Errorf("provider %s is not configured any more; start the operator with it again (chart value drills.executors)", provider)
}

// providerOf is the provider chosen for a type.
func providerOf(d *api.FailoverDrill, t api.DrillFaultType) string {
	for _, p := range d.Status.Providers {
		if p.Type == t {
			return p.Provider
		}
	}
	return ""
}

// concerned are the injectors that may hold something of the drill: those it chose, and those inside the cluster, which
// may have tested nodes. An executor that was never used need not answer for a drill to end.
func (r *Reconciler) concerned(d *api.FailoverDrill) (list []inject.Injector, missing []string) {
	used := map[string]bool{}
	for _, p := range d.Status.Providers {
		used[p.Provider] = true
		if _, err := r.injector(p.Provider); err != nil && !slices.Contains(missing, err.Error()) {
			missing = append(missing, err.Error())
		}
	}
	for _, in := range r.Injectors {
		if p := string(in.Provider()); used[p] || !strings.HasPrefix(p, string(inject.ProviderExecutor)) {
			list = append(list, in)
		}
	}
	return list, missing
}

// leftovers asks all injectors concerned what is left of the drill.
func (r *Reconciler) leftovers(ctx context.Context, o *observation) leftovers {
	l := leftovers{asked: true}
	if !guarded(o.drill) || over(o.drill) {
		return l // nothing was ever injected, or nothing is left since
	}
	list, unknown := r.concerned(o.drill)
	for _, in := range list {
		ask, cancel := context.WithTimeout(ctx, askLimit)
		found, err := in.Leftovers(ask, drillOf(o.drill))
		cancel()
		switch {
		case err == nil:
		case apierrors.IsForbidden(err) && o.drill.DeletionTimestamp != nil:
			// The permissions were deleted first, with the namespace. The drill owns its Kubernetes objects, and they
			// are deleted with it.
		default:
			unknown = append(unknown, fmt.Sprintf("%s: %v", in.Provider(), err))
		}
		l.names = append(l.names, found...)
	}
	l.unknown = strings.Join(unknown, "; ")
	return l
}

// otherDrill is the drill that has the grid of d now, or recovers its faults; empty if there is none.
func (r *Reconciler) otherDrill(ctx context.Context, d *api.FailoverDrill) (string, error) {
	var drills api.FailoverDrillList
	if err := r.Live.List(ctx, &drills, client.InNamespace(d.Namespace)); err != nil {
		return "", fmt.Errorf("list FailoverDrills: %w", err)
	}
	for i := range drills.Items {
		other := &drills.Items[i]
		if other.UID == d.UID || other.Spec.GridRef.Name != d.Spec.GridRef.Name {
			continue
		}
		if at := phaseOf(&other.Status); at >= phaseStarting && at < phaseComplete {
			return other.Name, nil
		}
	}
	return "", nil
}
