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
	"github.com/ordergrid/ordergrid/controllers/runs"
	recorder "github.com/ordergrid/ordergrid/probe/drill/api"
)

// observation is everything that decide knows.
type observation struct {
	drill *api.FailoverDrill
	now   time.Time
	grid  *api.OrderGrid // nil: there is none
	// other is the drill that has the grid now; empty: none has.
	other string
	// plan of the drill; planErr says why there is none.
	plan    []plan.Step
	planErr error
	check   preflight
	job     *batchv1.Job // nil: not created, or cleaned up
	pod     *corev1.Pod  // of the recorder; nil: there is none
	// recorder is what it said now; while that is nil, silent is how long it has not said anything.
	recorder *recorder.State
	silent   time.Duration
	step     sight
	left     leftovers
}

// sight is what is seen of the step under way.
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
	// unknown says which provider could not be asked, and why.
	unknown string
}

func (l leftovers) none() bool { return l.asked && len(l.names) == 0 && l.unknown == "" }

// action is what act does before status is written.
type action int

const (
	doNothing    action = iota
	doDraw              // draw the seed
	doGuard             // put the finalizer on
	doRelease           // take the finalizer off
	doClaim             // take the grid, unless another drill was faster
	doLaunch            // create what the recorder needs, its Job last
	doBegin             // begin the next step
	doPrepare           // resolve the step's targets and look at them before the fault
	doInject            // tell the recorder, ask for the fault
	doInjected          // tell the recorder that it is there
	doRecover           // ask to take it back
	doRecovered         // tell the recorder that it is gone
	doAbandon           // tell the recorder that the step failed
	doRecoverAll        // take everything of the drill back
	doFinish            // tell the recorder to judge
	doCollect           // fetch the certificate
	doStop              // the drill is over: end the recorder that has nothing to show
)

// decision is what comes next and what status says.
type decision struct {
	do    action
	phase phase
	// reason and message of the condition that goes with the phase.
	reason, message string
	// step is what becomes of the step under way; nil leaves it.
	step *stepChange
	// ending is set when it has just been decided how the drill ends.
	ending *api.DrillEnding
	// again is when to look again; 0 leaves it to watches.
	again time.Duration
}

// stepChange is what becomes of the step under way. Empty fields leave what there is.
type stepChange struct {
	state   api.DrillStepState
	outcome api.DrillStepOutcome
	message string
	witness api.WitnessState
	seen    string // what the witness saw
}

// decide says what comes next. It is the only place that does, reads nothing but o, and changes nothing: an operator
// that starts anew comes to the same decision from status and the world.
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
		return decision{do: doDraw, phase: phasePending, reason: reasonChecking, message: "not looked at yet", again: pollFast}
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

// decideBeforeStart: whether the drill may begin. Everything that stands in its way is said at once, and it is looked
// at again until nothing does: a fault that could only be half made is never begun.
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
	if !guarded(o.drill) { // before there is anything to take back, and only where that may be done
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
		return end(o, api.OutcomeFailed, reasonRecorderFailed, fmt.Sprintf("the recorder does not run after %s%s%s", startLimit, messages.PodTrouble(o.pod), messages.JobFailure(o.job)))
	}
	starting.message = "waiting for the recorder" + messages.PodTrouble(o.pod)
	return starting
}

// broken: what makes going on pointless. The faults are taken back all the same.
func broken(o *observation, at phase) (reason, message string) {
	run := recorderOf(o.drill)
	switch {
	case o.grid == nil:
		return reasonGridGone, fmt.Sprintf("OrderGrid %s was deleted during the drill", o.drill.Spec.GridRef.Name)
	case meta.IsStatusConditionTrue(o.grid.Status.Conditions, api.ConditionDataLossSuspected):
		c := meta.FindStatusCondition(o.grid.Status.Conditions, api.ConditionDataLossSuspected)
		return reasonDataLoss, fmt.Sprintf("OrderGrid %s waits for a person, because orders may be lost: %s", o.grid.Name, c.Message)
	case o.planErr != nil:
		return reasonPlanInvalid, o.planErr.Error()
	case o.job == nil && at != phaseStarting:
		return reasonRecorderLost, fmt.Sprintf("Job %s was deleted during the drill: the ledger of the orders is lost", recorderName(o.drill))
	case runs.Failed(o.job):
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

// end begins the end: what is in place is taken back, then the recorder judges what it has seen.
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

// decideEnding: nothing may be left before anything else is done, however long that takes. Then the recorder judges,
// if it is there, whatever the end.
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
		return over // there is nothing to judge, or nobody who could
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

// notJudged: the reason why a drill failed otherwise is worth more than that it was not judged either.
func notJudged(d decision, e *api.DrillEnding, message string) decision {
	if e.Outcome == api.OutcomeComplete {
		d.reason, d.message = reasonNotJudged, message
	}
	return d
}

// decideDeleted: the finalizer goes when nothing is left.
func decideDeleted(o *observation) decision {
	if !guarded(o.drill) {
		return decision{do: doNothing, phase: phaseOf(&o.drill.Status)}
	}
	if over(o.drill) || o.left.none() { // it was not over before nothing was left
		return decision{do: doRelease, phase: phaseOf(&o.drill.Status)}
	}
	return decision{do: doRecoverAll, phase: phaseRecovering, reason: reasonRecovering, message: "the FailoverDrill is being deleted",
		again: backOff(o.now.Sub(o.drill.DeletionTimestamp.Time))}
}

// recorderDead: it cannot answer any more.
func recorderDead(o *observation) bool {
	return o.job == nil || runs.Failed(o.job) || o.pod == nil || podEnded(o.pod) ||
		recorderOf(o.drill).PodUID != "" && string(o.pod.UID) != recorderOf(o.drill).PodUID
}

// backOff waits a quarter of what was waited so far.
func backOff(waited time.Duration) time.Duration { return min(max(waited/4, pollFast), pollLongest) }
