package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// FailoverDrillSpec is the faults injected into one grid while orders flow, and the expectations. Except state, it
// is immutable: a certificate belongs to the spec it was run with. Durations are compared as strings; the defaults
// are formatted as in Go, so that an update by a Go client changes nothing.
//
// +kubebuilder:validation:XValidation:rule="has(self.suite) != has(self.faults)",message="name exactly one of suite and faults: suite for a list that comes with the operator (kubectl ordergrid drill suites), faults for a list of your own"
// +kubebuilder:validation:XValidation:rule="self.gridRef == oldSelf.gridRef && has(self.suite) == has(oldSelf.suite) && (!has(self.suite) || self.suite == oldSelf.suite) && has(self.faults) == has(oldSelf.faults) && (!has(self.faults) || self.faults == oldSelf.faults) && has(self.order) == has(oldSelf.order) && (!has(self.order) || self.order == oldSelf.order) && has(self.repetitions) == has(oldSelf.repetitions) && (!has(self.repetitions) || self.repetitions == oldSelf.repetitions) && has(self.seed) == has(oldSelf.seed) && (!has(self.seed) || self.seed == oldSelf.seed) && self.ttl == oldSelf.ttl && self.unsupportedFaults == oldSelf.unsupportedFaults",message="changed; a certificate belongs to the spec the drill was run with; create another FailoverDrill, or end this one with state: Abort"
// +kubebuilder:validation:XValidation:rule="self.safety == oldSelf.safety && self.steadyState == oldSelf.steadyState && self.traffic == oldSelf.traffic",message="changed; a certificate belongs to the spec the drill was run with; create another FailoverDrill, or end this one with state: Abort"
// +kubebuilder:validation:XValidation:fieldPath=".state",rule="self.state == oldSelf.state || oldSelf.state == 'Run'",message="Run after Abort: an aborted drill does not go on; create another FailoverDrill"
// +kubebuilder:validation:XValidation:fieldPath=".faults",rule="!has(self.faults) || self.faults[0].start == 'Redundant'",messageExpression="'%s starts %s, and there is no fault before it; put it after another, or set start: Redundant'.format([self.faults[0].name, self.faults[0].start])"
type FailoverDrillSpec struct {
	// gridRef names the OrderGrid in the same namespace that faults are injected into. One drill runs on a grid at a time; others wait.
	// +required
	GridRef GridReference `json:"gridRef"`

	// suite names a list of faults that comes with the operator.
	// +optional
	Suite DrillSuite `json:"suite,omitempty"`

	// faults is a list of your own: 1 to 32, injected one after the other.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=32
	Faults []DrillFault `json:"faults,omitempty"`

	// order is Listed (the order of the list) or Random (drawn from seed in each repetition).
	// Default: the suite's; Listed for faults.
	// +optional
	Order DrillOrder `json:"order,omitempty"`

	// repetitions of the whole list. 1 to 1000. Default: the suite's; 1 for faults.
	// +optional
	// +kubebuilder:validation:XValidation:rule="self >= 1 && self <= 1000",messageExpression="'%s is out of range; allowed are 1 to 1000'.format([self])"
	Repetitions *int32 `json:"repetitions,omitempty"`

	// seed of all random choices: targets, and the order where it is Random. The same seed gives the same steps.
	// 1 to 9007199254740991. Default: drawn, and shown in status.seed.
	// +optional
	// +kubebuilder:validation:XValidation:rule="self >= 1 && self <= 9007199254740991",messageExpression="'%s is out of range; allowed are 1 to 9007199254740991'.format([self])"
	Seed *int64 `json:"seed,omitempty"`

	// traffic is the orders sent meanwhile.
	// +optional
	// +kubebuilder:default={probes: 2}
	Traffic DrillTraffic `json:"traffic,omitempty,omitzero"`

	// steadyState is what has to hold before, during and after each fault.
	// +optional
	// +kubebuilder:default={redundantWithin: "2m0s", calm: "5s", settle: "3s"}
	SteadyState DrillSteadyState `json:"steadyState,omitempty,omitzero"`

	// safety bounds what the drill may break.
	// +optional
	// +kubebuilder:default={whenNotRedundant: "Refuse", lastCopy: "Keep", maxShards: 1}
	Safety DrillSafety `json:"safety,omitempty,omitzero"`

	// unsupportedFaults is how faults are handled that no provider supports, because Chaos Mesh, an executor or a
	// feature of the kernel is missing: Refuse (the drill does not begin) or Skip (they are left out, and the certificate
	// reports them as not shown). Default Refuse.
	// +optional
	// +default="Refuse"
	// +kubebuilder:default=Refuse
	UnsupportedFaults UnsupportedPolicy `json:"unsupportedFaults,omitempty"`

	// state is Run, or Abort: no further fault is injected, injected faults are recovered, and the certificate is
	// Invalid. Default Run.
	// +optional
	// +default="Run"
	// +kubebuilder:default=Run
	State DrillState `json:"state,omitempty"`

	// ttl is how long the recorder and the history it holds are kept once the drill has ended; the certificate stays
	// until the FailoverDrill is deleted. 0s to 168h; default 1h.
	// +optional
	// +default="1h0m0s"
	// +kubebuilder:default="1h0m0s"
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]+([.][0-9]+)?(us|ms|s|m|h))+$') && duration(self) >= duration('0s') && duration(self) <= duration('168h')",messageExpression="'%s is not a duration from 0s to 168h; write it as 30m or 24h'.format([self])"
	TTL metav1.Duration `json:"ttl,omitempty,omitzero"`
}

