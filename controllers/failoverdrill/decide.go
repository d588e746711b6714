package failoverdrill

import (
	"fmt"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"

	api "github.com/ordergrid/ordergrid/api/v1alpha1"
	"github.com/ordergrid/ordergrid/controllers/failoverdrill/inject"
	"github.com/ordergrid/ordergrid/controllers/failoverdrill/plan"
	"github.com/ordergrid/ordergrid/controllers/failoverdrill/witness"
	"github.com/ordergrid/ordergrid/controllers/messages"
	"github.com/ordergrid/ordergrid/controllers/workload"
	recorder "github.com/ordergrid/ordergrid/probe/drill/api"
)

// observation is the input of decide.
type observation struct {
	drill *api.FailoverDrill
	now   time.Time
	grid  *api.OrderGrid // nil: there is none
	// other is the drill that has the grid now; empty if there is none.
	other string
	// plan of the drill; planErr is why there is none.
	plan    []plan.Step
	planErr error
	check   preflight
	job     *batchv1.Job // nil: not created, or cleaned up
	pod     *corev1.Pod  // of the recorder; nil: there is none
	// recorder is its present status; while that is nil, silent is how long it has not answered.
	recorder *recorder.State
	silent   time.Duration
	step     sight
	left     leftovers
}

// sight is what is observed of the step under way.
type sight struct {
	fault    inject.State
	faultErr error // the provider did not answer
	look     witness.Result
	lookErr  error
	record   *recorder.Record // nil: the recorder does not know the step, or does not answer
}

// leftovers is what the providers still hold of the drill.
type leftovers struct {
	asked bool
	names []string
	// unknown is the provider that could not be asked, and why.
	unknown string
}

func (l leftovers) none() bool { return l.asked && len(l.names) == 0 && l.unknown == "" }

// action is what act does before status is written.
type action int

const (
	doNothing    action = iota
	doDraw              // draw the seed
	doGuard             // add the finalizer
	doRelease           // remove the finalizer
	doClaim             // take the grid, unless another drill was faster
	doLaunch            // create the recorder's objects, its Job last
	doBegin             // begin the next step
	doPrepare           // resolve the step's targets and take the baseline
	doInject            // notify the recorder, request the fault
	doInjected          // notify the recorder that it is in place
	doRecover           // request its recovery
	doRecovered         // notify the recorder that it is gone
	doAbandon           // notify the recorder that the step failed
	doRecoverAll        // recover everything of the drill
	doFinish            // have the recorder judge
	doCollect           // fetch the certificate
	doStop              // the drill is over: end a recorder without a result
)

// decision is the next action and the resulting status.
type decision struct {
	do    action
	phase phase
	// reason and message of the condition of the phase.
	reason, message string
	// step is the change of the step under way; nil leaves it.
	step *stepChange
	// ending is set when the end of the drill has just been decided.
	ending *api.DrillEnding
	// again is when to reconcile again; 0 leaves it to watches.
	again time.Duration
}

// stepChange is the change of the step under way. Empty fields leave their values.
type stepChange struct {
	state   api.DrillStepState
	outcome api.DrillStepOutcome
	message string
	witness api.WitnessState
	seen    string // what the witness saw
}

// decide returns what comes next. It is the only place that does, reads nothing but o, and changes nothing: a restarted
// operator comes to the same decision from status and the cluster.
func decide(o *observation) decision {
	d, s := o.drill, &o.drill.Status
	at := phaseOf(s)
	switch {
	case d.DeletionTimestamp != nil:
		return decideDeleted(o)
	case at == phaseComplete || at == phaseFailed:
		return decision{do: doNothing, phase: at}
	case s.Ending != nil:
		return decideEnding(o)
	case d.Spec.State == api.DrillAbort:
		return end(o, api.OutcomeAborted, reasonAborted, "spec.state is Abort")
	case s.Seed == 0:
		return decision{do: doDraw, phase: phasePending, reason: reasonChecking, message: "not observed yet", again: pollFast}
	}
	switch at {
	case phaseStarting, phaseBaseline, phaseStep:
		if reason, message := broken(o, at); reason != "" {
			return end(o, api.OutcomeFailed, reason, message)
		}
		if at == phaseStarting {
			return decideStarting(o)
		}
		return decideStep(o)
	}
	return decideBeforeStart(o)
}

