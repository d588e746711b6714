package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// OrderGridSpec is what a user asks for.
//
// +kubebuilder:validation:XValidation:fieldPath=".minInSync",rule="self.replicas < 1 || self.minInSync <= self.replicas",messageExpression="'%d is more than spec.replicas %d, so no order could ever be accepted; set minInSync to at most %d'.format([self.minInSync, self.replicas, self.replicas])"
// +kubebuilder:validation:XValidation:fieldPath=".replicas",rule="self.replicas != 1 || oldSelf.replicas == 1 || (has(self.singleCopy) && self.singleCopy == 'Accept')",messageExpression="'1 would leave one copy of every order where there are %d now, and the orders of a pod that ends would be lost with it; keep at least 2, or set spec.singleCopy to Accept with the same change'.format([oldSelf.replicas])"
// +kubebuilder:validation:XValidation:fieldPath=".resources",rule="!has(self.resources) || !has(self.resources.limits) || !('memory' in self.resources.limits) || quantity(string(self.resources.limits['memory'])).compareTo(quantity(string(self.memory)).add(quantity('256Mi'))) >= 0",messageExpression="'limits.memory: %s leaves less than 256Mi beside the %s of spec.memory, and the node would be killed when it is full; raise the limit, lower spec.memory, or leave the limit out'.format([self.resources.limits['memory'], self.memory])"
// +kubebuilder:validation:XValidation:fieldPath=".retention.policy",rule="!has(self.retention) || !has(self.retention.policy) || self.retention.policy != 'FreeDownstream' || (has(self.writeBehind) && self.writeBehind.sink == 'File' && has(self.writeBehind.file) && has(self.writeBehind.file.volume) && self.writeBehind.file.volume == 'PersistentVolumeClaim')",message="FreeDownstream needs a sink that outlives the pods, or what is freed would be lost with them; set spec.writeBehind.sink to File and spec.writeBehind.file.volume to PersistentVolumeClaim, or keep policy KeepAll"
// +kubebuilder:validation:XValidation:fieldPath=".prefault",rule="!has(self.prefault) || !isQuantity(string(self.prefault)) || !isQuantity(string(self.memory)) || quantity(string(self.prefault)).compareTo(quantity(string(self.memory))) <= 0",messageExpression="'%s is more than the %s of spec.memory; give at most that, or 0'.format([self.prefault, self.memory])"
// +kubebuilder:validation:XValidation:fieldPath=".resources",rule="!has(self.placement.cpu) || self.placement.cpu.policy != 'Exclusive' || !has(self.resources) || !(has(self.resources.requests) && 'cpu' in self.resources.requests || has(self.resources.limits) && 'cpu' in self.resources.limits)",message="cpu is given twice: with spec.placement.cpu.policy Exclusive the request and the limit are spec.placement.cpu.cores; remove cpu from spec.resources, or set policy to Shared"
// +kubebuilder:validation:XValidation:fieldPath=".resources",rule="!has(self.placement.cpu) || self.placement.cpu.policy != 'Exclusive' || !has(self.resources) || !has(self.resources.requests) || !has(self.resources.limits) || !('memory' in self.resources.requests) || !('memory' in self.resources.limits) || quantity(string(self.resources.requests['memory'])).compareTo(quantity(string(self.resources.limits['memory']))) == 0",messageExpression="'requests.memory: %s is not limits.memory %s, but only a pod whose requests are its limits gets processors of its own (spec.placement.cpu.policy Exclusive); give both the same, or one of them'.format([self.resources.requests['memory'], self.resources.limits['memory']])"
// +kubebuilder:validation:XValidation:fieldPath=".fabric",rule="has(self.fabric) == has(oldSelf.fabric) && (!has(self.fabric) || self.fabric.network == oldSelf.fabric.network)",message="changed; the copies of a running grid reach each other by one network; keep it as it was, or create a second OrderGrid and move the traffic"
// +kubebuilder:validation:XValidation:fieldPath=".shards",rule="self.shards >= oldSelf.shards || has(self.scaleIn.policy) && self.scaleIn.policy == 'DiscardOrders' || self.writeBehind.sink == 'File' && has(self.writeBehind.file) && has(self.writeBehind.file.volume) && self.writeBehind.file.volume == 'PersistentVolumeClaim' && (!has(self.writeBehind.file.whenDeleted) || self.writeBehind.file.whenDeleted == 'Retain')",messageExpression="'%d is fewer than %d, and what the removed shards hold would be lost: %s; keep %d, or give those orders up with spec.scaleIn.policy DiscardOrders'.format([self.shards, oldSelf.shards, self.writeBehind.sink != 'File' ? 'spec.writeBehind.sink Hold has them in memory only' : has(self.writeBehind.file) && has(self.writeBehind.file.volume) && self.writeBehind.file.volume == 'PersistentVolumeClaim' ? 'spec.writeBehind.file.whenDeleted Delete takes the files of a shard with it' : 'spec.writeBehind.file.volume EmptyDir goes with the pods', oldSelf.shards])"
// +kubebuilder:validation:XValidation:optionalOldSelf=true,fieldPath=".security",rule="self.?security.?tls.hasValue() || self.?security.?insecure.orValue('Refuse') == 'Accept' || oldSelf.hasValue() && !oldSelf.?security.?tls.hasValue() && oldSelf.?security.?insecure.orValue('Refuse') != 'Accept'",message="without spec.security.tls every program that reaches the data port may submit, read and replace orders, and no client is asked who it is; set tls: {} (the operator then keeps the certificates), or write insecure: Accept where that is meant, as on a laptop or in a lab"
// +kubebuilder:validation:XValidation:fieldPath=".security",rule="self.?security.?tls.hasValue() || !oldSelf.?security.?tls.hasValue()",message="tls was taken from a running grid, whose pods dial each other with it; put it back, and set insecure: Accept beside it to let clients in without, or create a second OrderGrid without it and move the traffic"
// +kubebuilder:validation:XValidation:fieldPath=".security.networkPolicy",rule="!self.?security.?tls.hasValue() || self.?security.?insecure.orValue('Refuse') == 'Accept' || self.?security.?networkPolicy.?type.hasValue() || oldSelf.?security.?tls.hasValue() && oldSelf.?security.?insecure.orValue('Refuse') != 'Accept'",message="type is missing: the default changes from None to Restricted when clients need TLS, which would cut off those outside the grid's namespace; set type to Restricted with the clients that may connect, or to None, with the same change"
// +kubebuilder:validation:XValidation:fieldPath=".externalAccess",rule="!has(self.externalAccess) || self.?security.?tls.hasValue()",message="needs spec.security.tls: orders and who may send them would travel outside the cluster in plain text; set tls, or remove externalAccess"
// +kubebuilder:validation:XValidation:fieldPath=".externalAccess",rule="!has(self.externalAccess) || self.shards <= 64",messageExpression="'%d shards are too many: the addresses of all pods stand in the record of each shard; give at most 64, or remove externalAccess'.format([self.shards])"
type OrderGridSpec struct {
	// shards is the number of independent groups of grid nodes; orders are spread over them. 1 to 256, default 1.
	// It may change while the grid runs. A shard is removed only once its orders are downstream, see scaleIn.
	// +optional
	// +default=1
	// +kubebuilder:default=1
	// +kubebuilder:validation:XValidation:rule="self >= 1 && self <= 256",messageExpression="'%s is out of range; allowed are 1 to 256'.format([self])"
	Shards int32 `json:"shards,omitempty"`

	// replicas is the number of copies of every order, the primary's included, each on a grid node of its own.
	// 1 to 3, default 2. It may change while orders flow; going down to 1 needs singleCopy Accept. The partitions of a
	// shard stay as many as replicas was when the grid was created.
	// +optional
	// +default=2
	// +kubebuilder:default=2
	// +kubebuilder:validation:XValidation:rule="self >= 1 && self <= 3",messageExpression="'%s is out of range; allowed are 1 (no copy), 2 and 3'.format([self])"
	Replicas int32 `json:"replicas,omitempty"`

	// singleCopy says whether a running grid may be taken down to replicas: 1, after which the orders of a pod that ends
	// are lost with it: Refuse (default) or Accept. A grid created with replicas: 1 needs no word.
	// +optional
	// +default="Refuse"
	// +kubebuilder:default=Refuse
	SingleCopy SingleCopyPolicy `json:"singleCopy,omitempty"`

	// minInSync is the number of copies below which orders are refused. 1, the default, keeps serving from the last
	// copy.
	// +optional
	// +default=1
	// +kubebuilder:default=1
	// +kubebuilder:validation:XValidation:rule="self >= 1",messageExpression="'%s is out of range; allowed are 1 to spec.replicas'.format([self])"
	MinInSync int32 `json:"minInSync,omitempty"`

	// partitionBy is the field of an order whose hash picks the partition. Default ClOrdID, FIX tag 11.
	// +optional
	// +default="ClOrdID"
	// +kubebuilder:default=ClOrdID
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",messageExpression="'%s differs from %s: orders already stored would no longer be found; keep %s'.format([self, oldSelf, oldSelf])"
	PartitionBy PartitionKey `json:"partitionBy,omitempty"`

	// memory is what each grid node may use for orders; a full node refuses orders, it drops none.
	// An order takes its FIX message plus about 96 bytes. At least 64Mi, default 1Gi.
	// +optional
	// +kubebuilder:default="1Gi"
	// +kubebuilder:validation:XValidation:rule="isQuantity(string(self))",messageExpression="'%s is not an amount; write it as 512Mi or 2Gi'.format([self])"
	// +kubebuilder:validation:XValidation:rule="!isQuantity(string(self)) || quantity(string(self)).compareTo(quantity('64Mi')) >= 0",messageExpression="'%s is too little for a grid node; give at least 64Mi'.format([self])"
	Memory resource.Quantity `json:"memory,omitempty,omitzero"`

	// prefault is how much of memory the kernel has to provide before a grid node serves, so that no order waits for
	// it. It takes up to 2 s a GiB at the start of a pod where the machine is virtual. 0 to memory; default 256Mi, or
	// memory if that is less, and 0 where the pod requests less than memory.
	// +optional
	// +kubebuilder:validation:XValidation:rule="isQuantity(string(self)) && quantity(string(self)).compareTo(quantity('0')) >= 0",messageExpression="'%s is not an amount; write it as 0, 512Mi or 2Gi'.format([self])"
	Prefault *resource.Quantity `json:"prefault,omitempty"`

	// writeBehind is where committed orders go next.
	// +optional
	// +kubebuilder:default={sink: "Hold"}
	WriteBehind WriteBehindSpec `json:"writeBehind,omitempty,omitzero"`

	// retention says what happens to orders that are downstream when a grid node's memory fills up.
	// +optional
	// +kubebuilder:default={policy: "KeepAll", highWatermarkPercent: 80}
	Retention RetentionSpec `json:"retention,omitempty,omitzero"`

	// timing of failure detection. The defaults fit a data-centre network.
	// +optional
	// +kubebuilder:default={beaconInterval: "20ms", lease: "200ms", grace: "300ms", claimDelay: "10s", handOverDelay: "5s", drainTimeout: "20s"}
	Timing TimingSpec `json:"timing,omitempty,omitzero"`

	// replication bounds what copying costs a grid node that serves.
	// +optional
	// +kubebuilder:default={learnerRate: "256Mi"}
	Replication ReplicationSpec `json:"replication,omitempty,omitzero"`

	// placement says on which Kubernetes nodes grid nodes run, and what they get of their processors.
	// +optional
	// +kubebuilder:default={spread: "Required", shardSpread: "Preferred"}
	Placement GridPlacement `json:"placement,omitempty,omitzero"`

	// fabric is a second network that orders and their copies travel on. Without it they use the pod network. It cannot be
	// added to a running grid, taken away, or exchanged for another network.
	// +optional
	Fabric *FabricSpec `json:"fabric,omitempty"`

	// scaleIn says when a shard that shards no longer asks for is removed.
	// +optional
	// +kubebuilder:default={policy: "WhenDownstream", keepDrained: "30s"}
	ScaleIn ScaleInSpec `json:"scaleIn,omitempty,omitzero"`

	// updateStrategy says how a change that needs new pods reaches them.
	// +optional
	// +kubebuilder:default={type: "RollingUpdate", maxUnavailableShards: 1, minReady: "10s", progressDeadline: "10m", surge: 1, withoutRoom: "Wait"}
	UpdateStrategy UpdateStrategySpec `json:"updateStrategy,omitempty,omitzero"`

	// nodeFailure says what becomes of a pod whose Kubernetes node has been lost.
	// +optional
	// +kubebuilder:default={policy: "ReplacePods", podReplaceAfter: "30s"}
	NodeFailure NodeFailureSpec `json:"nodeFailure,omitempty,omitzero"`

	// externalAccess lets clients outside the cluster in, with an address for every pod. It needs security.tls. Without it
	// nobody outside is told an address.
	// +optional
	ExternalAccess *ExternalAccessSpec `json:"externalAccess,omitempty"`

	// security says who may talk to the grid, and how. A new grid needs tls, or the word that it does without.
	// +optional
	Security SecuritySpec `json:"security,omitempty,omitzero"`

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
	// v1 PodTemplateSpec. What would break the grid is refused with condition Stalled, reason PodTemplateInvalid; what is
	// more than a restricted pod has, and an administrator does not allow, with reason PodTemplateNotAllowed.
	// +optional
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:validation:Type=object
	// +kubebuilder:pruning:PreserveUnknownFields
	PodTemplate *runtime.RawExtension `json:"podTemplate,omitempty"`
}

