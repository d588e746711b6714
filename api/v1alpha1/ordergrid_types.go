package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// OrderGridSpec is what a user asks for.
//
// +kubebuilder:validation:XValidation:fieldPath=".minInSync",rule="self.minInSync <= self.replicas",messageExpression="'spec.minInSync: ' + string(self.minInSync) + ' is more than spec.replicas ' + string(self.replicas) + ', so no order could ever be accepted; set minInSync to at most ' + string(self.replicas)"
// +kubebuilder:validation:XValidation:fieldPath=".resources",rule="!has(self.resources) || !has(self.resources.limits) || !('memory' in self.resources.limits) || quantity(string(self.resources.limits['memory'])).compareTo(quantity(string(self.memory)).add(quantity('128Mi'))) >= 0",messageExpression="'spec.resources.limits.memory: ' + string(self.resources.limits['memory']) + ' leaves less than 128Mi beside the ' + string(self.memory) + ' of spec.memory, and the node would be killed when it is full; raise the limit, lower spec.memory, or leave the limit out'"
type OrderGridSpec struct {
	// shards is the number of independent groups of grid nodes; orders are spread over them.
	// Shards may be added later; the number may not fall.
	// +optional
	// +default=1
	// +kubebuilder:default=1
	// +kubebuilder:validation:XValidation:rule="self >= 1 && self <= 256",messageExpression="'spec.shards: ' + string(self) + ' is out of range; allowed are 1 to 256'"
	// +kubebuilder:validation:XValidation:rule="self >= oldSelf",messageExpression="'spec.shards: ' + string(self) + ' is fewer than ' + string(oldSelf) + ': a shard that holds orders cannot be removed; keep at least ' + string(oldSelf) + ', or create a smaller OrderGrid and move the traffic'"
	Shards int32 `json:"shards,omitempty"`

	// replicas is the number of copies of every order, the primary's included, each on a grid node of its own.
	// +optional
	// +default=2
	// +kubebuilder:default=2
	// +kubebuilder:validation:XValidation:rule="self >= 1 && self <= 3",messageExpression="'spec.replicas: ' + string(self) + ' is out of range; allowed are 1 (no copy), 2 and 3'"
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",messageExpression="'spec.replicas: ' + string(self) + ' differs from ' + string(oldSelf) + ': the number of copies of a running grid cannot be changed; keep ' + string(oldSelf) + ', or create a second OrderGrid with ' + string(self) + ' and move the traffic'"
	Replicas int32 `json:"replicas,omitempty"`

	// minInSync is the number of copies below which orders are refused. 1 keeps serving from the last copy.
	// +optional
	// +default=1
	// +kubebuilder:default=1
	// +kubebuilder:validation:XValidation:rule="self >= 1",messageExpression="'spec.minInSync: ' + string(self) + ' is out of range; allowed are 1 to spec.replicas'"
	MinInSync int32 `json:"minInSync,omitempty"`

	// partitionBy is the field of an order whose hash picks the partition.
	// +optional
	// +default="ClOrdID"
	// +kubebuilder:default=ClOrdID
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",messageExpression="'spec.partitionBy: ' + self + ' differs from ' + oldSelf + ': orders already stored would no longer be found; keep ' + oldSelf"
	PartitionBy PartitionKey `json:"partitionBy,omitempty"`

	// memory is what each grid node may use for orders; a full node refuses orders, it drops none.
	// An order takes its FIX message plus about 96 bytes.
	// +optional
	// +kubebuilder:default="1Gi"
	// +kubebuilder:validation:XValidation:rule="!isQuantity(string(self)) || quantity(string(self)).compareTo(quantity('64Mi')) >= 0",messageExpression="'spec.memory: ' + string(self) + ' is too little for a grid node; give at least 64Mi'"
	Memory resource.Quantity `json:"memory,omitempty"`

	// writeBehind is where committed orders go next.
	// +optional
	// +kubebuilder:default={sink: "Hold"}
	WriteBehind WriteBehindSpec `json:"writeBehind,omitempty,omitzero"`

	// timing of failure detection. The defaults fit a data-centre network.
	// +optional
	// +kubebuilder:default={}
	Timing TimingSpec `json:"timing,omitempty,omitzero"`

	// placement says on which Kubernetes nodes grid nodes run.
	// +optional
	// +kubebuilder:default={}
	Placement GridPlacement `json:"placement,omitempty,omitzero"`

	// image of the grid node. Default: the one the operator was installed with.
	// +optional
	// +kubebuilder:validation:MaxLength=512
	Image string `json:"image,omitempty"`

	// imagePullPolicy of the grid node's container. Default: as Kubernetes does by tag.
	// +optional
	// +kubebuilder:validation:Enum=Always;Never;IfNotPresent
	ImagePullPolicy corev1.PullPolicy `json:"imagePullPolicy,omitempty"`

	// resources of the grid node's container. The memory request and limit default to spec.memory plus a quarter,
	// at least 256Mi more; there is no default CPU limit, because throttling shows up as latency.
	// +optional
	Resources *corev1.ResourceRequirements `json:"resources,omitempty"`

	// podTemplate is laid over the pod the operator builds, as a strategic merge patch: the form of a
	// v1 PodTemplateSpec. What would break the grid is refused with condition Stalled, reason PodTemplateInvalid.
	// +optional
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:validation:Type=object
	// +kubebuilder:pruning:PreserveUnknownFields
	PodTemplate *runtime.RawExtension `json:"podTemplate,omitempty"`
}

