package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// OrderProbeSpec is one benchmark: of an OrderGrid, or of grids that the probe's pod starts for it. It is immutable: results
// belong to the spec they were measured with.
//
// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="changed; a probe's result belongs to the spec it was run with; create another OrderProbe"
// +kubebuilder:validation:XValidation:fieldPath=".overrides",rule="self.scenario != 'stac-scale' || !has(self.overrides) || !has(self.overrides.probes)",messageExpression="'probes %s cannot be set for stac-scale, in which two probes go with every pair of servers; remove spec.overrides.probes'.format([self.overrides.probes])"
// +kubebuilder:validation:XValidation:fieldPath=".arrival",rule="self.scenario != 'flow-replay' || has(self.arrival)",message="scenario flow-replay needs arrival with the recording to play: type: Replay and replay.source"
// +kubebuilder:validation:XValidation:fieldPath=".arrival",rule="!has(self.arrival) || !(self.scenario in {'flow-hawkes': 'Hawkes', 'flow-day': 'Day', 'flow-replay': 'Replay', 'gs-write': 'Steady'}) || {'flow-hawkes': 'Hawkes', 'flow-day': 'Day', 'flow-replay': 'Replay', 'gs-write': 'Steady'}[self.scenario] == self.arrival.type",messageExpression="'type %s does not fit scenario %s, which is about another arrival; leave arrival out, or choose scenario stac-pair'.format([self.arrival.type, self.scenario])"
// +kubebuilder:validation:XValidation:fieldPath=".overrides",rule="!has(self.arrival) || self.arrival.type != 'Replay' || !has(self.overrides) || !has(self.overrides.ratesPerProbe)",message="ratesPerProbe cannot be set for arrival Replay, which has the rates of its recording; set arrival.replay.speeds"
// +kubebuilder:validation:XValidation:fieldPath=".overrides",rule="self.scenario == 'stac-knee' || !has(self.overrides) || !has(self.overrides.search)",messageExpression="'search cannot be set for %s; it goes with scenario stac-knee; remove spec.overrides.search'.format([self.scenario])"
// +kubebuilder:validation:XValidation:fieldPath=".overrides",rule="self.scenario != 'stac-knee' || !has(self.overrides) || !(has(self.overrides.ratesPerProbe) || has(self.overrides.repeats))",message="ratesPerProbe and repeats cannot be set for stac-knee, which chooses its rates; set search.from and search.to"
// +kubebuilder:validation:XValidation:fieldPath=".gridRef",rule="!(self.scenario in ['stac-single', 'stac-pair', 'stac-scale', 'stac-knee', 'flow-hawkes', 'flow-replay', 'flow-day', 'gs-write']) || has(self.gridRef)",messageExpression="'scenario %s measures an OrderGrid; name it in spec.gridRef'.format([self.scenario])"
// +kubebuilder:validation:XValidation:fieldPath=".gridRef",rule="self.scenario in ['stac-single', 'stac-pair', 'stac-scale', 'stac-knee', 'flow-hawkes', 'flow-replay', 'flow-day', 'gs-write'] || !has(self.gridRef)",messageExpression="'gridRef cannot be set for %s, whose pod starts the grids that it needs; remove spec.gridRef'.format([self.scenario])"
// +kubebuilder:validation:XValidation:fieldPath=".scenario",rule="self.scenario in ['stac-single', 'stac-pair', 'stac-scale', 'stac-knee', 'flow-hawkes', 'flow-replay', 'flow-day', 'gs-write'] || !(has(self.arrival) || has(self.orders) || has(self.overrides))",messageExpression="'arrival, orders and overrides cannot be set for %s, whose size is chosen by spec.parameters; remove them'.format([self.scenario])"
// +kubebuilder:validation:XValidation:fieldPath=".budget",rule="self.scenario == 'suite' || !has(self.budget)",messageExpression="'budget cannot be set for %s; it goes with scenario suite; remove spec.budget'.format([self.scenario])"
// +kubebuilder:validation:XValidation:fieldPath=".through",rule="self.scenario in ['stac-single', 'stac-pair', 'stac-scale', 'stac-knee', 'flow-hawkes', 'flow-replay', 'flow-day', 'gs-write'] || !has(self.through) || self.through == 'Native'",messageExpression="'through cannot be FIX for %s, which has doors of its own; remove spec.through'.format([self.scenario])"
type OrderProbeSpec struct {
	// gridRef names the OrderGrid in the same namespace that is measured. Required for scenarios stac-single, stac-pair,
	// stac-scale, stac-knee, flow-… and gs-write; refused for the others, whose pod starts grids of its own.
	// +optional
	GridRef GridReference `json:"gridRef,omitzero"`

	// scenario names the benchmark.
	// +required
	Scenario Scenario `json:"scenario"`

	// parameters is Exact (the rates and durations of the published run), Scaled (for two cores) or Quick
	// (fewer rates, measured shorter).
	// +optional
	// +default="Scaled"
	// +kubebuilder:default=Scaled
	Parameters ParameterSet `json:"parameters,omitempty"`

	// budget is how long scenario suite may take: each of its scenarios gets the longest parameters, up to those of
	// parameters, that leave time for the quick ones of those after it. 1m to 168h. Default: as long as parameters say.
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]+([.][0-9]+)?(us|ms|s|m|h))+$') && duration(self) >= duration('1m') && duration(self) <= duration('168h')",messageExpression="'%s is not a duration from 1m to 168h; write it as 30m or 1.5h'.format([self])"
	Budget *metav1.Duration `json:"budget,omitempty"`

	// arrival is how orders arrive. Default: the scenario's; steady in the published ones.
	// +optional
	Arrival *OrderArrival `json:"arrival,omitempty"`

	// orders is Uniform (the 305-byte order of the published tests) or Varied (new, cancel and replace of many symbols,
	// sizes and prices). Default: Uniform where orders arrive steadily, else Varied.
	// +optional
	Orders OrderKind `json:"orders,omitempty"`

	// through is how orders get to the grid: Native (the default: its own protocol) or FIX (FIX sessions of an order-gateway
	// that is started in each pod of the probe, one for each publishing thread; an order ends with its ExecutionReport). FIX
	// needs a grid without spec.security.authorization, or one that does not enforce it: probes may not speak for sessions.
	// +optional
	// +default="Native"
	// +kubebuilder:default=Native
	Through ProbeDoor `json:"through,omitempty"`

	// overrides replace single parameters of the scenario; the report then names them.
	// +optional
	Overrides *ProbeOverrides `json:"overrides,omitempty"`

	// placement selects the Kubernetes nodes for the probe pods. They avoid the nodes of the grid where possible.
	// +optional
	Placement *ProbePlacement `json:"placement,omitempty"`

	// image of the probe. Default: the one the operator was installed with.
	// +optional
	// +kubebuilder:validation:MaxLength=512
	Image string `json:"image,omitempty"`

	// imagePullPolicy of the probe's container. Default: as Kubernetes does by tag.
	// +optional
	// +kubebuilder:validation:Enum=Always;Never;IfNotPresent
	ImagePullPolicy corev1.PullPolicy `json:"imagePullPolicy,omitempty"`

	// resources of the probe's container.
	// +optional
	Resources *corev1.ResourceRequirements `json:"resources,omitempty"`

	// ttl is how long the Job and its pods are kept once the run has ended; the result stays in status.
	// Default: until the OrderProbe is deleted.
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]+([.][0-9]+)?(us|ms|s|m|h))+$') && duration(self) >= duration('0s') && duration(self) <= duration('8760h')",messageExpression="'%s is not a duration from 0s to 8760h; write it as 20ms or 1.5s'.format([self])"
	TTL *metav1.Duration `json:"ttl,omitempty"`

	// schedule makes this OrderProbe a series. It is not run itself: at each time the operator creates an OrderProbe of
	// its own with the rest of the spec, and compares its figures with those of the runs before.
	// +optional
	Schedule *ProbeSchedule `json:"schedule,omitempty"`
}

