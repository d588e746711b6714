package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// FailoverDrillStatus is the state of the drill, and the certificate once it is over.
type FailoverDrillStatus struct {
	// observedGeneration is the generation of spec this status was made from.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// conditions are Preflight, Running, Recovered, Complete, Failed. The reason of Running is the phase of the drill.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// seed of all random choices. Set spec.seed to it to repeat the drill.
	// +optional
	Seed int64 `json:"seed,omitempty"`

	// startTime is when the first order was sent.
	// +optional
	StartTime *metav1.Time `json:"startTime,omitempty"`

	// completionTime is when the certificate was complete, or the drill had failed.
	// +optional
	CompletionTime *metav1.Time `json:"completionTime,omitempty"`

	// progress is how many of the planned steps are finished, such as 3/10.
	// +optional
	// +kubebuilder:validation:MaxLength=32
	Progress string `json:"progress,omitempty"`

	// plannedSteps is the number of steps of the whole drill: faults times repetitions.
	// +optional
	PlannedSteps int32 `json:"plannedSteps,omitempty"`

	// finishedSteps is how many of them have ended.
	// +optional
	FinishedSteps int32 `json:"finishedSteps,omitempty"`

	// failedSteps is how many of those did not hit, or could not be recovered in time.
	// +optional
	FailedSteps int32 `json:"failedSteps,omitempty"`

	// steps are the last 256 steps that were begun. The certificate has all.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=256
	Steps []DrillStep `json:"steps,omitempty"`

	// providers lists the provider of each type of fault, as chosen before the first one.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=32
	Providers []DrillProvider `json:"providers,omitempty"`

	// skipped are the faults that are left out, because no provider supports them.
	// +optional
	// +listType=map
	// +listMapKey=fault
	// +kubebuilder:validation:MaxItems=32
	Skipped []DrillSkipped `json:"skipped,omitempty"`

	// ending is how the drill will end, from when that is known until every fault is recovered and the recorder has
	// finished.
	// +optional
	Ending *DrillEnding `json:"ending,omitempty"`

	// recorder is the pod that sends the orders and keeps the ledger.
	// +optional
	Recorder *DrillRecorder `json:"recorder,omitempty"`

	// certificate reports what was lost. Set once the drill is over.
	// +optional
	Certificate *DrillCertificate `json:"certificate,omitempty"`
}

// DrillProvider is the provider of a type of fault.
type DrillProvider struct {
	// type of fault.
	// +required
	Type DrillFaultType `json:"type"`
	// provider that injects it: ChaosMesh, Grid (the operator itself), or Executor/ and the name of one.
	// +required
	// +kubebuilder:validation:MaxLength=64
	Provider string `json:"provider"`
}

// DrillSkipped is a fault that is left out.
type DrillSkipped struct {
	// fault is its name.
	// +required
	// +kubebuilder:validation:MaxLength=40
	Fault string `json:"fault"`
	// type of the fault.
	// +required
	Type DrillFaultType `json:"type"`
	// message has the reason and the remedy.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Message string `json:"message,omitempty"`
}

// DrillEnding is how a drill ends.
type DrillEnding struct {
	// outcome is Complete, Failed or Aborted.
	// +required
	Outcome DrillOutcome `json:"outcome"`
	// reason of the condition that will be set.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	Reason string `json:"reason,omitempty"`
	// message of that condition.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Message string `json:"message,omitempty"`
	// time when it was known.
	// +optional
	Time *metav1.MicroTime `json:"time,omitempty"`
}

// DrillOutcome is how a drill ends.
//
// +kubebuilder:validation:Enum=Complete;Failed;Aborted
type DrillOutcome string

const (
	// OutcomeComplete has carried out every step.
	OutcomeComplete DrillOutcome = "Complete"
	// OutcomeFailed could not carry out every step.
	OutcomeFailed DrillOutcome = "Failed"
	// OutcomeAborted was aborted by a user.
	OutcomeAborted DrillOutcome = "Aborted"
)