// SingleCopyPolicy says whether a running grid may go down to one copy of every order.
//
// +kubebuilder:validation:Enum=Refuse;Accept
type SingleCopyPolicy string

const (
	// SingleCopyRefuse keeps at least two copies.
	SingleCopyRefuse SingleCopyPolicy = "Refuse"
	// SingleCopyAccept lets a pod that ends take its orders with it.
	SingleCopyAccept SingleCopyPolicy = "Accept"
)

// PartitionKey names a field of an order.
//
// +kubebuilder:validation:Enum=ClOrdID
type PartitionKey string

// PartitionByClOrdID spreads orders by FIX tag 11.
const PartitionByClOrdID PartitionKey = "ClOrdID"

// WriteBehindSpec configures the write-behind queue's consumer.
//
// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="changed; the sink and its volume belong to the running pods and cannot be exchanged; keep it as it was, or create a second OrderGrid and move the traffic"
// +kubebuilder:validation:XValidation:fieldPath=".file",rule="self.sink == 'File' || !has(self.file)",messageExpression="'the file sink is configured although spec.writeBehind.sink is %s; set sink to File, or remove file'.format([self.sink])"
type WriteBehindSpec struct {
	// sink is Hold (orders stay in memory only) or File (appended to a file on the primary's node, fsync per batch).
	// Default Hold.
	// +optional
	// +default="Hold"
	// +kubebuilder:default=Hold
	Sink SinkType `json:"sink,omitempty"`

	// file configures the sink File.
	// +optional
	File *FileSinkSpec `json:"file,omitempty"`
}

