package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// OrderGridStatus is what the operator observes. It is never read back as fact.
type OrderGridStatus struct {
	// observedGeneration is the generation of spec this status was made from.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// conditions are Available, AcceptingOrders, Redundant, Progressing, Stalled, Schedulable, DataLossSuspected, ConfigurationRegressed,
	// Standby where the grid is in a pair of sites, Restored where spec.restoreFrom is set, FabricReady where spec.fabric is, TLSReady where spec.security.tls is, and ExternalAccessReady where
	// spec.externalAccess is.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// shards is the number of shards whose objects exist.
	// +optional
	Shards int32 `json:"shards,omitempty"`

	// moves are the partitions whose copies are not all on the shard that their record names yet.
	// +optional
	// +listType=map
	// +listMapKey=partition
	// +kubebuilder:validation:MaxItems=1024
	Moves []PartitionMove `json:"moves,omitempty"`

	// movesLeft is how many partitions move after those.
	// +optional
	MovesLeft int32 `json:"movesLeft,omitempty"`

	// movesHeldUntil is when spec.rebalance.window opens, while partitions wait for it.
	// +optional
	MovesHeldUntil *metav1.Time `json:"movesHeldUntil,omitempty"`

	// lastHandledRebalance is the value of the annotation ordergrid.dev/rebalance-now that was carried out last: every
	// partition has reached its shard since. Another value is a new request.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	LastHandledRebalance string `json:"lastHandledRebalance,omitempty"`

	// leaving are the shards that spec.shards no longer asks for, the highest last.
	// +optional
	// +listType=map
	// +listMapKey=shard
	// +kubebuilder:validation:MaxItems=256
	Leaving []LeavingShard `json:"leaving,omitempty"`

	// selector matches the grid's pods, for autoscalers of spec.shards.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	Selector string `json:"selector,omitempty"`

	// pods is the number of the grid's pods.
	// +optional
	Pods int32 `json:"pods,omitempty"`
	// updatedPods is how many pods run the present template.
	// +optional
	UpdatedPods int32 `json:"updatedPods,omitempty"`

	// readyShards is the number of shards all of whose pods are ready.
	// +optional
	ReadyShards int32 `json:"readyShards,omitempty"`

	// endpoint for clients: host:port of the grid's client Service.
	// +optional
	// +kubebuilder:validation:MaxLength=320
	Endpoint string `json:"endpoint,omitempty"`

	// memory of the grid node with the least memory left for orders; absent until one has answered.
	// +optional
	Memory *MemoryStatus `json:"memory,omitempty"`

	// regions that the logs have, as the primaries of the partitions report them; absent without spec.regions.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=64
	Regions []RegionUse `json:"regions,omitempty"`

	// sinks of the pods, and their last state reported by the nodes.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=8
	Sinks []SinkStatus `json:"sinks,omitempty"`

	// sinkNames are the names of sinks with commas between them, for kubectl get -o wide: a column shows one value.
	// +optional
	// +kubebuilder:validation:MaxLength=263
	SinkNames string `json:"sinkNames,omitempty"`

	// removedSinks are the names of sinks that the grid had. Its nodes release entries without waiting for them. No sink that is
	// added may have one of these names.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:MaxLength=32
	RemovedSinks []string `json:"removedSinks,omitempty"`

	// functions that the pods are given: those of kind Pre first, each kind in the order in which they are called. They are what
	// GridFunctions were when they were Valid last; condition FunctionsLoaded has what differs.
	// +optional
	// +listType=map
	// +listMapKey=kind
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=16
	Functions []GridFunctionUse `json:"functions,omitempty"`

	// restore is how far the grid is restored, where spec.restoreFrom is or was set.
	// +optional
	Restore *RestoreStatus `json:"restore,omitempty"`

	// site is what the grid is in a pair of sites; absent where it was never in one.
	// +optional
	Site *GridSiteStatus `json:"site,omitempty"`

	// externalAddresses are where clients outside the cluster reach the pods, where spec.externalAccess is set; as far
	// as known.
	// +optional
	// +listType=map
	// +listMapKey=podName
	// +kubebuilder:validation:MaxItems=192
	ExternalAddresses []ExternalAddress `json:"externalAddresses,omitempty"`

	// tls is the status of the certificates of spec.security.tls.
	// +optional
	TLS *TLSStatus `json:"tls,omitempty"`

	// history of decisions about the grid, the oldest first: the last 64 entries, those about data are kept longest.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	History []HistoryEntry `json:"history,omitempty"`

	// partitions mirrors the GridPartitions, in order.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=4096
	Partitions []PartitionSummary `json:"partitions,omitempty"`
}

// MemoryStatus is how much memory a grid has left for orders. It is coarse, to limit the rate of status writes.
type MemoryStatus struct {
	// pod with the least memory left.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	Pod string `json:"pod,omitempty"`
	// usedPercent is how much of the memory that orders may take is in use and cannot be freed, in steps of 5. At 100
	// orders are refused.
	// +required
	UsedPercent int32 `json:"usedPercent"`
	// timeUntilFull is the least time until orders are refused, at the rate of the last half minute. Absent: more
	// than a day, or no growth. With retention FreeDownstream memory that may be freed does not count.
	// +optional
	TimeUntilFull *metav1.Duration `json:"timeUntilFull,omitempty"`
}