// DrillRecorder is the pod that sends the orders and keeps the ledger.
type DrillRecorder struct {
	// job that runs it.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	Job string `json:"job,omitempty"`
	// pod is its name. The Secret of the job's name has the token for it under the key token.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	Pod string `json:"pod,omitempty"`
	// podUID is the UID of the pod; another pod has no ledger, which makes the drill Invalid.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	PodUID string `json:"podUID,omitempty"`
	// address of its HTTP interface, IP:port.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	Address string `json:"address,omitempty"`
}

// DrillCertificate is the loss certificate in figures. The ConfigMap has it as text and as JSON.
type DrillCertificate struct {
	// verdict of the drill.
	// +required
	Verdict DrillVerdict `json:"verdict"`
	// reason for the verdict, in a sentence.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Reason string `json:"reason,omitempty"`
	// created is the number of orders created.
	// +optional
	Created int64 `json:"created,omitempty"`
	// acknowledged is the number of orders acknowledged to their client.
	// +optional
	Acknowledged int64 `json:"acknowledged,omitempty"`
	// rejected is the number of orders refused to their client.
	// +optional
	Rejected int64 `json:"rejected,omitempty"`
	// unknown is the number of orders without an answer.
	// +optional
	Unknown int64 `json:"unknown,omitempty"`
	// downstream is the number of orders found in the files of the sink, each counted once. Absent without a sink.
	// +optional
	Downstream *int64 `json:"downstream,omitempty"`
	// lost is the number of acknowledged orders that are in no copy in sync and not downstream.
	// +required
	Lost int64 `json:"lost"`
	// missing is the number of acknowledged orders that are not lost, but incomplete: not in every copy in sync, or
	// in a copy and not downstream.
	// +optional
	Missing int64 `json:"missing,omitempty"`
	// duplicated is the number of orders found twice.
	// +required
	Duplicated int64 `json:"duplicated"`
	// gaps is the number of missing sequence numbers.
	// +required
	Gaps int64 `json:"gaps"`
	// outOfOrder is the number of orders at another place than in their receipt.
	// +required
	OutOfOrder int64 `json:"outOfOrder"`
	// outageP50 is the median over steps of the outage.
	// +optional
	OutageP50 *metav1.Duration `json:"outageP50,omitempty"`
	// outageP99 is the 99th percentile, by nearest rank.
	// +optional
	OutageP99 *metav1.Duration `json:"outageP99,omitempty"`
	// outageMax is the longest.
	// +optional
	OutageMax *metav1.Duration `json:"outageMax,omitempty"`
	// negativeControl is what the same checks found in a falsified history: all injected errors, or the verdict is
	// Invalid.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	NegativeControl string `json:"negativeControl,omitempty"`
	// sha256 of the certificate in JSON, in hexadecimal.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	SHA256 string `json:"sha256,omitempty"`
	// historySHA256 of the recorded history that it was judged from.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	HistorySHA256 string `json:"historySHA256,omitempty"`
	// configMap with the certificate: certificate.txt, certificate.json.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	ConfigMap string `json:"configMap,omitempty"`
}

// DrillVerdict is the verdict of a certificate.
//
// +kubebuilder:validation:Enum=Pass;Violated;Missed;Invalid
type DrillVerdict string

const (
	// DrillPass means that nothing was lost and everything expected held.
	DrillPass DrillVerdict = "Pass"
	// DrillViolated means that orders were lost, repeated, out of order, or read wrongly.
	DrillViolated DrillVerdict = "Violated"
	// DrillMissed means that nothing was lost, but another expectation did not hold.
	DrillMissed DrillVerdict = "Missed"
	// DrillInvalid means that there is no verdict: a fault did not hit, the recorder was disturbed, or the drill was aborted.
	DrillInvalid DrillVerdict = "Invalid"
)
