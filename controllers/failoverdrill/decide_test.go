package failoverdrill

import (
	"errors"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/ordergrid/ordergrid/api/v1alpha1"
	"github.com/ordergrid/ordergrid/controllers/failoverdrill/inject"
	"github.com/ordergrid/ordergrid/controllers/failoverdrill/plan"
	recorder "github.com/ordergrid/ordergrid/probe/drill/api"
)

var now = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// under is a drill of three steps whose first is in a state since a minute: kill, then fail, then meanwhile, held by fail.
func under(state api.DrillStepState, changes ...func(*observation)) *observation {
	d := &api.FailoverDrill{}
	d.Namespace, d.Name, d.UID, d.Finalizers = "trading", "nightly", "u", []string{api.FinalizerFaults}
	d.Spec.GridRef.Name, d.Spec.State = "rtd", api.DrillRun
	d.Spec.SteadyState.Calm.Duration, d.Spec.SteadyState.Settle.Duration, d.Spec.SteadyState.RedundantWithin.Duration = 5*time.Second, 3*time.Second, 2*time.Minute
	d.Status.Seed, d.Status.PlannedSteps = 1, 3
	d.Status.Conditions = []metav1.Condition{{Type: api.ConditionRunning, Status: metav1.ConditionTrue, Reason: reasonStep, LastTransitionTime: metav1.NewTime(now.Add(-time.Hour))}}
	started := metav1.NewTime(now.Add(-time.Hour))
	d.Status.StartTime = &started
	d.Status.Recorder = &api.DrillRecorder{Job: "nightly-recorder", Pod: "nightly-recorder-x", PodUID: "p"}
	pod := &corev1.Pod{Status: corev1.PodStatus{Phase: corev1.PodRunning, PodIP: "10.0.0.1"}}
	pod.UID = "p"
	o := &observation{
		drill: d, now: now, grid: &api.OrderGrid{}, job: &batchv1.Job{}, pod: pod,
		plan: []plan.Step{
			{Index: 0, Repetition: 1, Fault: api.DrillFault{Name: "kill", Type: api.FaultPodKill}, Start: api.StartRedundant},
			{Index: 1, Repetition: 1, Fault: api.DrillFault{Name: "fail", Type: api.FaultPodFailure}, Duration: 30 * time.Second, Start: api.StartRedundant},
			{Index: 2, Repetition: 1, Fault: api.DrillFault{Name: "meanwhile", Type: api.FaultPodKill}, Start: api.StartHeld},
		},
		recorder: &recorder.State{Phase: recorder.Running, Redundant: true, Calm: time.Hour, Partitions: []string{"p0"}},
	}
	if state != "" {
		o.add("kill", api.FaultPodKill, state, time.Minute)
	}
	for _, c := range changes {
		c(o)
	}
	return o
}

// add begins a step that has been in its state for some time.
func (o *observation) add(fault string, kind api.DrillFaultType, state api.DrillStepState, since time.Duration) *api.DrillStep {
	at := metav1.NewMicroTime(now.Add(-since))
	s := api.DrillStep{Index: int32(len(o.drill.Status.Steps)), Fault: fault, Type: kind, State: state, StateTime: &at, Provider: "ChaosMesh"}
	switch state {
	case api.StepWitnessing, api.StepHolding, api.StepRecovering, api.StepSettling, api.StepDone:
		s.InjectedTime = &at
	}
	o.drill.Status.Steps = append(o.drill.Status.Steps, s)
	return &o.drill.Status.Steps[len(o.drill.Status.Steps)-1]
}

func fault(p inject.Phase) func(*observation) {
	return func(o *observation) { o.step.fault = inject.State{Phase: p, Message: "refused"} }
}

func since1s(o *observation) {
	at := metav1.NewMicroTime(now.Add(-time.Second))
	current(o.drill).StateTime = &at
	if current(o.drill).InjectedTime != nil {
		current(o.drill).InjectedTime = &at
	}
}

// second begins the second step, which lasts 30 s, in a state for some time.
func second(state api.DrillStepState, since time.Duration) func(*observation) {
	return func(o *observation) {
		o.drill.Status.Steps[0].State, o.drill.Status.Steps[0].Outcome = api.StepDone, api.StepPassed
		o.add("fail", api.FaultPodFailure, state, since)
	}
}