// RetentionSpec says what happens to orders that are downstream when a grid node's memory fills up.
type RetentionSpec struct {
	// policy is KeepAll (every order stays in memory, a full grid refuses new ones) or FreeDownstream (above the high
	// watermark the oldest orders that the write-behind sink holds are freed). Default KeepAll.
	// +optional
	// +default="KeepAll"
	// +kubebuilder:default=KeepAll
	Policy RetentionPolicy `json:"policy,omitempty"`

	// highWatermarkPercent is the part of spec.memory beyond which FreeDownstream frees, a tenth of spec.memory at a
	// time. 20 to 95, default 80.
	// +optional
	// +default=80
	// +kubebuilder:default=80
	// +kubebuilder:validation:XValidation:rule="self >= 20 && self <= 95",messageExpression="'%s is out of range; allowed are 20 to 95, in percent of spec.memory'.format([self])"
	HighWatermarkPercent int32 `json:"highWatermarkPercent,omitempty"`
}

// RetentionPolicy names what becomes of orders that are downstream.
//
// +kubebuilder:validation:Enum=KeepAll;FreeDownstream
type RetentionPolicy string

const (
	// RetentionKeepAll keeps every order in memory.
	RetentionKeepAll RetentionPolicy = "KeepAll"
	// RetentionFreeDownstream frees what the write-behind sink holds.
	RetentionFreeDownstream RetentionPolicy = "FreeDownstream"
)

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
// +kubebuilder:validation:XValidation:fieldPath=".storageClassName",rule="self.volume == 'PersistentVolumeClaim' || !has(self.storageClassName)",messageExpression="'%s has no effect on volume %s; set volume to PersistentVolumeClaim, or remove storageClassName'.format([self.storageClassName, self.volume])"
// +kubebuilder:validation:XValidation:fieldPath=".whenDeleted",rule="self.volume == 'PersistentVolumeClaim' || !has(self.whenDeleted)",messageExpression="'%s has no effect on volume %s, which always goes with its pod; set volume to PersistentVolumeClaim, or remove whenDeleted'.format([self.whenDeleted, self.volume])"
type FileSinkSpec struct {
	// volume is EmptyDir (the default, lost with the pod) or PersistentVolumeClaim.
	// +optional
	// +default="EmptyDir"
	// +kubebuilder:default=EmptyDir
	Volume SinkVolume `json:"volume,omitempty"`

	// size of the volume; of an EmptyDir it is the limit at which the kubelet evicts the pod. At least 16Mi,
	// default 1Gi.
	// +optional
	// +kubebuilder:default="1Gi"
	// +kubebuilder:validation:XValidation:rule="isQuantity(string(self))",messageExpression="'%s is not an amount; write it as 512Mi or 2Gi'.format([self])"
	// +kubebuilder:validation:XValidation:rule="!isQuantity(string(self)) || quantity(string(self)).compareTo(quantity('16Mi')) >= 0",messageExpression="'%s is too little; give at least 16Mi'.format([self])"
	Size resource.Quantity `json:"size,omitempty,omitzero"`

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

// ReplicationSpec bounds what copying costs a grid node that serves.
type ReplicationSpec struct {
	// learnerRate is how many bytes a second a grid node sends at most to pods that catch up, all of them together. Less
	// disturbs the orders less and leaves the grid without a copy for longer. 1Mi to 16Gi, default 256Mi.
	// +optional
	// +kubebuilder:default="256Mi"
	// +kubebuilder:validation:XValidation:rule="isQuantity(string(self))",messageExpression="'%s is not an amount; write it as 512Mi or 2Gi'.format([self])"
	// +kubebuilder:validation:XValidation:rule="!isQuantity(string(self)) || quantity(string(self)).compareTo(quantity('1Mi')) >= 0 && quantity(string(self)).compareTo(quantity('16Gi')) <= 0",messageExpression="'%s is not a rate from 1Mi to 16Gi bytes a second; write it as 64Mi'.format([self])"
	LearnerRate resource.Quantity `json:"learnerRate,omitempty,omitzero"`
}

// OrderGrid is a grid of order stores: shards of replicated, in-memory, totally ordered logs of FIX orders.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:subresource:scale:specpath=.spec.shards,statuspath=.status.shards,selectorpath=.status.selector
// +kubebuilder:resource:shortName=og,categories=ordergrid-all
// +kubebuilder:printcolumn:name="Shards",type=integer,JSONPath=".spec.shards"
// +kubebuilder:printcolumn:name="Ready",type=integer,JSONPath=".status.readyShards"
// +kubebuilder:printcolumn:name="Replicas",type=integer,JSONPath=".spec.replicas"
// +kubebuilder:printcolumn:name="Available",type=string,JSONPath=".status.conditions[?(@.type=='Available')].status"
// +kubebuilder:printcolumn:name="Accepting",type=string,JSONPath=".status.conditions[?(@.type=='AcceptingOrders')].status"
// +kubebuilder:printcolumn:name="Redundant",type=string,JSONPath=".status.conditions[?(@.type=='Redundant')].status"
// +kubebuilder:printcolumn:name="Endpoint",type=string,JSONPath=".status.endpoint"
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=".metadata.creationTimestamp"
// +kubebuilder:printcolumn:name="Memory",type=string,priority=1,JSONPath=".spec.memory"
// +kubebuilder:printcolumn:name="Sink",type=string,priority=1,JSONPath=".spec.writeBehind.sink"
// +kubebuilder:printcolumn:name="Message",type=string,priority=1,JSONPath=".status.conditions[?(@.type=='Available')].message"
// +kubebuilder:validation:XValidation:rule="self.metadata.name.matches('^[a-z]([-a-z0-9]{0,38}[a-z0-9])?$')",messageExpression="'metadata.name: %s cannot begin the names of the pods and Services of its shards; use at most 40 lowercase letters, digits and hyphens, beginning with a letter and not ending with a hyphen'.format([self.metadata.name])"
type OrderGrid struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is what is asked for; everything in it has a default.
	// +required
	Spec OrderGridSpec `json:"spec"`

	// status is what the operator observes.
	// +optional
	Status OrderGridStatus `json:"status,omitempty,omitzero"`
}

// PartitionsPerShard is how many partitions every shard of the grid has. Before the operator has seen the grid that is
// how many it will have.
func (g *OrderGrid) PartitionsPerShard() int32 {
	if n := g.Status.PartitionsPerShard; n > 0 {
		return n
	}
	return g.Spec.Replicas
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