// DrillSuite names a list of faults that comes with the operator. docs/drills.md describes what each shows and needs.
//
// +kubebuilder:validation:Enum=pull-the-plug;network;node;clock-and-cpu;rolling-upgrade-under-load;api-outage;cascade;kill-mid-sweep;kill-in-auction;overnight
type DrillSuite string

const (
	// SuitePullThePlug is the published test: a server is killed under load.
	SuitePullThePlug DrillSuite = "pull-the-plug"
	// SuiteNetwork is partitions, delay, loss, duplicates, corruption and a narrow link between the copies.
	SuiteNetwork DrillSuite = "network"
	// SuiteNode is whole machines: power off, network link down, all pods of one killed.
	SuiteNode DrillSuite = "node"
	// SuiteClockAndCPU is clocks that jump and machines that are busy.
	SuiteClockAndCPU DrillSuite = "clock-and-cpu"
	// SuiteRollingUpgrade is every planned change while orders flow.
	SuiteRollingUpgrade DrillSuite = "rolling-upgrade-under-load"
	// SuiteAPIOutage is a grid without its API server.
	SuiteAPIOutage DrillSuite = "api-outage"
	// SuiteCascade breaks copies until redundancy is gone.
	SuiteCascade DrillSuite = "cascade"
	// SuiteKillMidSweep kills the primary of a grid that matches while orders sweep its books.
	SuiteKillMidSweep DrillSuite = "kill-mid-sweep"
	// SuiteKillInAuction kills it while books collect orders for an auction.
	SuiteKillInAuction DrillSuite = "kill-in-auction"
	// SuiteOvernight is all suites of grids that store, in an order drawn from the seed.
	SuiteOvernight DrillSuite = "overnight"
)

// DrillOrder is the order in which faults are injected.
//
// +kubebuilder:validation:Enum=Listed;Random
type DrillOrder string

const (
	// OrderListed is the order of the list.
	OrderListed DrillOrder = "Listed"
	// OrderRandom is drawn from the seed, anew in each repetition.
	OrderRandom DrillOrder = "Random"
)

// UnsupportedPolicy is how faults are handled that no provider supports.
//
// +kubebuilder:validation:Enum=Refuse;Skip
type UnsupportedPolicy string

const (
	// UnsupportedRefuse lets the drill wait until everything can be carried out.
	UnsupportedRefuse UnsupportedPolicy = "Refuse"
	// UnsupportedSkip leaves them out.
	UnsupportedSkip UnsupportedPolicy = "Skip"
)

// DrillState is the desired state of a drill.
//
// +kubebuilder:validation:Enum=Run;Abort
type DrillState string

const (
	// DrillRun lets the drill run.
	DrillRun DrillState = "Run"
	// DrillAbort ends it: every fault is recovered.
	DrillAbort DrillState = "Abort"
)