func TestDecideStep(t *testing.T) {
	notRedundant := func(o *observation) {
		o.recorder.Redundant, o.recorder.Calm, o.recorder.Missing = false, 0, "p0 has 1 copy"
	}
	silent := func(o *observation) { o.recorder, o.silent = nil, 5*time.Second }
	seen := func(o *observation) { o.step.look.Seen, o.step.look.Message = true, "uid is another" }
	broken := func(o *observation) { o.step.faultErr = errors.New("connection refused") }
	allow := func(o *observation) { o.drill.Spec.Safety.WhenNotRedundant = api.NotRedundantAllow }
	long := func(o *observation) { o.now = now.Add(time.Hour) }
	record := func(change func(*recorder.Record)) func(*observation) {
		return func(o *observation) {
			r := &recorder.Record{Injected: now, Recovered: now, Served: now, Redundant: now, Over: true}
			change(r)
			o.step.record = r
		}
	}
	asIs := func(*recorder.Record) {}
	for _, test := range []struct {
		name string
		o    *observation
		do   action
		// state the step enters; empty: it stays. outcome and reason of the end of the drill, if it ends.
		state   api.DrillStepState
		outcome api.DrillStepOutcome
		ends    string
		text    string
	}{
		{"no step yet", under(""), doBegin, "", "", "", "step 1 of 3: kill is next"},
		{"waiting, redundant", under(api.StepWaiting), doNothing, api.StepCalm, "", "", ""},
		{"waiting, recorder silent", under(api.StepWaiting, silent), doNothing, "", "", "", "waits for the recorder"},
		{"waiting, not redundant", under(api.StepWaiting, notRedundant), doNothing, "", "", "", "all its copies"},
		{"waiting, not redundant for too long", under(api.StepWaiting, notRedundant, long), doNothing, api.StepDone, api.StepFailed, reasonNotRedundant, "p0 has 1 copy"},
		{"waiting, not redundant, allowed", under(api.StepWaiting, notRedundant, long, allow), doNothing, api.StepCalm, "", "", ""},
		{"calm", under(api.StepCalm), doPrepare, api.StepInjecting, "", "", ""},
		{"not calm yet", under(api.StepCalm, func(o *observation) { o.recorder.Calm = 4 * time.Second }), doNothing, "", "", "", "calm time"},
		{"never calm", under(api.StepCalm, func(o *observation) { o.recorder.Calm = 4 * time.Second }, long), doNothing, api.StepDone, api.StepFailed, reasonNotCalm, "Is the machine overloaded"},
		{"calm lost its copies", under(api.StepCalm, notRedundant), doNothing, "", "", "", "calm time"},
		{"calm without copies, allowed", under(api.StepCalm, notRedundant, allow), doPrepare, api.StepInjecting, "", "", ""},
		{"injecting, not asked for", under(api.StepInjecting, fault(inject.Gone), since1s), doInject, "", "", "", ""},
		{"injecting, not asked for, recorder silent", under(api.StepInjecting, fault(inject.Gone), since1s, silent), doNothing, "", "", "", "waits for the recorder"},
		{"injecting, never asked for, stale", under(api.StepInjecting, fault(inject.Gone)), doNothing, api.StepWaiting, "", "", "is restarted"},
		{"injecting, never asked for, for the third time", under(api.StepInjecting, fault(inject.Gone), func(o *observation) { current(o.drill).Attempts = 3 }), doNothing, api.StepRecovering, api.StepFailed, "", ""},
		{"injecting, over already, and seen", under(api.StepInjecting, ended("the API server did not answer")), doInjected, api.StepWitnessing, "", "", ""},
		{"injecting, over already, and not seen", under(api.StepInjecting, ended("")), doNothing, api.StepRecovering, api.StepFailed, "", ""},
		{"witnessing, over already, and not seen", under(api.StepWitnessing, second(api.StepWitnessing, time.Second), ended("")), doNothing, api.StepHolding, api.StepFailed, "", ""},
		{"holding, over a little early by this clock", under(api.StepHolding, second(api.StepHolding, 29*time.Second), held(api.StepDone), ended("")), doNothing, api.StepRecovering, "", "", ""},
		{"injecting, pending", under(api.StepInjecting, fault(inject.Pending)), doNothing, "", "", "", ""},
		{"injecting, pending for too long", under(api.StepInjecting, fault(inject.Pending), long), doNothing, api.StepRecovering, api.StepFailed, "", "could not be injected"},
		{"injecting, there", under(api.StepInjecting, fault(inject.Injected)), doInjected, api.StepWitnessing, "", "", ""},
		{"injecting, failed", under(api.StepInjecting, fault(inject.Failed)), doNothing, api.StepRecovering, api.StepFailed, "", ""},
		{"injecting, being recovered", under(api.StepInjecting, fault(inject.Recovering)), doNothing, api.StepRecovering, api.StepFailed, "", ""},
		{"injecting, provider silent", under(api.StepInjecting, broken), doNothing, "", "", "", ""},
		{"injecting, provider silent for too long", under(api.StepInjecting, broken, long), doNothing, api.StepRecovering, api.StepFailed, "", ""},
		{"witnessing, seen", under(api.StepWitnessing, seen), doNothing, api.StepHolding, "", "", ""},
		{"witnessing, not yet", under(api.StepWitnessing, since1s), doNothing, "", "", "", ""},
		{"witnessing, not in time", under(api.StepWitnessing), doNothing, api.StepHolding, api.StepFailed, "", ""},
		{"witnessing, recovered by others", under(api.StepWitnessing, second(api.StepWitnessing, time.Second), fault(inject.Gone)), doNothing, api.StepHolding, api.StepFailed, "", ""},
		{"holding what is over in a moment", under(api.StepHolding), doNothing, api.StepRecovering, "", "", ""},
		{"holding, a held one is next", under(api.StepHolding, second(api.StepHolding, time.Second), fault(inject.Injected)), doBegin, "", "", "", "meanwhile is next"},
		{"holding, recovered by others", under(api.StepHolding, second(api.StepHolding, time.Second), held(api.StepDone), fault(inject.Gone)), doNothing, api.StepRecovering, api.StepFailed, "", ""},
		{"holding, not long enough", under(api.StepHolding, second(api.StepHolding, time.Second), held(api.StepDone), fault(inject.Injected)), doNothing, "", "", "", "is in place"},
		{"holding, long enough", under(api.StepHolding, second(api.StepHolding, time.Minute), held(api.StepDone), fault(inject.Injected)), doNothing, api.StepRecovering, "", "", ""},
		{"holding, a held one could not be injected", under(api.StepHolding, second(api.StepHolding, time.Minute), func(o *observation) {
			s := o.add("meanwhile", api.FaultPodKill, api.StepDone, 0)
			s.InjectedTime, s.Outcome = nil, api.StepFailed
		}, fault(inject.Injected)), doNothing, api.StepRecovering, "", "", ""},
		{"holding, operator was away", under(api.StepHolding, second(api.StepHolding, time.Hour), held(api.StepDone), fault(inject.Gone)), doNothing, api.StepRecovering, "", "", ""},
		{"holding, the warning is not there", under(api.StepHolding, since1s, wants(api.GridNotRedundant)), doNothing, "", "", "", ""},
		{"holding, the warning does not come", under(api.StepHolding, wants(api.GridNotRedundant)), doNothing, api.StepRecovering, api.StepMissed, "", ""},
		{"holding, the warning is there", under(api.StepHolding, wants(api.GridNotRedundant), func(o *observation) {
			o.grid.Status.Conditions = []metav1.Condition{{Type: api.ConditionRedundant, Status: metav1.ConditionFalse}}
		}), doNothing, api.StepRecovering, "", "", ""},
		{"holding, orders are refused", under(api.StepHolding, wants(api.GridRefusesOrders), record(func(r *recorder.Record) { r.WorstGap = 3 * time.Second })), doNothing, api.StepRecovering, "", "", ""},
		{"holding, orders are acknowledged", under(api.StepHolding, wants(api.GridRefusesOrders), record(asIs)), doNothing, api.StepRecovering, api.StepMissed, "", ""},
		{"recovering", under(api.StepRecovering, fault(inject.Injected)), doRecover, "", "", "", "is being recovered"},
		{"recovering, provider silent", under(api.StepRecovering, fault(inject.Gone), broken), doRecover, "", "", "", "is being recovered"},
		{"recovering, a day later", under(api.StepRecovering, fault(inject.Recovering), func(o *observation) { o.now = now.Add(24 * time.Hour) }), doRecover, "", "", "", ""},
		{"recovered", under(api.StepRecovering, fault(inject.Gone)), doRecovered, api.StepSettling, "", "", ""},
		{"recovered what was never there", under(api.StepRecovering, fault(inject.Gone), func(o *observation) { current(o.drill).InjectedTime = nil }), doAbandon, api.StepDone, "", "", ""},
		{"settling", under(api.StepSettling), doNothing, "", "", "", "waits for service"},
		{"settling, not redundant", under(api.StepSettling, record(func(r *recorder.Record) { r.Over = false; r.Redundant = time.Time{} })), doNothing, "", "", "", ""},
		{"settling, not calm yet", under(api.StepSettling, record(asIs), func(o *observation) { o.recorder.Calm = time.Second }), doNothing, "", "", "", ""},
		{"settling, full", under(api.StepSettling, record(asIs), func(o *observation) { o.recorder.Calm, o.recorder.Refusal = 0, "no memory left" }), doNothing, "", "", "", "refuses orders: no memory left"},
		{"settled", under(api.StepSettling, record(asIs)), doNothing, api.StepDone, api.StepPassed, "", ""},
		{"settled too slowly", under(api.StepSettling, expects(100*time.Millisecond), record(func(r *recorder.Record) { r.WorstGap = time.Second })), doNothing, api.StepDone, api.StepMissed, "", ""},
		{"settled, served is enough", under(api.StepSettling, func(o *observation) { o.plan[1].Start = api.StartServed }, record(func(r *recorder.Record) { r.Over = false })), doNothing, api.StepDone, api.StepPassed, "", ""},
		{"settling a held one", under(api.StepSettling, second(api.StepHolding, time.Second), held(api.StepSettling)), doNothing, api.StepDone, api.StepPassed, "", ""},
		{"never settles", under(api.StepSettling, long), doNothing, api.StepDone, api.StepFailed, reasonServiceNotBack, "does not report what is missing"},
		{"never redundant again", under(api.StepSettling, long, record(func(r *recorder.Record) { r.Over = false; r.Redundant = time.Time{}; r.Missing = "p0 has 1 copy" })), doNothing, api.StepDone, api.StepFailed, reasonServiceNotBack, "p0 has 1 copy"},
		{"after a step that could not be injected", under("", func(o *observation) {
			s := o.add("kill", api.FaultPodKill, api.StepDone, 0)
			s.InjectedTime, s.Outcome, s.Message = nil, api.StepFailed, "no"
		}), doNothing, "", "", reasonInjectionFailed, "step 0 (kill): no"},
		{"after a step that was not seen", under("", func(o *observation) { o.add("kill", api.FaultPodKill, api.StepDone, 0).Outcome = api.StepFailed }), doBegin, "", "", "", "fail is next"},
		{"after a refused step", under("", refused), doNothing, "", "", reasonRefused, "last copy"},
		{"after a step that had to be refused", under("", refused, func(o *observation) {
			o.plan[0].Fault.Expect = &api.DrillExpectation{Injection: api.InjectionRefused}
		}), doBegin, "", "", "", "fail is next"},
		{"after the last step", under("", second3), doNothing, "", "", reasonStepsDone, "all 3 steps are done"},
		{"another plan than the one that began", under(api.StepHolding, func(o *observation) { o.plan[0].Fault.Name = "else" }), doNothing, api.StepDone, api.StepFailed, reasonPlanInvalid, "plans differently"},
	} {
		t.Run(test.name, func(t *testing.T) {
			d := decide(test.o)
			if d.do != test.do || !strings.Contains(d.message, test.text) {
				t.Errorf("does %d, message %q; want %d, %q", d.do, d.message, test.do, test.text)
			}
			var got stepChange
			if d.step != nil {
				got = *d.step
			}
			if got.state != test.state || got.outcome != test.outcome {
				t.Errorf("step goes to %q, outcome %q; want %q, %q", got.state, got.outcome, test.state, test.outcome)
			}
			reason := ""
			if d.ending != nil {
				reason = d.ending.Reason
			}
			if reason != test.ends {
				t.Errorf("ends with %q, want %q", reason, test.ends)
			}
			if d.again <= 0 || d.again > pollLongest {
				t.Errorf("reconciles again after %s", d.again)
			}
		})
	}
}

