package v1alpha1

// DrillSafety bounds what a drill may break. The operator's configuration limits drills to namespaces.
type DrillSafety struct {
	// whenNotRedundant is how a fault is handled for which the grid should be redundant and is not after
	// steadyState.redundantWithin: Refuse (the drill ends as Failed) or Allow. Default Refuse.
	// +optional
	// +default="Refuse"
	// +kubebuilder:default=Refuse
	WhenNotRedundant NotRedundantPolicy `json:"whenNotRedundant,omitempty"`

	// lastCopy is how a fault is handled that would take the last in-sync copy of a partition, and with it what only
	// that copy holds: Keep (it is refused, in a grid with replicas: 1 always) or Take. Default Keep.
	// +optional
	// +default="Keep"
	// +kubebuilder:default=Keep
	LastCopy LastCopyPolicy `json:"lastCopy,omitempty"`

	// maxShards is how many shards one fault may concern. RollingUpdate, which goes by shards itself, and
	// APIServerOutage, which leaves every grid node alone, are not counted. 1 to 256; default 1.
	// +optional
	// +default=1
	// +kubebuilder:default=1
	// +kubebuilder:validation:XValidation:rule="self >= 1 && self <= 256",messageExpression="'%s is out of range; allowed are 1 to 256'.format([self])"
	MaxShards int32 `json:"maxShards,omitempty"`

	// whenMemoryShort is how a drill is handled whose orders do not fit into the grid's memory: Refuse (it
	// does not begin until there is room) or Allow (the grid refuses orders once it is full). Default Refuse.
	// +optional
	// +default="Refuse"
	// +kubebuilder:default=Refuse
	WhenMemoryShort MemoryShortPolicy `json:"whenMemoryShort,omitempty"`
}

// MemoryShortPolicy selects whether a drill begins whose orders do not fit into the grid's memory.
//
// +kubebuilder:validation:Enum=Refuse;Allow
type MemoryShortPolicy string

const (
	// MemoryShortRefuse waits for room.
	MemoryShortRefuse MemoryShortPolicy = "Refuse"
	// MemoryShortAllow begins.
	MemoryShortAllow MemoryShortPolicy = "Allow"
)

// NotRedundantPolicy selects whether a fault is injected while copies are missing.
//
// +kubebuilder:validation:Enum=Refuse;Allow
type NotRedundantPolicy string

const (
	// NotRedundantRefuse injects nothing.
	NotRedundantRefuse NotRedundantPolicy = "Refuse"
	// NotRedundantAllow injects.
	NotRedundantAllow NotRedundantPolicy = "Allow"
)

// LastCopyPolicy selects whether a fault may take the last in-sync copy of a partition.
//
// +kubebuilder:validation:Enum=Keep;Take
type LastCopyPolicy string

const (
	// LastCopyKeep refuses the fault.
	LastCopyKeep LastCopyPolicy = "Keep"
	// LastCopyTake injects it: acknowledged orders will be lost.
	LastCopyTake LastCopyPolicy = "Take"
)
