package failoverdrill

import (
	"context"
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	api "github.com/ordergrid/ordergrid/api/v1alpha1"
	"github.com/ordergrid/ordergrid/controllers/apply"
	"github.com/ordergrid/ordergrid/controllers/failoverdrill/inject"
	"github.com/ordergrid/ordergrid/controllers/failoverdrill/plan"
	"github.com/ordergrid/ordergrid/controllers/messages"
	"github.com/ordergrid/ordergrid/controllers/workload"
	recorder "github.com/ordergrid/ordergrid/probe/drill/api"
)

// maxSteps is how many steps status keeps.
const maxSteps = 256

// act carries out the decision. It may change the decision by what it finds out.
func (r *Reconciler) act(ctx context.Context, o *observation, d *decision) error {
	switch d.do {
	case doNothing:
		return nil
	case doDraw:
		o.drill.Status.Seed = plan.Seed()
		if own := o.drill.Spec.Seed; own != nil {
			o.drill.Status.Seed = *own
		}
		return nil
	case doGuard:
		return r.guard(ctx, o)
	case doRelease:
		return r.release(ctx, o)
	case doClaim:
		return r.claimGrid(ctx, o, d)
	case doLaunch:
		return r.launch(ctx, o)
	case doBegin:
		begin(o)
		return nil
	case doPrepare:
		return r.prepare(ctx, o, d)
	case doInject:
		return r.inject(ctx, o)
	case doInjected, doRecovered, doAbandon:
		return r.report(ctx, o, d)
	case doRecover:
		return r.recover(ctx, o)
	case doRecoverAll:
		return r.recoverAll(ctx, o)
	case doFinish:
		return r.finish(ctx, o)
	case doCollect:
		return r.collect(ctx, o, d)
	case doStop:
		return workload.Stop(ctx, r.Client, o.job)
	}
	return nil
}

// guard adds the finalizer.
func (r *Reconciler) guard(ctx context.Context, o *observation) error {
	before := o.drill.DeepCopy()
	after := o.drill.DeepCopy()
	controllerutil.AddFinalizer(after, api.FinalizerFaults)
	patch := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
	if err := r.Client.Patch(ctx, after, patch, client.FieldOwner(apply.FieldOwner)); err != nil {
		return fmt.Errorf("add the finalizer: %w", err)
	}
	o.drill.ResourceVersion, o.drill.Finalizers = after.ResourceVersion, after.Finalizers
	messages.LogAuthor(ctx, r.Live, o.drill, apply.FieldOwner)
	return nil
}

// release removes the finalizer of a deleted drill.
func (r *Reconciler) release(ctx context.Context, o *observation) error {
	after := o.drill.DeepCopy()
	controllerutil.RemoveFinalizer(after, api.FinalizerFaults)
	patch := client.MergeFromWithOptions(o.drill, client.MergeFromWithOptimisticLock{})
	err := r.Client.Patch(ctx, after, patch, client.FieldOwner(apply.FieldOwner))
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("remove the finalizer: %w", err)
	}
	return nil
}

// claimGrid checks for other drills once more; the lock is held until status is written.
func (r *Reconciler) claimGrid(ctx context.Context, o *observation, d *decision) error {
	other, err := r.otherDrill(ctx, o.drill)
	if err != nil {
		return err
	}
	if other != "" {
		o.other = other
		*d = waitsFor(o)
		return nil
	}
	o.drill.Status.Providers, o.drill.Status.Skipped = o.check.providers, o.check.skipped
	o.drill.Status.PlannedSteps = int32(len(o.plan))
	return nil
}

// launch creates the recorder's objects, its Job last.
func (r *Reconciler) launch(ctx context.Context, o *observation) error {
	key, err := r.Keys.Key(ctx)
	if err != nil {
		return err
	}
	s, err := secret(o.drill, key)
	if err != nil {
		return err
	}
	if err := r.Client.Create(ctx, s); err == nil {
		countWrite("Secret", apply.Created)
	} else if !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("create Secret %s: %w", client.ObjectKeyFromObject(s), err)
	}
	taken, err := r.machines(ctx, o)
	if err != nil {
		return err
	}
	_, err = r.applier().Apply(ctx, o.drill, recorderJob(o.drill, o.grid, o.plan, taken, r.Defaults))
	return err
}

// machines are the Kubernetes nodes that pods of the grid are on.
func (r *Reconciler) machines(ctx context.Context, o *observation) (taken []string, err error) {
	var pods corev1.PodList
	if err := r.Client.List(ctx, &pods, inGrid(o.drill)...); err != nil {
		return nil, err
	}
	for i := range pods.Items {
		if node := pods.Items[i].Spec.NodeName; node != "" && !slices.Contains(taken, node) {
			taken = append(taken, node)
		}
	}
	slices.Sort(taken)
	return taken, nil
}