// ProbeDoor is how orders get to the grid.
//
// +kubebuilder:validation:Enum=Native;FIX
type ProbeDoor string

const (
	// ThroughNative submits orders by the grid's own protocol.
	ThroughNative ProbeDoor = "Native"
	// ThroughFIX sends them through FIX sessions of an order-gateway.
	ThroughFIX ProbeDoor = "FIX"
)

// ProbeSchedule is when the runs of a series begin, and how many are kept.
type ProbeSchedule struct {
	// cron has five fields: minute, hour, day of the month, month, day of the week; or is @hourly, @daily, @weekly,
	// @monthly. Example: "0 3 * * 1-5". A run that is due while the one before has not ended is left out.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	// +kubebuilder:validation:XValidation:rule="self.matches('^(@(hourly|daily|weekly|monthly)|[0-9*/,A-Za-z-]+( [0-9*/,A-Za-z-]+){4})$')",messageExpression="'%s is not a schedule; write minute, hour, day of the month, month and day of the week, such as 0 3 * * 1-5'.format([self])"
	Cron string `json:"cron"`

	// timeZone is the IANA name of the time zone of cron, such as Europe/Zurich. Default UTC.
	// +optional
	// +default="UTC"
	// +kubebuilder:default="UTC"
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:XValidation:rule="self.matches('^[A-Z][A-Za-z0-9_+-]*(/[A-Za-z0-9_+-]+)*$') && self != 'Local'",messageExpression="self + ' is not the name of a time zone; write it as UTC or Europe/Zurich'"
	TimeZone string `json:"timeZone,omitempty"`

	// keep is how many runs that have ended are kept, with their reports. 8 to 100.
	// +optional
	// +default=20
	// +kubebuilder:default=20
	// +kubebuilder:validation:XValidation:rule="self >= 8 && self <= 100",messageExpression="'%s is out of range; allowed are 8 to 100: a comparison needs eight valid runs'.format([self])"
	Keep int32 `json:"keep,omitempty"`
}

