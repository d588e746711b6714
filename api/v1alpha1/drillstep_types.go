package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// DrillStep is one injection of one fault.
type DrillStep struct {
	// index of the step in the whole drill, from 0.
	// +required
	// +kubebuilder:validation:Minimum=0
	Index int32 `json:"index"`
	// repetition it belongs to, from 1.
	// +optional
	Repetition int32 `json:"repetition,omitempty"`
	// fault is the name of the fault.
	// +required
	// +kubebuilder:validation:MaxLength=40
	Fault string `json:"fault"`
	// type of the fault.
	// +required
	Type DrillFaultType `json:"type"`
	// partition the step was drawn for: the name of a GridPartition. Empty for the whole grid.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	Partition string `json:"partition,omitempty"`
	// provider that injects it: ChaosMesh, Grid (the operator itself), or Executor/ and the name of one.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	Provider string `json:"provider,omitempty"`
	// targets are the pods hit, as of the injection.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	Targets []DrillTargetPod `json:"targets,omitempty"`
	// peers are the pods at the other end of a network fault.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	Peers []DrillTargetPod `json:"peers,omitempty"`
	// nodes are the machines hit.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MaxLength=253
	Nodes []string `json:"nodes,omitempty"`
	// state of the step.
	// +optional
	State DrillStepState `json:"state,omitempty"`
	// stateTime is when it entered that state.
	// +optional
	StateTime *metav1.MicroTime `json:"stateTime,omitempty"`
	// attempts at the injection.
	// +optional
	Attempts int32 `json:"attempts,omitempty"`
	// baseline is what the witness saw before the fault, for an operator that restarts in the middle of the step.
	// +optional
	// +kubebuilder:validation:MaxLength=8192
	Baseline string `json:"baseline,omitempty"`
	// injectedTime is when the fault took effect, by the operator's clock.
	// +optional
	InjectedTime *metav1.MicroTime `json:"injectedTime,omitempty"`
	// recoveredTime is when it was recovered, by the operator's clock.
	// +optional
	RecoveredTime *metav1.MicroTime `json:"recoveredTime,omitempty"`
	// witness is the evidence that the fault has hit.
	// +optional
	Witness *DrillWitness `json:"witness,omitempty"`
	// outcome of the step.
	// +optional
	Outcome DrillStepOutcome `json:"outcome,omitempty"`
	// outage is the longest time any session was without an acknowledgement around the fault, by the recorder's clock.
	// +optional
	Outage *metav1.Duration `json:"outage,omitempty"`
	// detectedAfter is the time from the last acknowledgement before the outage until a grid node removed the process that
	// was broken.
	// +optional
	DetectedAfter *metav1.Duration `json:"detectedAfter,omitempty"`
	// takenOverAfter is the same until the last configuration without it was written.
	// +optional
	TakenOverAfter *metav1.Duration `json:"takenOverAfter,omitempty"`
	// servedAfter is the time from the fault until the next acknowledgement.
	// +optional
	ServedAfter *metav1.Duration `json:"servedAfter,omitempty"`
	// redundantAfter is the time from the fault until every copy was in sync again.
	// +optional
	RedundantAfter *metav1.Duration `json:"redundantAfter,omitempty"`
	// p99Before is the 99th percentile of latency in the calm before the fault.
	// +optional
	P99Before *metav1.Duration `json:"p99Before,omitempty"`
	// p99During is the same from the fault until the grid was redundant again.
	// +optional
	P99During *metav1.Duration `json:"p99During,omitempty"`
	// p99After is the same in the time after that.
	// +optional
	P99After *metav1.Duration `json:"p99After,omitempty"`
	// failedOrders were refused or timed out.
	// +optional
	FailedOrders int64 `json:"failedOrders,omitempty"`
	// message has further information about the step.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Message string `json:"message,omitempty"`
}

// DrillTargetPod is a pod as of the injection of a fault.
type DrillTargetPod struct {
	// name of the pod.
	// +required
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
	// uid of the pod.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	UID string `json:"uid,omitempty"`
	// ip of the pod.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	IP string `json:"ip,omitempty"`
	// node it ran on.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	Node string `json:"node,omitempty"`
}

// DrillStepState is the state of a step, in this order.
//
// +kubebuilder:validation:Enum=Pending;Waiting;Calm;Injecting;Witnessing;Holding;Recovering;Settling;Done
type DrillStepState string

const (
	// StepPending has not begun.
	StepPending DrillStepState = "Pending"
	// StepWaiting waits for the condition of start.
	StepWaiting DrillStepState = "Waiting"
	// StepCalm measures the undisturbed grid, for comparison.
	StepCalm DrillStepState = "Calm"
	// StepInjecting waits until the fault takes effect.
	StepInjecting DrillStepState = "Injecting"
	// StepWitnessing waits until the fault is seen to have hit.
	StepWitnessing DrillStepState = "Witnessing"
	// StepHolding lets the fault last.
	StepHolding DrillStepState = "Holding"
	// StepRecovering recovers the fault.
	StepRecovering DrillStepState = "Recovering"
	// StepSettling waits for service, redundancy and steadyState.settle.
	StepSettling DrillStepState = "Settling"
	// StepDone is over.
	StepDone DrillStepState = "Done"
)

// DrillStepOutcome is how a step ended.
//
// +kubebuilder:validation:Enum=Passed;Violated;Missed;Refused;Failed;Aborted
type DrillStepOutcome string

const (
	// StepPassed met all expectations.
	StepPassed DrillStepOutcome = "Passed"
	// StepViolated lost, repeated or reordered orders.
	StepViolated DrillStepOutcome = "Violated"
	// StepMissed was longer or slower than expected.
	StepMissed DrillStepOutcome = "Missed"
	// StepRefused was not injected, because safety forbids it, as expected by expect.injection: Refused.
	StepRefused DrillStepOutcome = "Refused"
	// StepFailed was not injected, not witnessed, or not recovered in time.
	StepFailed DrillStepOutcome = "Failed"
	// StepAborted was aborted by a user.
	StepAborted DrillStepOutcome = "Aborted"
)

// DrillWitness is the evidence that a fault has hit.
type DrillWitness struct {
	// state is Pending, Seen or NotSeen.
	// +required
	State WitnessState `json:"state"`
	// message is what was seen, with figures.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Message string `json:"message,omitempty"`
}

// WitnessState is whether a fault was seen to have hit.
//
// +kubebuilder:validation:Enum=Pending;Seen;NotSeen
type WitnessState string

const (
	// WitnessPending is not known yet.
	WitnessPending WitnessState = "Pending"
	// WitnessSeen is evidence.
	WitnessSeen WitnessState = "Seen"
	// WitnessNotSeen is no evidence within the time limit; the drill is Invalid.
	WitnessNotSeen WitnessState = "NotSeen"
)