// ended is a fault that its provider has recovered because its time was over.
func ended(seen string) func(*observation) {
	return func(o *observation) { o.step.fault = inject.State{Phase: inject.Gone, Ended: true, Seen: seen} }
}

func held(state api.DrillStepState) func(*observation) {
	return func(o *observation) { o.add("meanwhile", api.FaultPodKill, state, 0).Outcome = "" }
}

func wants(g api.GridExpectation) func(*observation) {
	return func(o *observation) { o.plan[0].Fault.Expect = &api.DrillExpectation{Grid: g} }
}

func expects(outage time.Duration) func(*observation) {
	return func(o *observation) {
		o.plan[0].Fault.Expect = &api.DrillExpectation{Outage: &metav1.Duration{Duration: outage}}
	}
}

func refused(o *observation) {
	s := o.add("kill", api.FaultPodKill, api.StepDone, 0)
	s.InjectedTime, s.Outcome, s.Message = nil, api.StepRefused, "the last copy"
}

func second3(o *observation) {
	for _, p := range o.plan {
		o.add(p.Fault.Name, p.Fault.Type, api.StepDone, 0).Outcome = api.StepPassed
	}
}

// TestNothingGoesOnWithout: in every state of a step, a fatal condition ends the drill.
func TestNothingGoesOnWithout(t *testing.T) {
	states := []api.DrillStepState{"", api.StepWaiting, api.StepCalm, api.StepInjecting, api.StepWitnessing, api.StepHolding, api.StepRecovering, api.StepSettling}
	for name, test := range map[string]struct {
		change func(*observation)
		reason string
	}{
		"aborted":          {func(o *observation) { o.drill.Spec.State = api.DrillAbort }, reasonAborted},
		"the grid is gone": {func(o *observation) { o.grid = nil }, reasonGridGone},
		"orders are lost": {func(o *observation) {
			o.grid.Status.Conditions = []metav1.Condition{{Type: api.ConditionDataLossSuspected, Status: metav1.ConditionTrue}}
		}, reasonDataLoss},
		"the Job is gone": {func(o *observation) { o.job = nil }, reasonRecorderLost},
		"the Job failed": {func(o *observation) {
			o.job.Status.Conditions = []batchv1.JobCondition{{Type: batchv1.JobFailed, Status: corev1.ConditionTrue}}
		}, reasonRecorderFailed},
		"the pod is gone":    {func(o *observation) { o.pod = nil }, reasonRecorderLost},
		"another pod":        {func(o *observation) { o.pod.UID = "q" }, reasonRecorderLost},
		"the pod ended":      {func(o *observation) { o.pod.Status.Phase = corev1.PodFailed }, reasonRecorderFailed},
		"the recorder fails": {func(o *observation) { o.recorder.Phase = recorder.Failed }, reasonRecorderFailed},
		"the ledger is full": {func(o *observation) { o.recorder.Full = true }, reasonRecorderFailed},
		"silence":            {func(o *observation) { o.recorder, o.silent = nil, 2*silenceLimit }, reasonRecorderLost},
		"no plan any more":   {func(o *observation) { o.planErr = errors.New("no") }, reasonPlanInvalid},
	} {
		for _, state := range states {
			d := decide(under(state, test.change))
			if d.ending == nil || d.ending.Reason != test.reason || d.phase != phaseRecovering || d.do != doNothing {
				t.Errorf("%s in state %q: %+v", name, state, d)
			}
			if state != "" && (d.step == nil || d.step.state != api.StepDone) {
				t.Errorf("%s in state %q: the step is %+v", name, state, d.step)
			}
		}
	}
}

