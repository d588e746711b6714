package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// RestoreSpec is the archive that a new grid begins with: the log of a grid that was lost, of the same name and with as
// many partitions. docs/archive.md has the steps.
//
// +kubebuilder:validation:XValidation:rule="has(self.bucket) != has(self.claimName)",message="an archive is in one place; set bucket or claimName, and not both"
// +kubebuilder:validation:XValidation:rule="has(self.bucket) == has(oldSelf.bucket) && has(self.claimName) == has(oldSelf.claimName) && (!has(self.claimName) || self.claimName == oldSelf.claimName) && (!has(self.bucket) || !has(oldSelf.bucket) || self.bucket.name == oldSelf.bucket.name && has(self.bucket.prefix) == has(oldSelf.bucket.prefix) && (!has(self.bucket.prefix) || !has(oldSelf.bucket.prefix) || self.bucket.prefix == oldSelf.bucket.prefix))",message="the archive is changed, and partitions may have begun with it; keep it, or create another OrderGrid"
type RestoreSpec struct {
	// bucket of an S3-compatible store.
	// +optional
	Bucket *ArchiveBucketSpec `json:"bucket,omitempty"`

	// claimName names a PersistentVolumeClaim of the grid's namespace that every pod of the grid can mount, and a Job
	// beside them.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	ClaimName string `json:"claimName,omitempty"`

	// mode is TakeOver (the default: the archive passes to this grid, and a writer of the lost one is refused from then on)
	// or Copy (the archive is only read, as for a trial while its grid lives; sinks of this grid need another place).
	// +optional
	// +default="TakeOver"
	// +kubebuilder:default=TakeOver
	Mode RestoreMode `json:"mode,omitempty"`

	// earlierRestore is Refuse (the default) or Supersede: another grid was restored from the archive, has not written to it
	// since, and is given up.
	// +optional
	EarlierRestore EarlierRestorePolicy `json:"earlierRestore,omitempty"`

	// missingPartitions is Refuse (the default) or Empty: partitions without an archive begin empty.
	// +optional
	MissingPartitions MissingPartitionsPolicy `json:"missingPartitions,omitempty"`
}

// RestoreMode is whose the archive is after a restore.
//
// +kubebuilder:validation:Enum=TakeOver;Copy
type RestoreMode string

const (
	// RestoreTakeOver makes the archive that of the restored grid.
	RestoreTakeOver RestoreMode = "TakeOver"
	// RestoreCopy leaves it to who writes it.
	RestoreCopy RestoreMode = "Copy"
)

// EarlierRestorePolicy is how an earlier restore of another grid from the archive is handled.
//
// +kubebuilder:validation:Enum=Refuse;Supersede
type EarlierRestorePolicy string

const (
	// EarlierRestoreRefuse refuses such an archive.
	EarlierRestoreRefuse EarlierRestorePolicy = "Refuse"
	// EarlierRestoreSupersede takes it.
	EarlierRestoreSupersede EarlierRestorePolicy = "Supersede"
)

// MissingPartitionsPolicy is how partitions without an archive begin.
//
// +kubebuilder:validation:Enum=Refuse;Empty
type MissingPartitionsPolicy string

const (
	// MissingPartitionsRefuse refuses such an archive.
	MissingPartitionsRefuse MissingPartitionsPolicy = "Refuse"
	// MissingPartitionsEmpty lets them begin empty.
	MissingPartitionsEmpty MissingPartitionsPolicy = "Empty"
)

// PartitionRestore is the recovery point that a partition begins with.
type PartitionRestore struct {
	// seq is the number of the last entry of the archive.
	// +required
	// +kubebuilder:validation:Minimum=1
	Seq int64 `json:"seq"`

	// hash of that entry.
	// +required
	// +kubebuilder:validation:MinLength=16
	// +kubebuilder:validation:MaxLength=16
	// +kubebuilder:validation:Pattern=`^[0-9a-f]{16}$`
	Hash string `json:"hash"`

	// epoch is the highest of the archived grid that is known. The first claim is of the next one.
	// +required
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=4294967294
	Epoch int64 `json:"epoch"`

	// lineage is the highest of the archived grid that is known. The first claim is of the next one.
	// +required
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=4294967294
	Lineage int64 `json:"lineage"`
}

// RestoreStatus is how far the grid is restored from spec.restoreFrom.
type RestoreStatus struct {
	// completionTime is when every partition was found claimed, with every archived order.
	// +optional
	CompletionTime *metav1.Time `json:"completionTime,omitempty"`

	// partitions have the recovery point of each partition, in order, once the archive was read.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=1024
	Partitions []PartitionRestoreStatus `json:"partitions,omitempty"`
}

// PartitionRestoreStatus is how far one partition is restored.
type PartitionRestoreStatus struct {
	// name of the GridPartition.
	// +required
	// +kubebuilder:validation:MaxLength=63
	Name string `json:"name"`

	// seq is the recovery point: the last entry of the archive. 0: the partition began empty.
	// +required
	Seq int64 `json:"seq"`

	// hash of that entry.
	// +optional
	// +kubebuilder:validation:MaxLength=16
	Hash string `json:"hash,omitempty"`

	// receivedTime is when the grid that was lost received that entry: orders acknowledged later are not in this grid.
	// +optional
	ReceivedTime *metav1.Time `json:"receivedTime,omitempty"`

	// loadedPercent is how much of it the pod has loaded that is furthest; 100 once the partition is claimed.
	// +required
	LoadedPercent int32 `json:"loadedPercent"`
}
