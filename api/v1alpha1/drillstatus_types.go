package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// FailoverDrillStatus is how the drill goes, and the certificate once it is over.
type FailoverDrillStatus struct {
	// observedGeneration is the generation of spec this status was made from.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// conditions are Preflight, Running, Recovered, Complete, Failed. The reason of Running says where the drill stands.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// seed of everything that was drawn. Set spec.seed to it to repeat the drill.
	// +optional
	Seed int64 `json:"seed,omitempty"`

	// startTime is when the first order was sent.
	// +optional
	StartTime *metav1.Time `json:"startTime,omitempty"`

	// completionTime is when the certificate was there, or the drill had failed.
	// +optional
	CompletionTime *metav1.Time `json:"completionTime,omitempty"`

	// progress is how many of the planned steps are finished, such as 3/10.
	// +optional
	// +kubebuilder:validation:MaxLength=32
	Progress string `json:"progress,omitempty"`

	// plannedSteps is the number of steps of the whole drill: faults times repetitions.
	// +optional
	PlannedSteps int32 `json:"plannedSteps,omitempty"`

	// finishedSteps is how many of them are over.
	// +optional
	FinishedSteps int32 `json:"finishedSteps,omitempty"`

	// failedSteps is how many of those did not hit, or could not be taken back in time.
	// +optional
	FailedSteps int32 `json:"failedSteps,omitempty"`

	// steps are the last 256 that were begun. The certificate has all.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=256
	Steps []DrillStep `json:"steps,omitempty"`

	// providers say who carries out which type of fault, as it was found before the first one.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=32
	Providers []DrillProvider `json:"providers,omitempty"`

	// skipped are the faults that are left out, because nobody here can carry them out.
	// +optional
	// +listType=map
	// +listMapKey=fault
	// +kubebuilder:validation:MaxItems=32
	Skipped []DrillSkipped `json:"skipped,omitempty"`

	// ending is how the drill will end, from when that is known until every fault is taken back and the recorder has
	// finished.
	// +optional
	Ending *DrillEnding `json:"ending,omitempty"`

	// recorder is the pod that sends the orders and keeps the ledger.
	// +optional
	Recorder *DrillRecorder `json:"recorder,omitempty"`

	// certificate says what was lost. It is there once the drill is over.
	// +optional
	Certificate *DrillCertificate `json:"certificate,omitempty"`
}

// DrillProvider says who carries out a type of fault.
type DrillProvider struct {
	// type of fault.
	// +required
	Type DrillFaultType `json:"type"`
	// provider that carries it out: ChaosMesh, Grid (the operator itself), or Executor/ and the name of one.
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
	// message says why, and what to do about it.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Message string `json:"message,omitempty"`
}

// DrillEnding is how a drill ends.
type DrillEnding struct {
	// outcome is Complete, Failed or Aborted.
	// +required
	Outcome DrillOutcome `json:"outcome"`
	// reason is the reason of the condition that will say so.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	Reason string `json:"reason,omitempty"`
	// message is that condition's.
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
	// OutcomeFailed could not.
	OutcomeFailed DrillOutcome = "Failed"
	// OutcomeAborted was ended by a person.
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
	// podUID is the pod's; another one would be another ledger, and makes the drill Invalid.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	PodUID string `json:"podUID,omitempty"`
	// address of its HTTP interface, IP:port.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	Address string `json:"address,omitempty"`
}

// DrillCertificate is the loss certificate in figures. The ConfigMap has it as a text and as JSON.
type DrillCertificate struct {
	// verdict of the drill.
	// +required
	Verdict DrillVerdict `json:"verdict"`
	// reason says in a sentence why.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Reason string `json:"reason,omitempty"`
	// created is the orders that were created.
	// +optional
	Created int64 `json:"created,omitempty"`
	// acknowledged is those whose client was told that they are stored.
	// +optional
	Acknowledged int64 `json:"acknowledged,omitempty"`
	// rejected is those whose client was told that they are not.
	// +optional
	Rejected int64 `json:"rejected,omitempty"`
	// unknown is those without an answer.
	// +optional
	Unknown int64 `json:"unknown,omitempty"`
	// downstream is the orders found in the files of the sink, each counted once. Absent without a sink.
	// +optional
	Downstream *int64 `json:"downstream,omitempty"`
	// lost is acknowledged orders that are nowhere: in no copy in sync, and not downstream.
	// +required
	Lost int64 `json:"lost"`
	// missing is acknowledged orders that are not lost, but not everywhere they should be: not in every copy in sync, or
	// in a copy and not downstream.
	// +optional
	Missing int64 `json:"missing,omitempty"`
	// duplicated is orders that are there twice.
	// +required
	Duplicated int64 `json:"duplicated"`
	// gaps is sequence numbers that are missing.
	// +required
	Gaps int64 `json:"gaps"`
	// outOfOrder is orders that stand elsewhere than their receipt says.
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
	// negativeControl says what the same judge found in what was falsified: as many as were taken out, or the verdict is
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

// DrillVerdict is what a certificate says.
//
// +kubebuilder:validation:Enum=Pass;Violated;Missed;Invalid
type DrillVerdict string

const (
	// DrillPass says that nothing was lost and everything expected held.
	DrillPass DrillVerdict = "Pass"
	// DrillViolated says that orders were lost, repeated, out of order, or read wrongly.
	DrillViolated DrillVerdict = "Violated"
	// DrillMissed says that nothing was lost, and something else that was expected did not hold.
	DrillMissed DrillVerdict = "Missed"
	// DrillInvalid says that nothing can be said: a fault did not hit, the recorder was disturbed, or the drill was aborted.
	DrillInvalid DrillVerdict = "Invalid"
)