// DrillTraffic is the orders sent during faults: probes A, B, … in one recorder, each on a fixed schedule, so that
// an outage does not hold up the creation of orders.
type DrillTraffic struct {
	// ratePerProbe is the orders per second each probe creates. 1 to 100000. Default: the suite's; 1000 for faults.
	// +optional
	// +kubebuilder:validation:XValidation:rule="self >= 1 && self <= 100000",messageExpression="'%s is out of range; allowed are 1 to 100000 orders per second'.format([self])"
	RatePerProbe *int32 `json:"ratePerProbe,omitempty"`

	// probes is their number. 1 to 26; default 2.
	// +optional
	// +default=2
	// +kubebuilder:default=2
	// +kubebuilder:validation:XValidation:rule="self >= 1 && self <= 26",messageExpression="'%s is out of range; allowed are 1 to 26'.format([self])"
	Probes int32 `json:"probes,omitempty"`

	// sessions is the number of client sessions each probe has open to each partition it writes to. 1 to 64; default 2.
	// +optional
	// +default=2
	// +kubebuilder:default=2
	// +kubebuilder:validation:XValidation:rule="self >= 1 && self <= 64",messageExpression="'%s is out of range; allowed are 1 to 64'.format([self])"
	Sessions int32 `json:"sessions,omitempty"`

	// reads is the rate of confirmed reads per second sent to every grid node, primary or not: a node that wrongly
	// believes to be primary answers one. 0 to 1000; default 50.
	// +optional
	// +default=50
	// +kubebuilder:default=50
	// +kubebuilder:validation:XValidation:rule="self >= 0 && self <= 1000",messageExpression="'%s is out of range; allowed are 0 to 1000'.format([self])"
	Reads *int32 `json:"reads,omitempty"`

	// requestTimeout is after how long an order without an answer counts as unknown. 100ms to 10m; default 30s.
	// +optional
	// +default="30s"
	// +kubebuilder:default="30s"
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]+([.][0-9]+)?(us|ms|s|m|h))+$') && duration(self) >= duration('100ms') && duration(self) <= duration('10m')",messageExpression="'%s is not a duration from 100ms to 10m; write it as 20ms or 1.5s'.format([self])"
	RequestTimeout metav1.Duration `json:"requestTimeout,omitempty,omitzero"`

	// placement selects the Kubernetes nodes for the recorder. It avoids the nodes of the grid where possible.
	// +optional
	Placement *ProbePlacement `json:"placement,omitempty"`

	// image of the recorder. Default: the image of the probe that the operator was installed with.
	// +optional
	// +kubebuilder:validation:MaxLength=512
	Image string `json:"image,omitempty"`

	// imagePullPolicy of the recorder's container. Default: as Kubernetes does by tag.
	// +optional
	// +kubebuilder:validation:Enum=Always;Never;IfNotPresent
	ImagePullPolicy corev1.PullPolicy `json:"imagePullPolicy,omitempty"`

	// resources of the recorder's container.
	// +optional
	Resources *corev1.ResourceRequirements `json:"resources,omitempty"`

	// announce has the recorder tell the clients of a stream gateway, and their consoles, once a second how far the drill is.
	// Default: they are not told.
	// +optional
	Announce *DrillAnnouncement `json:"announce,omitempty"`
}

// DrillAnnouncement is the stream gateway whose clients are told of a drill: topic user.drills. and the name of the drill,
// with hyphens in place of dots. A gateway that cannot be reached changes nothing for the drill.
type DrillAnnouncement struct {
	// address is host:port of a listener of protocol WebSocket with TLS, such as desk-gateway:7441. Its certificate has to be
	// valid for the host.
	// +required
	// +kubebuilder:validation:MaxLength=261
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9.]*[a-z0-9])?:[1-9][0-9]{0,4}$')",messageExpression="'%s is not host:port; write it as desk-gateway:7441'.format([self])"
	Address string `json:"address"`

	// secretName names a Secret of the namespace. Its key token is the token of a client of the gateway that may publish to
	// user.drills.>, its key ca.crt has the authorities of the gateway's certificate.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	SecretName string `json:"secretName"`
}