// RegionUse is what a grid has of a region. Figures have two significant digits, to limit the rate of status writes: metrics
// and kubectl ordergrid region describe have them in full.
type RegionUse struct {
	// name of the region in the grid.
	// +required
	// +kubebuilder:validation:MaxLength=63
	Name string `json:"name"`
	// entries of all partitions.
	// +optional
	Entries int64 `json:"entries,omitempty"`
	// bytes that they take on a copy of each partition.
	// +optional
	Bytes int64 `json:"bytes,omitempty"`
	// writes is Refused while a partition refuses a change of the region, Taken while none does, and Unknown while not every
	// partition has reported.
	// +required
	Writes RegionWrites `json:"writes"`
	// message is why changes are refused, or not known to be taken.
	// +optional
	// +kubebuilder:validation:MaxLength=512
	Message string `json:"message,omitempty"`
}

// RegionWrites is whether changes of a region that need memory are taken.
//
// +kubebuilder:validation:Enum=Taken;Refused;Unknown
type RegionWrites string

const (
	// RegionWritesTaken is of a region that refuses nothing.
	RegionWritesTaken RegionWrites = "Taken"
	// RegionWritesRefused is of one that refuses changes in a partition.
	RegionWritesRefused RegionWrites = "Refused"
	// RegionWritesUnknown is of one that not every partition has reported on.
	RegionWritesUnknown RegionWrites = "Unknown"
)

// SinkStatus is the state of a sink over all partitions. It is coarse, to limit the rate of status writes:
// metrics and kubectl ordergrid show entries and seconds of each partition.
type SinkStatus struct {
	// name of the sink, as in spec.sinks.
	// +required
	// +kubebuilder:validation:MaxLength=32
	Name string `json:"name"`
	// lag is the least age of the oldest committed entry that the sink does not hold. Absent: less than ten seconds, or
	// no node has reported it.
	// +optional
	Lag *metav1.Duration `json:"lag,omitempty"`
	// partition whose entry that is, or which failed: "p1".
	// +optional
	// +kubebuilder:validation:MaxLength=16
	Partition string `json:"partition,omitempty"`
	// lastError is why writing to the sink fails at present; empty while it does not.
	// +optional
	// +kubebuilder:validation:MaxLength=512
	LastError string `json:"lastError,omitempty"`
	// reason is the state of the pod that the operator runs for a sink of type Kafka or PostgreSQL: Ready, or why it is not;
	// condition SinksReady has more. Absent for other types.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	Reason string `json:"reason,omitempty"`
}

// MaxHistory is how many entries status.history keeps.
const MaxHistory = 64

// HistoryEntry is one decision about a grid.
type HistoryEntry struct {
	// time of the entry.
	// +required
	Time metav1.Time `json:"time"`
	// reason is the one of the event, such as AcceptingDataLoss or NewLineage.
	// +required
	// +kubebuilder:validation:MaxLength=64
	Reason string `json:"reason"`
	// about names the GridPartition, pod or shard.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	About string `json:"about,omitempty"`
	// by is the client program that set the annotation, and when, by the managed fields of the object; operator where no
	// annotation asked for it.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	By string `json:"by,omitempty"`
	// message says what was decided and why.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Message string `json:"message,omitempty"`
}

// PartitionSummary is one GridPartition at a glance.
type PartitionSummary struct {
	// name of the GridPartition.
	// +required
	// +kubebuilder:validation:MaxLength=63
	Name string `json:"name"`

	// primary is the pod that is primary; empty while the partition is not claimed.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	Primary string `json:"primary,omitempty"`

	// epoch of the configuration.
	// +optional
	Epoch int64 `json:"epoch,omitempty"`

	// lineage rises when a loss of data is accepted.
	// +optional
	Lineage int64 `json:"lineage,omitempty"`

	// shard whose pods are to hold the partition.
	// +optional
	Shard int32 `json:"shard,omitempty"`

	// inSync is the number of complete copies.
	// +optional
	InSync int32 `json:"inSync,omitempty"`

	// problem is the worst problem of the partition: ConfigurationRegressed, DataLossSuspected, NotClaimed,
	// PrimaryNotReady, InsufficientInSync or CopiesMissing; the corresponding condition of the grid has details. Empty:
	// none.
	// +optional
	// +kubebuilder:validation:MaxLength=32
	Problem string `json:"problem,omitempty"`

	// functionsEntry is the entry of the partition's log with which the functions of kind Post changed last: every copy calls
	// them from the next one on. Absent where the primary did not see that entry, and while another change is on the way.
	// +optional
	FunctionsEntry int64 `json:"functionsEntry,omitempty"`
}

// GridFunctionUse is a function that the pods of a grid are given.
type GridFunctionUse struct {
	// kind of the GridFunction.
	// +required
	Kind FunctionKind `json:"kind"`

	// name of the GridFunction.
	// +required
	// +kubebuilder:validation:MaxLength=32
	Name string `json:"name"`

	// sha256 of its module.
	// +required
	// +kubebuilder:validation:MaxLength=64
	SHA256 string `json:"sha256"`

	// partitions whose log has a function of kind Post in force, as far as their primaries have answered.
	// +optional
	Partitions *int32 `json:"partitions,omitempty"`
}