// ParameterSet is the size of a scenario.
//
// +kubebuilder:validation:Enum=Exact;Scaled;Quick
type ParameterSet string

const (
	// ParametersExact are the parameters of the published run.
	ParametersExact ParameterSet = "Exact"
	// ParametersScaled are parameters for a machine with two cores.
	ParametersScaled ParameterSet = "Scaled"
	// ParametersQuick are fewer rates, measured shorter: a result within a minute.
	ParametersQuick ParameterSet = "Quick"
)

// ProbeOverrides replace parameters of a scenario.
type ProbeOverrides struct {
	// ratesPerProbe are the orders per second each probe creates, one step after the other.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:XValidation:rule="self.all(r, r >= 1 && r <= 1000000)",messageExpression="'%s is out of range; allowed are 1 to 1000000 orders per second'.format([self.filter(r, r < 1 || r > 1000000)])"
	RatesPerProbe []int32 `json:"ratesPerProbe,omitempty"`

	// warmup before each measurement, not counted. 0s to 1h.
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]+([.][0-9]+)?(us|ms|s|m|h))+$') && duration(self) >= duration('0s') && duration(self) <= duration('1h')",messageExpression="'%s is not a duration from 0s to 1h; write it as 20ms or 1.5s'.format([self])"
	Warmup *metav1.Duration `json:"warmup,omitempty"`

	// measure is how long each step is measured. 1s to 24h.
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]+([.][0-9]+)?(us|ms|s|m|h))+$') && duration(self) >= duration('1s') && duration(self) <= duration('24h')",messageExpression="'%s is not a duration from 1s to 24h; write it as 20ms or 1.5s'.format([self])"
	Measure *metav1.Duration `json:"measure,omitempty"`

	// repeats of every step. 1 to 100.
	// +optional
	// +kubebuilder:validation:XValidation:rule="self >= 1 && self <= 100",messageExpression="'%s is out of range; allowed are 1 to 100'.format([self])"
	Repeats *int32 `json:"repeats,omitempty"`

	// threads that publish orders in each probe. 1 to 64; the published probes had 4.
	// +optional
	// +kubebuilder:validation:XValidation:rule="self >= 1 && self <= 64",messageExpression="'%s is out of range; allowed are 1 to 64'.format([self])"
	Threads *int32 `json:"threads,omitempty"`

	// probes is the number of probe pods. 1 to 26; they are called A, B, C ….
	// +optional
	// +kubebuilder:validation:XValidation:rule="self >= 1 && self <= 26",messageExpression="'%s is out of range; allowed are 1 to 26'.format([self])"
	Probes *int32 `json:"probes,omitempty"`

	// search configures stac-knee.
	// +optional
	Search *ProbeSearch `json:"search,omitempty"`
}

