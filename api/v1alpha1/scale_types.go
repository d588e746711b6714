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

	// waitsFor is what its removal waits for.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	WaitsFor string `json:"waitsFor,omitempty"`
}

// LeavingStage is the stage of a leaving shard.
type LeavingStage string

const (
	// LeavingMoving can be reverted.
	LeavingMoving LeavingStage = "Moving"
	// LeavingRemoving is followed by a new shard when it is reverted.
	LeavingRemoving LeavingStage = "Removing"
)

// PartitionMove is a partition on its way to another shard. Orders flow meanwhile.
type PartitionMove struct {
	// partition is its number.
	// +required
	// +kubebuilder:validation:Minimum=0
	Partition int32 `json:"partition"`

	// from are the shards that give up their copies, usually one.
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

	// bytes is roughly the memory of its orders per copy when the move began. 0: not known.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Bytes int64 `json:"bytes,omitempty"`

	// waitsFor is what the move waits for.
	// +optional
	// +kubebuilder:validation:MaxLength=512
	WaitsFor string `json:"waitsFor,omitempty"`
}