// PartitionKey names a field of an order.
//
// +kubebuilder:validation:Enum=ClOrdID
type PartitionKey string

// PartitionByClOrdID spreads orders by FIX tag 11.
const PartitionByClOrdID PartitionKey = "ClOrdID"

// WriteBehindSpec configures the write-behind queue's consumer.
//
// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="spec.writeBehind: changed; the sink and its volume belong to the running pods and cannot be exchanged; keep it as it was, or create a second OrderGrid and move the traffic"
// +kubebuilder:validation:XValidation:fieldPath=".file",rule="self.sink == 'File' || !has(self.file)",messageExpression="'spec.writeBehind.file: set although spec.writeBehind.sink is ' + self.sink + '; set sink to File, or remove file'"
type WriteBehindSpec struct {
	// sink is Hold (orders stay in memory only) or File (appended to a file on the primary's node, fsync per batch).
	// +optional
	// +default="Hold"
	// +kubebuilder:default=Hold
	Sink SinkType `json:"sink,omitempty"`

	// file configures the sink File.
	// +optional
	File *FileSinkSpec `json:"file,omitempty"`
}

// SinkType names a write-behind sink.
//
// +kubebuilder:validation:Enum=Hold;File
type SinkType string

const (
	// SinkHold keeps committed orders in memory, as the published system did.
	SinkHold SinkType = "Hold"
	// SinkFile appends one line per log entry to a file.
	SinkFile SinkType = "File"
)

// FileSinkSpec is the volume the file sink writes to, one per pod.
//
// +kubebuilder:validation:XValidation:fieldPath=".storageClassName",rule="self.volume == 'PersistentVolumeClaim' || !has(self.storageClassName)",messageExpression="'spec.writeBehind.file.storageClassName: ' + self.storageClassName + ' has no effect on volume ' + self.volume + '; set volume to PersistentVolumeClaim, or remove storageClassName'"
// +kubebuilder:validation:XValidation:fieldPath=".whenDeleted",rule="self.volume == 'PersistentVolumeClaim' || !has(self.whenDeleted)",messageExpression="'spec.writeBehind.file.whenDeleted: ' + self.whenDeleted + ' has no effect on volume ' + self.volume + ', which always goes with its pod; set volume to PersistentVolumeClaim, or remove whenDeleted'"
type FileSinkSpec struct {
	// volume is EmptyDir (lost with the pod) or PersistentVolumeClaim.
	// +optional
	// +default="EmptyDir"
	// +kubebuilder:default=EmptyDir
	Volume SinkVolume `json:"volume,omitempty"`

	// size of the volume; of an EmptyDir it is the limit at which the kubelet evicts the pod.
	// +optional
	// +kubebuilder:default="1Gi"
	// +kubebuilder:validation:XValidation:rule="!isQuantity(string(self)) || quantity(string(self)).compareTo(quantity('16Mi')) >= 0",messageExpression="'spec.writeBehind.file.size: ' + string(self) + ' is too little; give at least 16Mi'"
	Size resource.Quantity `json:"size,omitempty"`

	// storageClassName of the claim. Default: the cluster's default class.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	StorageClassName *string `json:"storageClassName,omitempty"`

	// whenDeleted says what happens to the claims when the OrderGrid is deleted: Retain (default) or Delete.
	// +optional
	WhenDeleted ClaimPolicy `json:"whenDeleted,omitempty"`
}