// DrillSteadyState is the expectations. Lost, repeated and reordered orders are always judged; a limit that
// is missed makes the verdict Missed.
type DrillSteadyState struct {
	// outage is the longest time any client session may be without an acknowledgement around a fault. 1ms to 1h.
	// Default: the suite's; not judged for faults.
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]+([.][0-9]+)?(us|ms|s|m|h))+$') && duration(self) >= duration('1ms') && duration(self) <= duration('1h')",messageExpression="'%s is not a duration from 1ms to 1h; write it as 20ms or 1.5s'.format([self])"
	Outage *metav1.Duration `json:"outage,omitempty"`

	// p99 is the highest 99th percentile of latency, from the creation of an order to its acknowledgement, before and
	// after each fault. 1us to 1h. Default: not judged.
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]+([.][0-9]+)?(us|ms|s|m|h))+$') && duration(self) >= duration('1us') && duration(self) <= duration('1h')",messageExpression="'%s is not a duration from 1us to 1h; write it as 20ms or 1.5s'.format([self])"
	P99 *metav1.Duration `json:"p99,omitempty"`

	// redundantWithin is the longest time until every copy is in sync: before a fault, or the drill ends as
	// Failed; and after it. 1s to 1h; default 2m.
	// +optional
	// +default="2m0s"
	// +kubebuilder:default="2m0s"
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]+([.][0-9]+)?(us|ms|s|m|h))+$') && duration(self) >= duration('1s') && duration(self) <= duration('1h')",messageExpression="'%s is not a duration from 1s to 1h; write it as 20ms or 1.5s'.format([self])"
	RedundantWithin metav1.Duration `json:"redundantWithin,omitempty,omitzero"`

	// failedOrders controls whether orders may be refused or time out around a fault: None or Allowed. Default: the suite's;
	// None for faults.
	// +optional
	FailedOrders FailedOrders `json:"failedOrders,omitempty"`

	// calm is how long the grid is undisturbed before each fault; the latency before is measured then. 1s to 1h;
	// default 5s.
	// +optional
	// +default="5s"
	// +kubebuilder:default="5s"
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]+([.][0-9]+)?(us|ms|s|m|h))+$') && duration(self) >= duration('1s') && duration(self) <= duration('1h')",messageExpression="'%s is not a duration from 1s to 1h; write it as 20ms or 1.5s'.format([self])"
	Calm metav1.Duration `json:"calm,omitempty,omitzero"`

	// settle is how long the grid is observed once it is redundant again; the latency after is measured then. 0s to
	// 1h; default 3s.
	// +optional
	// +default="3s"
	// +kubebuilder:default="3s"
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]+([.][0-9]+)?(us|ms|s|m|h))+$') && duration(self) >= duration('0s') && duration(self) <= duration('1h')",messageExpression="'%s is not a duration from 0s to 1h; write it as 20ms or 1.5s'.format([self])"
	Settle metav1.Duration `json:"settle,omitempty,omitzero"`
}

// FailedOrders selects whether orders may fail. A failed order is not lost: it was refused, or not answered.
//
// +kubebuilder:validation:Enum=None;Allowed
type FailedOrders string

const (
	// FailedOrdersNone requires every order to be acknowledged in the end.
	FailedOrdersNone FailedOrders = "None"
	// FailedOrdersAllowed lets orders be refused or time out.
	FailedOrdersAllowed FailedOrders = "Allowed"
)

// FailoverDrill injects faults into one OrderGrid while orders flow, and certifies what was lost.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=fd,categories=ordergrid-all
// +kubebuilder:printcolumn:name="Grid",type=string,JSONPath=".spec.gridRef.name"
// +kubebuilder:printcolumn:name="Suite",type=string,JSONPath=".spec.suite"
// +kubebuilder:printcolumn:name="State",type=string,JSONPath=".status.conditions[?(@.type=='Running')].reason"
// +kubebuilder:printcolumn:name="Steps",type=string,JSONPath=".status.progress"
// +kubebuilder:printcolumn:name="Verdict",type=string,JSONPath=".status.certificate.verdict"
// +kubebuilder:printcolumn:name="Lost",type=integer,JSONPath=".status.certificate.lost"
// +kubebuilder:printcolumn:name="Outage",type=string,JSONPath=".status.certificate.outageMax"
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=".metadata.creationTimestamp"
// +kubebuilder:printcolumn:name="Seed",type=integer,priority=1,JSONPath=".status.seed"
// +kubebuilder:printcolumn:name="Certificate",type=string,priority=1,JSONPath=".status.certificate.configMap"
// +kubebuilder:printcolumn:name="Why",type=string,priority=1,JSONPath=".status.certificate.reason"
// +kubebuilder:validation:XValidation:rule="self.metadata.name.matches('^[a-z]([-a-z0-9]{0,46}[a-z0-9])?$')",messageExpression="'metadata.name: %s cannot begin the names of the recorder and of the faults; use at most 48 lowercase letters, digits and hyphens, beginning with a letter and not ending with a hyphen'.format([self.metadata.name])"
type FailoverDrill struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the faults and the expectations.
	// +required
	Spec FailoverDrillSpec `json:"spec"`

	// status is what the operator observes.
	// +optional
	Status FailoverDrillStatus `json:"status,omitempty,omitzero"`
}

// FailoverDrillList is a list of FailoverDrills.
//
// +kubebuilder:object:root=true
type FailoverDrillList struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []FailoverDrill `json:"items"`
}