func TestDecideEnding(t *testing.T) {
	at := metav1.NewMicroTime(now.Add(-10 * time.Second))
	ending := func(outcome api.DrillOutcome, phase recorder.Phase, change func(*observation)) *observation {
		return under("", second3, func(o *observation) {
			o.drill.Status.Ending = &api.DrillEnding{Outcome: outcome, Reason: "Why", Message: "because", Time: &at}
			o.left = leftovers{asked: true}
			o.recorder.Phase = phase
			if change != nil {
				change(o)
			}
		})
	}
	left := func(o *observation) { o.left.names = []string{"PodChaos nightly-1"} }
	for _, test := range []struct {
		name   string
		o      *observation
		do     action
		phase  phase
		reason string
	}{
		{"something is left", ending(api.OutcomeComplete, recorder.Running, left), doRecoverAll, phaseRecovering, reasonRecovering},
		{"something is left of an aborted one, and the recorder is dead", ending(api.OutcomeAborted, recorder.Running, func(o *observation) { left(o); o.pod = nil }), doRecoverAll, phaseRecovering, reasonRecovering},
		{"it is unknown what is left", ending(api.OutcomeComplete, recorder.Running, func(o *observation) { o.left.unknown = "no answer" }), doRecoverAll, phaseRecovering, reasonRecovering},
		{"no provider was asked", ending(api.OutcomeComplete, recorder.Running, func(o *observation) { o.left.asked = false }), doRecoverAll, phaseRecovering, reasonRecovering},
		{"nothing is left", ending(api.OutcomeComplete, recorder.Running, nil), doFinish, phaseFinishing, reasonFinishing},
		{"the recorder judges", ending(api.OutcomeComplete, recorder.Finishing, nil), doNothing, phaseFinishing, reasonFinishing},
		{"the recorder never finishes judging", ending(api.OutcomeComplete, recorder.Finishing, func(o *observation) { o.now = now.Add(time.Hour) }), doStop, phaseFailed, reasonNotJudged},
		{"judged", ending(api.OutcomeComplete, recorder.Done, nil), doCollect, phaseComplete, "Why"},
		{"judged until the abort", ending(api.OutcomeAborted, recorder.Done, nil), doCollect, phaseFailed, "Why"},
		{"not judged", ending(api.OutcomeComplete, recorder.Failed, nil), doStop, phaseFailed, reasonNotJudged},
		{"failed, and not judged", ending(api.OutcomeFailed, recorder.Failed, nil), doStop, phaseFailed, "Why"},
		{"failed, and the recorder is dead", ending(api.OutcomeFailed, recorder.Running, func(o *observation) { o.pod = nil }), doStop, phaseFailed, "Why"},
		{"ended before it began", ending(api.OutcomeAborted, recorder.Running, func(o *observation) { o.drill.Status.StartTime = nil }), doStop, phaseFailed, "Why"},
		{"the recorder does not answer", ending(api.OutcomeComplete, recorder.Running, func(o *observation) { o.recorder, o.silent = nil, time.Second }), doNothing, phaseFinishing, reasonFinishing},
		{"the recorder never answers", ending(api.OutcomeFailed, recorder.Running, func(o *observation) { o.recorder, o.silent = nil, time.Hour }), doStop, phaseFailed, "Why"},
	} {
		t.Run(test.name, func(t *testing.T) {
			if d := decide(test.o); d.do != test.do || d.phase != test.phase || d.reason != test.reason {
				t.Errorf("%+v; want action %d, phase %d, reason %s", d, test.do, test.phase, test.reason)
			}
		})
	}
}