// begin adds the next step to status.
func begin(o *observation) {
	s := &o.drill.Status
	p := &o.plan[next(o.drill)]
	now := metav1.NewMicroTime(o.now)
	if s.StartTime == nil {
		started := metav1.NewTime(o.now.Truncate(1e9))
		s.StartTime = &started
	}
	if o.pod != nil && recorderOf(o.drill).PodUID == "" {
		s.Recorder = &api.DrillRecorder{Job: recorderName(o.drill), Pod: o.pod.Name, PodUID: string(o.pod.UID), Address: fmt.Sprintf("%s:%d", o.pod.Status.PodIP, recorder.Port)}
	}
	s.Steps = append(s.Steps, api.DrillStep{
		Index: int32(p.Index), Repetition: int32(p.Repetition), Fault: p.Fault.Name, Type: p.Fault.Type,
		Partition: p.PartitionName(o.drill.Spec.GridRef.Name), Provider: providerOf(o.drill, p.Fault.Type),
		State: api.StepWaiting, StateTime: &now, Witness: &api.DrillWitness{State: api.WitnessPending},
	})
	if n := len(s.Steps); n > maxSteps {
		s.Steps = s.Steps[n-maxSteps:]
	}
}

// prepare resolves the targets of the step and takes the baseline; status has both before the fault is requested.
func (r *Reconciler) prepare(ctx context.Context, o *observation, d *decision) error {
	s := current(o.drill)
	p := &o.plan[s.Index]
	now, err := r.situation(ctx, o)
	if err != nil {
		return err
	}
	target, problem := plan.Resolve(p, now)
	if c, wait := unresolved(problem, p); wait != "" && age(o, s.StateTime) > calmLimit+p.After {
		d.step = &stepChange{state: api.StepDone, outcome: api.StepFailed, message: fmt.Sprintf("for %s: %s", calmLimit, wait)}
		return nil
	} else if wait != "" {
		d.do, d.step, d.again = doNothing, nil, pollStep
		d.message = fmt.Sprintf("step %d of %d: %s waits: %s", p.Index+1, len(o.plan), p.Fault.Name, wait)
		return nil
	} else if c != nil {
		d.step = c
		return nil
	}
	s.Partition = target.Partition
	s.Targets, s.Peers, s.Nodes = limited(targetsOf(target.Pods)), limited(targetsOf(target.Peers)), nil
	if role(p) == api.RoleNode || p.Fault.Type.OfMachine() {
		s.Nodes = target.Nodes
	}
	f := faultOf(o, s)
	f.Pods, f.Peers = target.Pods, target.Peers
	before, err := r.Witness.Baseline(ctx, f)
	if err != nil {
		if inject.IsPermanent(err) {
			d.step = &stepChange{state: api.StepDone, outcome: api.StepFailed, message: "no witness could show that the fault has hit: " + err.Error()}
			return nil
		}
		return fmt.Errorf("look at %s before the fault: %w", names(s.Targets), err)
	}
	s.Baseline, s.Attempts = string(before), s.Attempts+1
	if o.recorder != nil && o.recorder.P99 > 0 {
		s.P99Before = &metav1.Duration{Duration: o.recorder.P99}
	}
	return nil
}

// unresolved handles a step whose targets could not be resolved, or that must not be injected: it ends, or waits.
func unresolved(problem error, p *plan.Step) (c *stepChange, wait string) {
	notYet := (*plan.NotYetError)(nil)
	switch {
	case errors.As(problem, &notYet):
		return nil, problem.Error()
	case plan.IsRefused(problem):
		return &stepChange{state: api.StepDone, outcome: api.StepRefused, message: "refused: " + problem.Error()}, ""
	case problem != nil:
		return &stepChange{state: api.StepDone, outcome: api.StepFailed, message: problem.Error()}, ""
	case refusalExpected(p):
		return &stepChange{state: api.StepDone, outcome: api.StepMissed, message: "safety allows this fault, and expect.injection is Refused; it is not injected"}, ""
	}
	return nil, ""
}

// limited to the size of status. Injectors look up the pods of the whole grid themselves.
func limited(list []api.DrillTargetPod) []api.DrillTargetPod { return list[:min(len(list), 64)] }

