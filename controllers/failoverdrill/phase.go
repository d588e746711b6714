package failoverdrill

import (
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	api "github.com/ordergrid/ordergrid/api/v1alpha1"
)

// Reasons of the conditions of a FailoverDrill.
const (
	reasonGridNotFound    = "GridNotFound"
	reasonOtherDrill      = "OtherDrill"
	reasonPlanInvalid     = "PlanInvalid"
	reasonChecking        = "Checking"
	reasonPassed          = "Passed"
	reasonStarting        = "Starting"
	reasonNameTaken       = "NameTaken"
	reasonBaseline        = "Baseline"
	reasonStep            = "Step"
	reasonStepsDone       = "StepsDone"
	reasonAborted         = "Aborted"
	reasonNotRedundant    = "NotRedundant"
	reasonNotCalm         = "NotCalm"
	reasonInjectionFailed = "InjectionFailed"
	reasonServiceNotBack  = "ServiceNotBack"
	reasonRecorderFailed  = "RecorderFailed"
	reasonRecorderLost    = "RecorderLost"
	reasonDataLoss        = "DataLossSuspected"
	reasonGridGone        = "GridGone"
	reasonNotJudged       = "NotJudged"
	reasonRefused         = "Refused"
	reasonRecovering      = "Recovering"
	reasonFinishing       = "Finishing"
	reasonNoFault         = "NoFault"
	reasonFaultActive     = "FaultActive"
	reasonFaultsRemain    = "FaultsRemain"
	reasonFaultsUnknown   = "FaultsUnknown"
)

// Time limits for what normally takes seconds. Each is long enough for a busy machine, and ends a drill that would
// otherwise hang.
const (
	startLimit   = 15 * time.Minute // the recorder's pod: schedule, pull, connect
	calmLimit    = 15 * time.Minute // redundancy and a calm time before a step
	stale        = 15 * time.Second // a fault that was resolved and not requested since is resolved anew
	injectLimit  = 2 * time.Minute  // from the request of a fault until the provider reports it in place
	recoverWarn  = 30 * time.Second // from the request of its recovery until the condition reports it
	settleLimit  = 15 * time.Minute // service and redundancy after a fault
	silenceLimit = time.Minute      // a recorder that does not answer
	finishLimit  = 30 * time.Minute // reading all logs, judging
)

// maxAttempts is how often a step that was interrupted before its fault is begun.
const maxAttempts = 3

// Intervals between reconciles.
const (
	pollFast      = 250 * time.Millisecond // while a fault is injected or recovered
	pollStep      = time.Second
	pollPreflight = 10 * time.Second
	pollTrial     = time.Second
	pollLongest   = time.Minute
)

// phase of a drill: the reason of its condition Running.
type phase int

const (
	phasePending    phase = iota // the grid does not exist, or another drill has it
	phasePreflight               // a check failed
	phaseStarting                // the recorder is not running yet
	phaseBaseline                // the first step waits for a calm time
	phaseStep                    // a step is under way, or the next is due
	phaseRecovering              // it has ended; its faults are recovered
	phaseFinishing               // the recorder judges
	phaseComplete
	phaseFailed
)

// phaseOf derives the phase from status.
func phaseOf(s *api.FailoverDrillStatus) phase {
	switch {
	case meta.IsStatusConditionTrue(s.Conditions, api.ConditionComplete):
		return phaseComplete
	case meta.IsStatusConditionTrue(s.Conditions, api.ConditionFailed):
		return phaseFailed
	}
	running := meta.FindStatusCondition(s.Conditions, api.ConditionRunning)
	if running == nil {
		return phasePending
	}
	switch running.Reason {
	case reasonStarting, reasonNameTaken:
		return phaseStarting
	case reasonBaseline:
		return phaseBaseline
	case reasonStep:
		return phaseStep
	case reasonRecovering:
		return phaseRecovering
	case reasonFinishing:
		return phaseFinishing
	}
	return phasePending
}