// TestDecideDeleted: in every phase, deletion recovers everything and does nothing else.
func TestDecideDeleted(t *testing.T) {
	for _, state := range []api.DrillStepState{"", api.StepCalm, api.StepInjecting, api.StepHolding, api.StepSettling} {
		for _, reason := range []string{reasonChecking, reasonStarting, reasonStep, reasonRecovering, reasonFinishing} {
			o := under(state, func(o *observation) {
				o.drill.Status.Conditions[0].Reason = reason
				o.drill.DeletionTimestamp = new(metav1.NewTime(now.Add(-time.Hour)))
				o.left = leftovers{asked: true, names: []string{"PodChaos nightly-0"}}
			})
			if d := decide(o); d.do != doRecoverAll || d.again != pollLongest {
				t.Errorf("%s, %s: %+v", state, reason, d)
			}
			o.left.names = nil
			if d := decide(o); d.do != doRelease {
				t.Errorf("%s, %s: %+v", state, reason, d)
			}
			o.left.unknown = "the executor does not answer"
			if d := decide(o); d.do != doRecoverAll {
				t.Errorf("%s, %s: %+v", state, reason, d)
			}
			o.drill.Finalizers = nil
			if d := decide(o); d.do != doNothing {
				t.Errorf("%s, %s: %+v", state, reason, d)
			}
		}
	}
}