// decideBeforeStart decides whether the drill may begin. It reports all obstacles at once and checks again until there
// are none, so that no fault is begun that cannot be completed.
func decideBeforeStart(o *observation) decision {
	switch {
	case o.grid == nil:
		return decision{phase: phasePending, reason: reasonGridNotFound, again: pollPreflight, message: fmt.Sprintf(
			"there is no OrderGrid %s in namespace %s; create it, or delete this FailoverDrill", o.drill.Spec.GridRef.Name, o.drill.Namespace)}
	case o.other != "":
		return waitsFor(o)
	case o.planErr != nil:
		return decision{phase: phasePreflight, reason: reasonPlanInvalid, again: pollPreflight, message: o.planErr.Error()}
	case len(o.check.problems) > 0:
		return decision{phase: phasePreflight, reason: o.check.reason(), message: o.check.message(), again: pollPreflight}
	case o.check.asking != "":
		return decision{phase: phasePreflight, reason: reasonChecking, message: o.check.asking, again: pollTrial}
	}
	if !guarded(o.drill) { // before anything needs recovery, and only where drills are allowed
		return decision{do: doGuard, phase: phasePreflight, reason: reasonChecking, message: "everything is there", again: pollFast}
	}
	return decision{do: doClaim, phase: phaseStarting, reason: reasonStarting, message: "starting the recorder", again: pollFast}
}

func waitsFor(o *observation) decision {
	return decision{phase: phasePending, reason: reasonOtherDrill, again: pollPreflight, message: fmt.Sprintf(
		"FailoverDrill %s is under way on OrderGrid %s; this one begins when that has ended", o.other, o.drill.Spec.GridRef.Name)}
}

// decideStarting: the recorder's Job, its pod, its traffic.
func decideStarting(o *observation) decision {
	starting := decision{phase: phaseStarting, reason: reasonStarting, again: pollStep}
	waited := o.now.Sub(claimedAt(&o.drill.Status, o.now))
	switch {
	case o.job == nil:
		starting.do, starting.message = doLaunch, "starting the recorder"
		return starting
	case o.recorder != nil && o.recorder.Phase == recorder.Running:
		return decision{do: doBegin, phase: phaseBaseline, reason: reasonBaseline, again: pollStep,
			message: fmt.Sprintf("orders flow to %d partitions; waiting for a calm time to compare with", len(o.recorder.Partitions))}
	case waited > startLimit:
		return end(o, api.OutcomeFailed, reasonRecorderFailed, fmt.Sprintf("the recorder is not running after %s%s%s", startLimit, messages.PodTrouble(o.pod), messages.JobFailure(o.job)))
	}
	starting.message = "waiting for the recorder" + messages.PodTrouble(o.pod)
	return starting
}

// broken returns why the drill cannot go on. The faults are recovered regardless.
func broken(o *observation, at phase) (reason, message string) {
	run := recorderOf(o.drill)
	switch {
	case o.grid == nil:
		return reasonGridGone, fmt.Sprintf("OrderGrid %s was deleted during the drill", o.drill.Spec.GridRef.Name)
	case meta.IsStatusConditionTrue(o.grid.Status.Conditions, api.ConditionDataLossSuspected):
		c := meta.FindStatusCondition(o.grid.Status.Conditions, api.ConditionDataLossSuspected)
		return reasonDataLoss, fmt.Sprintf("OrderGrid %s waits for a decision about suspected data loss: %s", o.grid.Name, c.Message)
	case o.planErr != nil:
		return reasonPlanInvalid, o.planErr.Error()
	case o.job == nil && at != phaseStarting:
		return reasonRecorderLost, fmt.Sprintf("Job %s was deleted during the drill: the ledger of the orders is lost", recorderName(o.drill))
	case workload.Failed(o.job):
		return reasonRecorderFailed, "the recorder failed: the ledger of the orders is lost" + messages.PodFailure(o.pod) + messages.JobFailure(o.job)
	case run.PodUID != "" && (o.pod == nil || string(o.pod.UID) != run.PodUID):
		return reasonRecorderLost, fmt.Sprintf("the recorder's pod %s is gone: the ledger of the orders is lost", run.Pod)
	case o.pod != nil && podEnded(o.pod):
		return reasonRecorderFailed, "the recorder ended: the ledger of the orders is lost" + messages.PodFailure(o.pod)
	case o.recorder != nil && o.recorder.Phase == recorder.Failed:
		return reasonRecorderFailed, "the recorder gave up: " + o.recorder.Error
	case o.recorder != nil && o.recorder.Full:
		return reasonRecorderFailed, fmt.Sprintf("the recorder has no room for more than %d orders; lower spec.traffic.ratePerProbe or spec.repetitions, or raise the memory in spec.traffic.resources", o.recorder.MaxOrders)
	case o.recorder == nil && at != phaseStarting && o.silent > silenceLimit:
		return reasonRecorderLost, fmt.Sprintf("the recorder's pod %s has not answered for %s", run.Pod, silenceLimit)
	}
	return "", ""
}