// SinkVolume is a kind of volume for the file sink.
//
// +kubebuilder:validation:Enum=EmptyDir;PersistentVolumeClaim
type SinkVolume string

const (
	// SinkVolumeEmptyDir is a directory that goes with its pod.
	SinkVolumeEmptyDir SinkVolume = "EmptyDir"
	// SinkVolumeClaim is a PersistentVolumeClaim per pod.
	SinkVolumeClaim SinkVolume = "PersistentVolumeClaim"
)

// ClaimPolicy says whether a claim outlives its grid.
//
// +kubebuilder:validation:Enum=Retain;Delete
type ClaimPolicy string

const (
	// ClaimRetain keeps the claims.
	ClaimRetain ClaimPolicy = "Retain"
	// ClaimDelete deletes the claims with the grid.
	ClaimDelete ClaimPolicy = "Delete"
)

// TimingSpec are the intervals of failure detection. Durations are written as in "20ms" or "1.5s".
//
// +kubebuilder:validation:XValidation:fieldPath=".lease",rule="duration(self.lease) < duration(self.grace)",messageExpression="'spec.timing.lease: ' + self.lease + ' is not shorter than spec.timing.grace ' + self.grace + ', so a backup could take over while the old primary still believes in its lease; make lease shorter or grace longer'"
// +kubebuilder:validation:XValidation:fieldPath=".beaconInterval",rule="duration(self.beaconInterval) + duration(self.beaconInterval) + duration(self.beaconInterval) <= duration(self.lease)",messageExpression="'spec.timing.beaconInterval: ' + self.beaconInterval + ' fits less than three times into spec.timing.lease ' + self.lease + ', so one lost beacon would cost a copy; make beaconInterval shorter or lease longer'"
type TimingSpec struct {
	// beaconInterval is how often primary and backups show each other that they live. 1ms to 1s.
	// +optional
	// +default="20ms"
	// +kubebuilder:default="20ms"
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('1ms') && duration(self) <= duration('1s')",messageExpression="'spec.timing.beaconInterval: ' + self + ' is out of range; allowed are 1ms to 1s'"
	BeaconInterval *metav1.Duration `json:"beaconInterval,omitempty"`

	// lease is how long a primary waits for a backup's answer before it drops the backup, and how long it may
	// answer leased reads. At least three beacon intervals, at most 10s.
	// +optional
	// +default="200ms"
	// +kubebuilder:default="200ms"
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('3ms') && duration(self) <= duration('10s')",messageExpression="'spec.timing.lease: ' + self + ' is out of range; allowed are 3ms to 10s'"
	Lease *metav1.Duration `json:"lease,omitempty"`

	// grace is how long a backup waits for a silent primary before it takes over. Longer than lease, at most 30s.
	// +optional
	// +default="300ms"
	// +kubebuilder:default="300ms"
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('4ms') && duration(self) <= duration('30s')",messageExpression="'spec.timing.grace: ' + self + ' is out of range; allowed are 4ms to 30s'"
	Grace *metav1.Duration `json:"grace,omitempty"`

	// claimDelay is how long a pod leaves a partition that never had a primary to the pod that should have it.
	// 1s to 10m.
	// +optional
	// +default="10s"
	// +kubebuilder:default="10s"
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('1s') && duration(self) <= duration('10m')",messageExpression="'spec.timing.claimDelay: ' + self + ' is out of range; allowed are 1s to 10m'"
	ClaimDelay *metav1.Duration `json:"claimDelay,omitempty"`

	// drainTimeout is how long a pod that is asked to stop finishes what it has accepted. 1s to 10m.
	// +optional
	// +default="20s"
	// +kubebuilder:default="20s"
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('1s') && duration(self) <= duration('10m')",messageExpression="'spec.timing.drainTimeout: ' + self + ' is out of range; allowed are 1s to 10m'"
	DrainTimeout *metav1.Duration `json:"drainTimeout,omitempty"`
}