// ProbeSearch configures stac-knee, which finds the highest rate at which a statistic of create-to-end latency is within a
// limit. Defaults are those of the scenario.
//
// +kubebuilder:validation:XValidation:rule="!has(self.from) || !has(self.to) || self.from < self.to",messageExpression="'from %s is not below to %s; the search goes from the lower rate to the higher'.format([self.from, self.to])"
type ProbeSearch struct {
	// statistic is mean or p99.
	// +optional
	// +kubebuilder:validation:Enum=mean;p99
	Statistic string `json:"statistic,omitempty"`

	// limit of the statistic. 1us to 1m.
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]+([.][0-9]+)?(us|ms|s|m|h))+$') && duration(self) >= duration('1us') && duration(self) <= duration('1m')",messageExpression="'%s is not a duration from 1us to 1m; write it as 500us or 1ms'.format([self])"
	Limit *metav1.Duration `json:"limit,omitempty"`

	// from is the lowest rate tried, orders per second of each probe. 1 to 1000000.
	// +optional
	// +kubebuilder:validation:XValidation:rule="self >= 1 && self <= 1000000",messageExpression="'%s is out of range; allowed are 1 to 1000000 orders per second'.format([self])"
	From *int32 `json:"from,omitempty"`

	// to is the highest rate tried, orders per second of each probe. 1 to 1000000.
	// +optional
	// +kubebuilder:validation:XValidation:rule="self >= 1 && self <= 1000000",messageExpression="'%s is out of range; allowed are 1 to 1000000 orders per second'.format([self])"
	To *int32 `json:"to,omitempty"`

	// goal is the total rate for which pairs of servers are counted, orders per second. 1 to 26000000.
	// +optional
	// +kubebuilder:validation:XValidation:rule="self >= 1 && self <= 26000000",messageExpression="'%s is out of range; allowed are 1 to 26000000 orders per second'.format([self])"
	Goal *int32 `json:"goal,omitempty"`
}

// ProbePlacement selects nodes for probe pods.
type ProbePlacement struct {
	// nodeSelector lists labels a Kubernetes node must have.
	// +optional
	NodeSelector map[string]string `json:"nodeSelector,omitempty"`

	// tolerations of the pods.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	Tolerations []corev1.Toleration `json:"tolerations,omitempty"`
}

// OrderProbe is one benchmark run, against an OrderGrid or against grids of its own.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=op,categories=ordergrid-all
// +kubebuilder:printcolumn:name="Scenario",type=string,JSONPath=".spec.scenario"
// +kubebuilder:printcolumn:name="Grid",type=string,JSONPath=".spec.gridRef.name"
// +kubebuilder:printcolumn:name="State",type=string,JSONPath=".status.conditions[?(@.status=='True')].reason"
// +kubebuilder:printcolumn:name="Verdict",type=string,JSONPath=".status.verdict"
// +kubebuilder:printcolumn:name="Mean",type=string,JSONPath=".status.mean"
// +kubebuilder:printcolumn:name="P99",type=string,JSONPath=".status.p99"
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=".metadata.creationTimestamp"
// +kubebuilder:printcolumn:name="Parameters",type=string,priority=1,JSONPath=".spec.parameters"
// +kubebuilder:printcolumn:name="Next",type=string,priority=1,JSONPath=".status.nextTime"
// +kubebuilder:printcolumn:name="Report",type=string,priority=1,JSONPath=".status.reportConfigMap"
// +kubebuilder:printcolumn:name="Why",type=string,priority=1,JSONPath=".status.verdictReason"
// +kubebuilder:validation:XValidation:rule="self.metadata.name.matches('^[a-z]([-a-z0-9]{0,48}[a-z0-9])?$')",messageExpression="'metadata.name: %s cannot begin the names of the probe pods; use at most 50 lowercase letters, digits and hyphens, beginning with a letter and not ending with a hyphen'.format([self.metadata.name])"
// +kubebuilder:validation:XValidation:rule="!has(self.spec.schedule) || size(self.metadata.name) <= 40",messageExpression="'metadata.name: %s begins the names of the runs of a series; use at most 40 characters'.format([self.metadata.name])"
type OrderProbe struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is what to measure.
	// +required
	Spec OrderProbeSpec `json:"spec"`

	// status is what the operator observes.
	// +optional
	Status OrderProbeStatus `json:"status,omitempty,omitzero"`
}

// OrderProbeList is a list of OrderProbes.
//
// +kubebuilder:object:root=true
type OrderProbeList struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []OrderProbe `json:"items"`
}