// end begins the end: faults are recovered, then the recorder judges.
func end(o *observation, outcome api.DrillOutcome, reason, message string) decision {
	d := decision{phase: phaseRecovering, reason: reasonRecovering, message: message, again: pollFast,
		ending: &api.DrillEnding{Outcome: outcome, Reason: reason, Message: brief(message)}}
	if current(o.drill) != nil {
		d.step = &stepChange{state: api.StepDone, outcome: api.StepFailed, message: "the drill ended during this step: " + message}
		if outcome == api.OutcomeAborted {
			d.step = &stepChange{state: api.StepDone, outcome: api.StepAborted, message: "the drill was aborted during this step"}
		}
	}
	return d
}

// decideEnding: all faults must be recovered first, however long that takes. Then the recorder judges, if it is
// running, whatever the outcome.
func decideEnding(o *observation) decision {
	s := &o.drill.Status
	e := s.Ending
	waited := o.now.Sub(e.Time.Time)
	if !o.left.none() {
		return decision{do: doRecoverAll, phase: phaseRecovering, reason: reasonRecovering, message: e.Message, again: backOff(waited)}
	}
	over := decision{do: doStop, phase: phaseFailed, reason: e.Reason, message: e.Message}
	finishing := decision{phase: phaseFinishing, reason: reasonFinishing, message: "the logs of all copies are read and judged. " + e.Message, again: pollStep}
	r := o.recorder
	switch {
	case s.StartTime == nil || recorderDead(o) || r == nil && o.silent > silenceLimit:
		return over // there is nothing to judge, or no recorder to judge it
	case r == nil:
		return finishing
	case r.Phase == recorder.Done:
		over.do = doCollect
		if e.Outcome == api.OutcomeComplete {
			over.phase = phaseComplete
		}
		return over
	case r.Phase == recorder.Failed:
		return notJudged(over, e, "the recorder gave up: "+r.Error)
	case waited > finishLimit:
		return notJudged(over, e, fmt.Sprintf("the recorder has not judged within %s: %s", finishLimit, r.Progress))
	case r.Phase == recorder.Running || r.Phase == recorder.Preparing:
		finishing.do = doFinish
	}
	return finishing
}

// notJudged keeps an earlier reason of failure: it is more important than the missing judgement.
func notJudged(d decision, e *api.DrillEnding, message string) decision {
	if e.Outcome == api.OutcomeComplete {
		d.reason, d.message = reasonNotJudged, message
	}
	return d
}

// decideDeleted removes the finalizer when nothing is left.
func decideDeleted(o *observation) decision {
	if !guarded(o.drill) {
		return decision{do: doNothing, phase: phaseOf(&o.drill.Status)}
	}
	if over(o.drill) || o.left.none() { // it was not over while anything was left
		return decision{do: doRelease, phase: phaseOf(&o.drill.Status)}
	}
	return decision{do: doRecoverAll, phase: phaseRecovering, reason: reasonRecovering, message: "the FailoverDrill is being deleted",
		again: backOff(o.now.Sub(o.drill.DeletionTimestamp.Time))}
}

// recorderDead: it can no longer answer.
func recorderDead(o *observation) bool {
	return o.job == nil || workload.Failed(o.job) || o.pod == nil || podEnded(o.pod) ||
		recorderOf(o.drill).PodUID != "" && string(o.pod.UID) != recorderOf(o.drill).PodUID
}

// backOff waits a quarter of the time waited so far.
func backOff(waited time.Duration) time.Duration { return min(max(waited/4, pollFast), pollLongest) }