// inject notifies the recorder, then requests the fault. Both may be repeated.
func (r *Reconciler) inject(ctx context.Context, o *observation) error {
	s := current(o.drill)
	p := &o.plan[s.Index]
	c, err := r.recorder(ctx, o)
	if err != nil {
		return err
	}
	now, err := r.situation(ctx, o)
	if err != nil {
		return err
	}
	step := recorder.Step{
		Repetition: p.Repetition, Fault: p.Fault.Name, Type: string(p.Fault.Type), Provider: s.Provider,
		What: what(s, p), Expect: expectOf(o, p),
	}
	if !p.Fault.Type.GridWide() {
		for _, t := range s.Targets {
			step.Pods = append(step.Pods, t.Name)
		}
		step.Partitions = served(now, now.PartitionsOf(podsOf(now, s.Targets)))
	}
	if _, err := c.Begin(ctx, p.Index, step); err != nil {
		return err
	}
	in, err := r.injector(s.Provider)
	if err != nil {
		return err
	}
	f := faultOf(o, s)
	if err := in.Inject(ctx, f); err != nil {
		if inject.IsPermanent(err) {
			change(s, failed("the fault could not be injected: "+err.Error()), o.now)
			return nil
		}
		return fmt.Errorf("step %d (%s): %s: %w", s.Index, s.Fault, s.Provider, err)
	}
	return r.injectedAtOnce(ctx, o, in, f)
}

// injectedAtOnce notifies the recorder of a fault that is in place already. It does not wait for the next reconcile:
// the fault may be one without an API server.
func (r *Reconciler) injectedAtOnce(ctx context.Context, o *observation, in inject.Injector, f *inject.Fault) error {
	state, err := in.State(ctx, f)
	if err != nil || state.Phase != inject.Injected {
		return nil //nolint:nilerr // the next reconcile asks again
	}
	o.step.fault = state
	d := &decision{do: doInjected, step: to(api.StepWitnessing)}
	if err := r.report(ctx, o, d); err != nil {
		return err
	}
	enter(o, current(o.drill), d.step)
	return nil
}

// podsOf returns the targets that exist.
func podsOf(now *plan.Situation, targets []api.DrillTargetPod) (list []corev1.Pod) {
	for i := range now.Pods {
		if slices.ContainsFunc(targets, func(t api.DrillTargetPod) bool { return t.Name == now.Pods[i].Name }) {
			list = append(list, now.Pods[i])
		}
	}
	return list
}

// what a step does, for messages.
func what(s *api.DrillStep, p *plan.Step) string {
	if p.Fault.Type.GridWide() || len(s.Targets) == 0 {
		return string(s.Type) + " of the whole grid"
	}
	text := fmt.Sprintf("%s %s (%s of %s)", s.Type, names(s.Targets), role(p), s.Partition)
	if len(s.Peers) > 0 {
		text += ", other end " + names(s.Peers)
	}
	return text
}

// report reports an event of the step to the recorder, with what the witness has seen so far.
func (r *Reconciler) report(ctx context.Context, o *observation, d *decision) error {
	s := current(o.drill)
	event := map[action]recorder.Event{doInjected: recorder.Injected, doRecovered: recorder.Recovered, doAbandon: recorder.Abandoned}[d.do]
	if d.do == doAbandon && s.Attempts == 0 {
		return nil // the recorder was never notified of it
	}
	c, err := r.recorder(ctx, o)
	if err != nil {
		return err
	}
	rec, err := c.Tell(ctx, int(s.Index), event, note(s, o.step.fault.Message))
	if d.do == doAbandon && recorder.IsNotFound(err) {
		return nil
	}
	o.step.record = rec
	if err != nil || d.do != doInjected || !inject.TypeOf(s.Type).AtOnce {
		return err
	}
	// The measurement from the end of a kill begins now, not when Chaos Mesh's object is gone. The witness follows with
	// the second notification.
	_, err = c.Tell(ctx, int(s.Index), recorder.Recovered, note(s, "over at once"))
	return err
}

// note of a step, for the recorder.
func note(s *api.DrillStep, message string) recorder.Note {
	n := recorder.Note{Message: message}
	if s.Message != "" {
		n.Message = s.Message
	}
	if w := s.Witness; w != nil {
		n.Witness = recorder.Witness{State: recorder.WitnessState(w.State), Message: w.Message}
	}
	return n
}

// recover requests the recovery of the step's fault.
func (r *Reconciler) recover(ctx context.Context, o *observation) error {
	s := current(o.drill)
	in, err := r.injector(s.Provider)
	if err != nil {
		o.step.faultErr = err
		return nil // condition Recovered reports it
	}
	ctx, cancel := context.WithTimeout(ctx, 2*askLimit)
	defer cancel()
	if err := in.Recover(ctx, faultOf(o, s)); err != nil {
		o.step.faultErr = err
	}
	return nil
}

// recoverAll requests the recovery of everything of the drill from all injectors concerned. Failures are in the
// condition Recovered, and are retried.
func (r *Reconciler) recoverAll(ctx context.Context, o *observation) error {
	list, _ := r.concerned(o.drill)
	for _, in := range list {
		ask, cancel := context.WithTimeout(ctx, 2*askLimit)
		err := in.RecoverAll(ask, drillOf(o.drill))
		cancel()
		if err != nil && o.left.unknown == "" {
			o.left.unknown = fmt.Sprintf("%s: %v", in.Provider(), err)
		}
	}
	return nil
}
