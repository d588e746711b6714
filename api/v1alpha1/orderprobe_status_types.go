package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// OrderProbeStatus is the state and result of the run.
type OrderProbeStatus struct {
	// observedGeneration is the generation of spec this status was made from.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// conditions are Running, Complete, Failed; of a series Running, Failed and Regressed.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// startTime is when all probes were ready and started.
	// +optional
	StartTime *metav1.Time `json:"startTime,omitempty"`

	// completionTime is when the last result arrived.
	// +optional
	CompletionTime *metav1.Time `json:"completionTime,omitempty"`

	// verdict of the run.
	// +optional
	Verdict Verdict `json:"verdict,omitempty"`

	// verdictReason is the reason for the verdict in one sentence.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	VerdictReason string `json:"verdictReason,omitempty"`

	// verdicts are the single judgements, each with its reason: CORRECT, VALID and those of the scenario (SHAPE, SLO,
	// LAB, LAB-ABS, KNEE).
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=16
	Verdicts []ProbeVerdict `json:"verdicts,omitempty"`

	// mean create-to-end latency at the highest rate with a valid figure, with unit and rate.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	Mean string `json:"mean,omitempty"`

	// p99 of create-to-end latency at the highest rate with a valid figure, with unit and rate.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	P99 string `json:"p99,omitempty"`

	// rows of the result table: what was published beside what was measured here.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=2048
	Rows []ProbeRow `json:"rows,omitempty"`

	// nextTime is when the next run of a series is due.
	// +optional
	NextTime *metav1.Time `json:"nextTime,omitempty"`

	// lastTime is when the last run of a series was due that was begun or left out.
	// +optional
	LastTime *metav1.Time `json:"lastTime,omitempty"`

	// runs of a series that have ended, the latest first.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=100
	Runs []ProbeRun `json:"runs,omitempty"`

	// reportConfigMap names the ConfigMap with the whole report: table.txt, results.json, results.csv; of scenarios without
	// gridRef report.html too, and of suite the table of each scenario.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	ReportConfigMap string `json:"reportConfigMap,omitempty"`
}

// ProbeRun is one run of a series.
type ProbeRun struct {
	// name of the OrderProbe that was run.
	// +required
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
	// startTime of its probes.
	// +optional
	StartTime *metav1.Time `json:"startTime,omitempty"`
	// verdict of the run; empty if it has no result.
	// +optional
	Verdict Verdict `json:"verdict,omitempty"`
	// mean as in status.mean.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	Mean string `json:"mean,omitempty"`
	// p99 as in status.p99.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	P99 string `json:"p99,omitempty"`
}

// Verdict is whether the figures of a run may be used.
//
// +kubebuilder:validation:Enum=Valid;Invalid;Incorrect
type Verdict string

const (
	// VerdictValid means that every order was acknowledged once, and the probe kept its schedule.
	VerdictValid Verdict = "Valid"
	// VerdictInvalid means that the environment disturbed the measurement; the latencies are meaningless.
	VerdictInvalid Verdict = "Invalid"
	// VerdictIncorrect means that orders were lost or duplicated, or there was a gap.
	VerdictIncorrect Verdict = "Incorrect"
)

// ProbeVerdict is one judgement of a run.
type ProbeVerdict struct {
	// name such as SHAPE.
	// +required
	// +kubebuilder:validation:MaxLength=32
	Name string `json:"name"`
	// status is PASS, FAIL, INVALID, INVALID-CONTENDED or "not judged".
	// +required
	// +kubebuilder:validation:MaxLength=32
	Status string `json:"status"`
	// reason in words, with the figures it rests on.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Reason string `json:"reason,omitempty"`
}

// ProbeRow is one figure. Numbers are decimal strings, to avoid rounding by readers.
type ProbeRow struct {
	// pairs of servers under load, in scenarios that vary them.
	// +optional
	// +kubebuilder:validation:MaxLength=128
	Pairs string `json:"pairs,omitempty"`
	// rate is the orders per second of each probe, or what else distinguishes the step; of scenarios without gridRef the
	// table of the report and its row.
	// +optional
	// +kubebuilder:validation:MaxLength=128
	Rate string `json:"rate,omitempty"`
	// metric such as "C2E mean".
	// +optional
	// +kubebuilder:validation:MaxLength=128
	Metric string `json:"metric,omitempty"`
	// unit such as "us".
	// +optional
	// +kubebuilder:validation:MaxLength=128
	Unit string `json:"unit,omitempty"`
	// published figure; empty where none was published.
	// +optional
	// +kubebuilder:validation:MaxLength=128
	Published string `json:"published,omitempty"`
	// here is the figure of this run.
	// +optional
	// +kubebuilder:validation:MaxLength=128
	Here string `json:"here,omitempty"`
	// ratio here/published.
	// +optional
	// +kubebuilder:validation:MaxLength=128
	Ratio string `json:"ratio,omitempty"`
	// verdict on the row, such as INVALID-CONTENDED.
	// +optional
	// +kubebuilder:validation:MaxLength=128
	Verdict string `json:"verdict,omitempty"`
}