// GridPlacement says where grid nodes run.
type GridPlacement struct {
	// nodeSelector: labels a Kubernetes node must have.
	// +optional
	NodeSelector map[string]string `json:"nodeSelector,omitempty"`

	// tolerations of the pods.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	Tolerations []corev1.Toleration `json:"tolerations,omitempty"`

	// spread says whether the copies of a shard must run on different Kubernetes nodes (Required), or should
	// (Preferred).
	// +optional
	// +default="Required"
	// +kubebuilder:default=Required
	Spread SpreadPolicy `json:"spread,omitempty"`
}

// SpreadPolicy says how strictly copies are kept apart.
//
// +kubebuilder:validation:Enum=Required;Preferred
type SpreadPolicy string

const (
	// SpreadRequired never runs two copies on one Kubernetes node.
	SpreadRequired SpreadPolicy = "Required"
	// SpreadPreferred runs two copies on one Kubernetes node rather than not at all.
	SpreadPreferred SpreadPolicy = "Preferred"
)

// OrderGridStatus is what the operator observes. It is never read back as fact.
type OrderGridStatus struct {
	// observedGeneration is the generation of spec this status was made from.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// conditions: Available, Redundant, Progressing, Stalled.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// shards is the number of shards whose objects exist.
	// +optional
	Shards int32 `json:"shards,omitempty"`

	// readyShards is the number of shards all of whose pods are ready.
	// +optional
	ReadyShards int32 `json:"readyShards,omitempty"`

	// endpoint is where a client starts: host:port of the grid's client Service.
	// +optional
	// +kubebuilder:validation:MaxLength=320
	Endpoint string `json:"endpoint,omitempty"`

	// partitions mirrors the GridPartitions, in order.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=4096
	Partitions []PartitionSummary `json:"partitions,omitempty"`
}

// PartitionSummary is one GridPartition at a glance.
type PartitionSummary struct {
	// name of the GridPartition.
	// +required
	// +kubebuilder:validation:MaxLength=63
	Name string `json:"name"`

	// primary is the pod that is primary; empty while nobody has claimed the partition.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	Primary string `json:"primary,omitempty"`

	// epoch of the configuration.
	// +optional
	Epoch int64 `json:"epoch,omitempty"`

	// inSync is the number of complete copies.
	// +optional
	InSync int32 `json:"inSync,omitempty"`
}

// OrderGrid is a grid of order stores: shards of replicated, in-memory, totally ordered logs of FIX orders.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=og,categories=ordergrid
// +kubebuilder:printcolumn:name="Shards",type=integer,JSONPath=".spec.shards"
// +kubebuilder:printcolumn:name="Ready",type=integer,JSONPath=".status.readyShards"
// +kubebuilder:printcolumn:name="Replicas",type=integer,JSONPath=".spec.replicas"
// +kubebuilder:printcolumn:name="Available",type=string,JSONPath=".status.conditions[?(@.type=='Available')].status"
// +kubebuilder:printcolumn:name="Redundant",type=string,JSONPath=".status.conditions[?(@.type=='Redundant')].status"
// +kubebuilder:printcolumn:name="Endpoint",type=string,JSONPath=".status.endpoint"
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=".metadata.creationTimestamp"
// +kubebuilder:printcolumn:name="Memory",type=string,priority=1,JSONPath=".spec.memory"
// +kubebuilder:printcolumn:name="Sink",type=string,priority=1,JSONPath=".spec.writeBehind.sink"
// +kubebuilder:printcolumn:name="Message",type=string,priority=1,JSONPath=".status.conditions[?(@.type=='Available')].message"
// +kubebuilder:validation:XValidation:rule="self.metadata.name.matches('^[a-z]([-a-z0-9]{0,38}[a-z0-9])?$')",messageExpression="'metadata.name: ' + self.metadata.name + ' cannot begin the names of the pods and Services of its shards; use at most 40 lowercase letters, digits and hyphens, beginning with a letter and not ending with a hyphen'"
type OrderGrid struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is what is asked for; everything has a default.
	// +optional
	// +kubebuilder:default={}
	Spec OrderGridSpec `json:"spec,omitempty"`

	// status is what the operator observes.
	// +optional
	Status OrderGridStatus `json:"status,omitempty,omitzero"`
}

// OrderGridList is a list of OrderGrids.
//
// +kubebuilder:object:root=true
type OrderGridList struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []OrderGrid `json:"items"`
}
