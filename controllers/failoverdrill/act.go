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
	"github.com/ordergrid/ordergrid/controllers/runs"
	recorder "github.com/ordergrid/ordergrid/probe/drill/api"
)

// maxSteps is how many steps status has.
const maxSteps = 256

// act does what the decision says. It may change the decision, when what it found out does.
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
		return r.tell(ctx, o, d)
	case doRecover:
		return r.recover(ctx, o)
	case doRecoverAll:
		return r.recoverAll(ctx, o)
	case doFinish:
		return r.finish(ctx, o)
	case doCollect:
		return r.collect(ctx, o, d)
	case doStop:
		return runs.Stop(ctx, r.Client, o.job)
	}
	return nil
}

// guard puts the finalizer on.
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

// release lets a deleted drill go.
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

// claimGrid looks for other drills once more; the lock is held until status is written.
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

// launch creates what the recorder needs, its Job last.
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

// prepare finds out whom the step hits and what is to be seen of them before; status has it all before the fault is
// asked for.
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
	if role(p) == api.RoleNode || breaksMachine(p.Fault.Type) {
		s.Nodes = target.Nodes
	}
	f := faultOf(o, s)
	f.Pods, f.Peers = target.Pods, target.Peers
	before, err := r.Witness.Baseline(ctx, f)
	if err != nil {
		if inject.IsPermanent(err) {
			d.step = &stepChange{state: api.StepDone, outcome: api.StepFailed, message: "nothing could show that the fault has hit: " + err.Error()}
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

// unresolved says what becomes of a step whose targets could not be told, or that is not to be injected: it ends, or waits.
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
		return &stepChange{state: api.StepDone, outcome: api.StepMissed, message: "safety has nothing against this fault, and expect.injection is Refused; it is not injected"}, ""
	}
	return nil, ""
}

// limited to what status holds. Injectors look up the pods of the whole grid themselves.
func limited(list []api.DrillTargetPod) []api.DrillTargetPod { return list[:min(len(list), 64)] }

// inject tells the recorder, then asks for the fault. Both may be repeated.
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

// injectedAtOnce tells the recorder of a fault that is there already. That is not left to the next look: the fault may be
// one without an API server to look at.
func (r *Reconciler) injectedAtOnce(ctx context.Context, o *observation, in inject.Injector, f *inject.Fault) error {
	state, err := in.State(ctx, f)
	if err != nil || state.Phase != inject.Injected {
		return nil //nolint:nilerr // the next look asks again
	}
	o.step.fault = state
	d := &decision{do: doInjected, step: to(api.StepWitnessing)}
	if err := r.tell(ctx, o, d); err != nil {
		return err
	}
	enter(o, current(o.drill), d.step)
	return nil
}

// podsOf are the targets that are there.
func podsOf(now *plan.Situation, targets []api.DrillTargetPod) (list []corev1.Pod) {
	for i := range now.Pods {
		if slices.ContainsFunc(targets, func(t api.DrillTargetPod) bool { return t.Name == now.Pods[i].Name }) {
			list = append(list, now.Pods[i])
		}
	}
	return list
}

// what a step does, for people.
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

// tell reports an event of the step to the recorder, with what the witness has seen so far.
func (r *Reconciler) tell(ctx context.Context, o *observation, d *decision) error {
	s := current(o.drill)
	event := map[action]recorder.Event{doInjected: recorder.Injected, doRecovered: recorder.Recovered, doAbandon: recorder.Abandoned}[d.do]
	if d.do == doAbandon && s.Attempts == 0 {
		return nil // the recorder was never told of it
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
	if err != nil || d.do != doInjected || !overAtOnce(s.Type) {
		return err
	}
	// What is measured from the end of a kill begins now, and not when Chaos Mesh's object is gone. The witness comes with
	// the second word.
	_, err = c.Tell(ctx, int(s.Index), recorder.Recovered, note(s, "over at once"))
	return err
}

// overAtOnce: there is nothing to take back, but what asked for it.
func overAtOnce(t api.DrillFaultType) bool {
	return t == api.FaultPodKill || t == api.FaultContainerKill || t == api.FaultPodDelete
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

// recover asks to take the step's fault back.
func (r *Reconciler) recover(ctx context.Context, o *observation) error {
	s := current(o.drill)
	in, err := r.injector(s.Provider)
	if err != nil {
		o.step.faultErr = err
		return nil // the condition Recovered says so
	}
	ctx, cancel := context.WithTimeout(ctx, 2*askLimit)
	defer cancel()
	if err := in.Recover(ctx, faultOf(o, s)); err != nil {
		o.step.faultErr = err
	}
	return nil
}

// recoverAll asks everybody concerned to take back everything of the drill. What did not work stands in the condition
// Recovered, and is tried again.
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
