package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// LeavingShard is a shard that spec.shards no longer asks for. Its partitions move to the shards that stay, and then it is
// removed.
type LeavingShard struct {
	// shard is its number.
	// +required
	// +kubebuilder:validation:Minimum=0
	Shard int32 `json:"shard"`

	// stage is Moving (partitions are on it) or Removing (its objects are being deleted).
	// +required
	// +kubebuilder:validation:Enum=Moving;Removing
	Stage LeavingStage `json:"stage"`

	// partitions is how many partitions have a copy on its pods.
	// +optional
	Partitions int32 `json:"partitions,omitempty"`

	// waitsFor says what has to happen before it is removed.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	WaitsFor string `json:"waitsFor,omitempty"`
}

// LeavingStage is how far a shard that leaves has come.
type LeavingStage string

const (
	// LeavingMoving can be taken back.
	LeavingMoving LeavingStage = "Moving"
	// LeavingRemoving is followed by a new shard when it is taken back.
	LeavingRemoving LeavingStage = "Removing"
)

// PartitionMove is a partition on its way to another shard. Orders flow meanwhile.
type PartitionMove struct {
	// partition is its number.
	// +required
	// +kubebuilder:validation:Minimum=0
	Partition int32 `json:"partition"`

	// from are the shards that have copies and are to have none, as a rule one.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=4
	From []int32 `json:"from,omitempty"`

	// to is the shard that its record names.
	// +required
	// +kubebuilder:validation:Minimum=0
	To int32 `json:"to"`

	// startTime is when its record named the new shard.
	// +optional
	StartTime *metav1.Time `json:"startTime,omitempty"`

	// bytes is about what its orders took in memory when it began to move, of each copy. 0: not known.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Bytes int64 `json:"bytes,omitempty"`

	// waitsFor says what the move waits for.
	// +optional
	// +kubebuilder:validation:MaxLength=512
	WaitsFor string `json:"waitsFor,omitempty"`
}
